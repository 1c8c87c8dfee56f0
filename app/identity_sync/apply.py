"""Writes the tenants, users and memberships that follow from the states of a provider's objects.

The states before the delivery and now each give the values of the rows; the rows get the
difference. A missing row is created with all values, as soon as enough is known. Of people whom a
directory provisions by SCIM, the profile, the activity and a group's role stay as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, Text, and_, any_, bindparam, case, exists, func, or_, select, union

from app.auth.models import ApiKey
from app.auth.permissions import Role
from app.core.actors import SYSTEM_IDP
from app.core.db.statements import Statement
from app.core.db.writes import Writes
from app.identity_sync.merge_state import membership_values, organization_values, user_values
from app.identity_sync.store import Key, Kind, Objects, Pair
from app.memberships import directories, owners, seats
from app.memberships import service as memberships
from app.memberships.models import Membership
from app.tenants import service as tenants
from app.tenants import slugs
from app.tenants.models import Tenant
from app.users import service as users
from app.users.models import User

USER_FIELDS = frozenset({"email", "first_name", "last_name", "is_active"})
END = frozenset({"is_active"})
REPEATED = ("is_active", True)
MADE_BY_TENANT = or_(
    User.created_by_user_id.not_like("%:%"),
    User.created_by_user_id.like("key:%")
    & exists().where(
        func.concat("key:", ApiKey.id) == User.created_by_user_id, ApiKey.tenant_id.is_not(None)
    ),
)
"""A column: whether the row was made with a tenant's own credential, a user token or a key."""

_user_ids = any_(bindparam("user_ids", type_=ARRAY(Text)))
_inactive_user_ids = any_(bindparam("inactive_user_ids", type_=ARRAY(Text)))
_can_end_owner = or_(Membership.role == Role.OWNER.value, User.idp_user_id == _inactive_user_ids)
_is_first_of_tenant = func.row_number().over(partition_by=Tenant.id) == 1
_tenant_ids = union(
    select(Tenant.id).where(
        Tenant.idp_org_id == any_(bindparam("organization_ids", type_=ARRAY(Text)))
    ),
    select(User.tenant_id).where(
        User.idp_user_id == any_(bindparam("user_ids_everywhere", type_=ARRAY(Text)))
    ),
)
FIND_ROWS = Statement(
    "identity_sync.find_rows",
    select(
        Tenant,
        User,
        Membership,
        func.coalesce(MADE_BY_TENANT, False).label("made_by_tenant"),
        case((_can_end_owner, owners.locked_owners(Tenant.id))).label("owners"),
        directories.has_mapped_role(User.tenant_id, User.id).label("has_mapped_role"),
        case((_is_first_of_tenant, seats.limit_of(Tenant.id))).label("seat_limit"),
    )
    .outerjoin(User, and_(User.tenant_id == Tenant.id, User.idp_user_id == _user_ids))
    .outerjoin(
        Membership, and_(Membership.tenant_id == User.tenant_id, Membership.user_id == User.id)
    )
    .where(Tenant.id.in_(_tenant_ids))
    .order_by(Tenant.id),
)


class Rows:
    """The rows of one delivery: :meth:`read` them, then write what follows from the states.

    New rows are inserted at the end of the block of ``into``. Nothing here has to see them before,
    because a delivery is about one organization: it creates at most one tenant.
    """

    def __init__(
        self, objects: Objects, roles: Mapping[str, str], *, force: bool, into: Writes
    ) -> None:
        self._objects = objects
        self._roles = roles
        self._force = force
        self._writes = into
        self._tenants: dict[str, Tenant] = {}
        self._users: dict[tuple[UUID, str], tuple[User, Membership | None]] = {}
        self._made_by_tenant: set[UUID] = set()
        self._managed: dict[UUID, bool] = {}  # by a directory: whether a group gives the role
        self._owners: dict[UUID, set[UUID]] = {}
        self._seat_limits: dict[UUID, Mapping[str, Any]] = {}
        self._new_members: list[User] = []
        self._written: set[UUID] = set()
        self._changed_users: list[tuple[User, dict[str, Any]]] = []
        self._changed_memberships: list[tuple[Membership, dict[str, Any]]] = []

    def read(
        self,
        organization_ids: Collection[str],
        pairs: Collection[Pair],
        user_ids_everywhere: Collection[str],
    ) -> None:
        """Read the tenants of organizations with the users and memberships of ``pairs`` in them.

        Of ``user_ids_everywhere`` the rows in all tenants are read. The tenants that may lose an
        owner, and those with a limit of seats, are locked, in the order of their ids.
        """
        user_ids = list({*(pair.user_id for pair in pairs), *user_ids_everywhere})
        found = FIND_ROWS.all(
            organization_ids=list(organization_ids),
            user_ids=user_ids,
            user_ids_everywhere=list(user_ids_everywhere),
            inactive_user_ids=[id_ for id_ in user_ids if self._is_inactive(id_)],
        )
        for tenant, user, membership, is_made_by_tenant, active_owners, has_role, limit in found:
            self._tenants[tenant.idp_org_id] = tenant
            if limit is not None:
                self._seat_limits[tenant.id] = limit
            if user.id is None:  # the outer join found none
                continue
            self._users[tenant.id, user.idp_user_id] = user, membership if membership.id else None
            if has_role is not None:
                self._managed[user.id] = has_role
            if is_made_by_tenant:
                self._made_by_tenant.add(user.id)
            if active_owners is not None:
                self._owners[tenant.id] = set(active_owners)

    def write_tenant(self, organization_id: str) -> bool:
        """Create or change the organization's tenant; whether it was created."""
        key = Key(Kind.ORGANIZATION, organization_id)
        values = organization_values(self._objects.now[key], organization_id)
        if values is None:
            return False
        tenant = self._tenants.get(organization_id)
        if tenant is None:
            values |= {"idp_org_id": organization_id, "slug": slugs.find_free(values["slug"])}
            self._tenants[organization_id] = tenants.insert(
                values, actor=SYSTEM_IDP, into=self._writes
            )
            return True
        before = organization_values(self._objects.before[key], organization_id)
        changes = self._changes(before, values, tenant)
        if before is None or before["slug"] == values["slug"]:
            changes.pop("slug", None)  # a slug given here stays
        self._tenants[organization_id] = self._change_tenant(tenant, changes)
        return False

    def write_memberships(self, pairs: Sequence[Pair]) -> set[Pair]:
        """Create or change the users and memberships of these pairs; the pairs that have to wait."""
        connections = self._objects.connections()
        return {
            pair
            for pair in dict.fromkeys(pairs)
            if not self._write_membership(pair, connections.get(pair, []))
        }

    def write_user(self, user_id: str) -> None:
        """Change the user's rows in tenants where the provider knows no membership.

        A tenant may create a user with any ``idp_user_id``. Such a row only follows the end of the
        user, so that the tenant learns nothing about people of other tenants.
        """
        for (_, idp_user_id), (user, _) in self._users.items():
            if idp_user_id == user_id:
                fields = END if user.id in self._made_by_tenant else USER_FIELDS
                self._change_user(user, user_id, fields=fields)

    def write_changes(self) -> None:
        """Write the changes that the other methods found in users and memberships.

        A tenant that has taken more seats than were free is recorded.
        """
        by_id = {tenant.id: tenant for tenant in self._tenants.values()}
        for tenant_id, taken in self._taken_seats().items():
            limit, tenant = self._seat_limits[tenant_id], by_id[tenant_id]
            seats.take_beyond(limit, taken, tenant=tenant, actor=SYSTEM_IDP, into=self._writes)
        users.update_many(self._changed_users, actor=SYSTEM_IDP, into=self._writes)
        memberships.update_many(self._changed_memberships, actor=SYSTEM_IDP, into=self._writes)

    def _write_membership(self, pair: Pair, keys: Sequence[Key]) -> bool:
        """False where the tenant, the membership or its user is not known yet."""
        objects = self._objects
        tenant, user_key = self._tenants.get(pair.organization_id), Key(Kind.USER, pair.user_id)
        now, before = (
            membership_values([states[key] for key in keys], states[user_key], self._roles)
            for states in (objects.now, objects.before)
        )
        if tenant is None or now is None:
            return False
        user, membership = self._users.get((tenant.id, pair.user_id), (None, None))
        if user is None:
            known = user_values(objects.now[user_key])
            if known is None:
                return False
            values = {**known, "idp_user_id": pair.user_id}
            user = users.insert_in(tenant, values, actor=SYSTEM_IDP, into=self._writes)
        else:
            self._change_user(user, pair.user_id, is_new=before is None)
        if membership is None:
            memberships.create_for(user, now, actor=SYSTEM_IDP, into=self._writes)
            if now["is_active"]:
                self._new_members.append(user)
        elif changes := self._unmanaged(user, self._changes(before, now, membership)):
            if changes.get("is_active") is False or "role" in changes:
                self._end_owner(user)
            self._changed_memberships.append((membership, changes))
        return True

    def _change_user(
        self,
        user: User,
        user_id: str,
        *,
        is_new: bool = False,
        fields: Collection[str] = USER_FIELDS,
    ) -> None:
        """Change one row of the user, once; ``is_new``: the row was not certainly theirs before."""
        key = Key(Kind.USER, user_id)
        now = user_values(self._objects.now[key])
        if now is None or user.id in self._written or user.id in self._managed:
            return
        self._written.add(user.id)
        before = None if is_new else user_values(self._objects.before[key])
        changes = self._changes(before, {name: now[name] for name in fields}, user)
        if changes.get("is_active") is False:
            self._end_owner(user)
        if changes:
            self._changed_users.append((user, changes))

    def _unmanaged(self, user: User, changes: dict[str, Any]) -> dict[str, Any]:
        """The changes of a membership without what a directory says by SCIM."""
        has_mapped_role = self._managed.get(user.id)
        if has_mapped_role is not None:
            changes.pop("is_active", None)
        if has_mapped_role:
            changes.pop("role", None)
        return changes

    def _taken_seats(self) -> Counter[UUID]:
        """How many more seats are taken after the changes, in each tenant with a limit of seats."""
        user_changes, member_changes = (
            {row.id: changes.get("is_active", row.is_active) for row, changes in changed}
            for changed in (self._changed_users, self._changed_memberships)
        )
        taken: Counter[UUID] = Counter()
        for user in self._new_members:
            taken[user.tenant_id] += user_changes.get(user.id, user.is_active)
        for user, member in self._users.values():
            if member is not None:
                is_active = user_changes.get(user.id, user.is_active)
                is_member = member_changes.get(member.id, member.is_active)
                taken[user.tenant_id] += is_active and is_member
                taken[user.tenant_id] -= user.is_active and member.is_active
        return Counter({one: count for one, count in taken.items() if one in self._seat_limits})

    def _is_inactive(self, user_id: str) -> bool:
        values = user_values(self._objects.now[Key(Kind.USER, user_id)])
        return values is not None and not values["is_active"]

    def _end_owner(self, user: User) -> None:
        """Take the user from the tenant's active owners, even if none is left."""
        remaining = self._owners.get(user.tenant_id, set())
        owners.check_one_remains(
            remaining,
            user.id,
            tenant_id=user.tenant_id,
            actor=SYSTEM_IDP,
            allow_ownerless=True,
            tenant=self._tenants[user.idp_org_id],
            into=self._writes,
        )
        remaining.discard(user.id)

    def _changes(
        self, before: Mapping[str, Any] | None, now: Mapping[str, Any], row: Any
    ) -> dict[str, Any]:
        """What the delivery changes in ``row``; everything, where nothing was known before.

        An event that repeats "active" does not reactivate what was ended here.
        """
        if before is None or self._force:
            changed = {name: value for name, value in now.items() if (name, value) != REPEATED}
        else:
            changed = {name: value for name, value in now.items() if before[name] != value}
        return {name: value for name, value in changed.items() if getattr(row, name) != value}

    def _change_tenant(self, tenant: Tenant, values: dict[str, Any]) -> Tenant:
        if "slug" in values and slugs.derive(values["slug"]) != tenant.slug:
            values["slug"] = slugs.find_free(values["slug"])
        else:
            values.pop("slug", None)
        return tenants.update_read(tenant, values, actor=SYSTEM_IDP, into=self._writes)

"""Writes the tenants, users and memberships that follow from the states of a provider's objects.

The states before the delivery and now each give the values of the rows; the rows get the
difference. A missing row is created with all values, as soon as enough is known. The profile, the
activity and a group's role of people whom a directory provisions by SCIM stay as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ARRAY, Text, and_, any_, bindparam, case, func, or_, select, union

from app.auth.permissions import Role
from app.auth.tenant_actors import is_of_tenant
from app.core.actors import SYSTEM_IDP, Actor
from app.core.db.statements import Statement
from app.core.db.writes import Writes, writes
from app.identity_sync.merge_state import membership_values, organization_values, user_values
from app.identity_sync.store import Key, Kind, Objects, Pair
from app.memberships import directories, owners, seats
from app.memberships import service as memberships
from app.memberships.models import Membership
from app.roles import synced_assignments
from app.tenants import service as tenants
from app.tenants import slugs
from app.tenants.models import Tenant
from app.users import service as users
from app.users.models import User

USER_FIELDS = frozenset({"email", "first_name", "last_name", "is_active"})
END = frozenset({"is_active"})
AS_ADMIN = Actor(SYSTEM_IDP.id, Role.ADMIN)  # of roles that are not a membership's
REPEATED = ("is_active", True)
_user_ids = any_(bindparam("user_ids", type_=ARRAY(Text)))
_inactive_user_ids = any_(bindparam("inactive_user_ids", type_=ARRAY(Text)))
_can_end_owner = or_(
    Membership.role == Role.OWNER.value,
    User.idp_user_id == _inactive_user_ids,
    owners.is_assigned_owner(Membership),
)
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
        func.coalesce(is_of_tenant(User.created_by_user_id), False).label("made_by_tenant"),
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


class Place(NamedTuple):
    """A tenant with its active owners, if it may lose one, and its limit of seats."""

    tenant: Tenant
    owners: list[UUID]  # once for each way in which they are owner
    seat_limit: Mapping[str, Any] | None


class Person(NamedTuple):
    """The rows of a user in one tenant.

    ``has_mapped_role``: whether a group of the directory gives the role; None without a directory.
    """

    user: User
    membership: Membership | None
    is_made_by_tenant: bool = False
    has_mapped_role: bool | None = None


def write(
    objects: Objects,
    pairs: Sequence[Pair],
    *,
    organization_ids: Collection[str] = (),
    user_ids: Collection[str] = (),
    roles: Mapping[str, str],
    force: bool = False,
) -> set[Pair]:
    """Write what follows from the objects; returns those of the ``pairs`` that have to wait.

    ``organization_ids`` and ``user_ids`` are the organizations and people that the events are
    about. New rows are inserted at the end. Nothing here has to see them before, because a delivery
    is about one organization: it creates at most one tenant.
    """
    with writes() as w:
        rows = _Rows(objects, roles, force, w)
        rows.read({*organization_ids, *(pair.organization_id for pair in pairs)}, pairs, user_ids)
        for organization_id in organization_ids:
            if rows.write_tenant(organization_id):
                pairs = [*pairs, *objects.pairs_of_organization(organization_id)]
        connections = objects.connections()
        waiting = {
            pair
            for pair in dict.fromkeys(pairs)
            if not rows.write_membership(pair, connections.get(pair, []))
        }
        for user_id in user_ids:
            rows.write_user(user_id)
        rows.write_changes()
    objects.mark_waiting(pairs, waiting)
    return waiting


@dataclass
class _Rows:
    """The rows of one delivery, and the changes of users and memberships found so far."""

    objects: Objects
    roles: Mapping[str, str]
    force: bool
    writes: Writes
    places: dict[str, Place] = field(default_factory=dict)
    people: dict[tuple[UUID, str], Person] = field(default_factory=dict)
    new_members: list[User] = field(default_factory=list)
    written: set[UUID] = field(default_factory=set)
    changed_users: list[tuple[User, dict[str, Any]]] = field(default_factory=list)
    changed_memberships: list[tuple[Membership, dict[str, Any]]] = field(default_factory=list)
    role_keys: dict[tuple[UUID, UUID], set[str]] = field(default_factory=dict)

    def read(
        self,
        organization_ids: Collection[str],
        pairs: Collection[Pair],
        user_ids_everywhere: Collection[str],
    ) -> None:
        """Read the tenants of organizations with the users and memberships of ``pairs`` in them.

        The rows of ``user_ids_everywhere`` are read in all tenants. The tenants that may lose an
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
            place = self.places.get(tenant.idp_org_id, Place(tenant, [], None))
            place.owners[:] = active_owners or place.owners
            if limit is not None:  # one row of each tenant has it
                place = place._replace(seat_limit=limit)
            self.places[tenant.idp_org_id] = place
            if user.id is not None:  # the outer join found one
                self.people[tenant.id, user.idp_user_id] = Person(
                    user, membership if membership.id else None, is_made_by_tenant, has_role
                )

    def write_tenant(self, organization_id: str) -> bool:
        """Create or change the organization's tenant; whether it was created."""
        key = Key(Kind.ORGANIZATION, organization_id)
        values = organization_values(self.objects.now[key], organization_id)
        if values is None:
            return False
        place = self.places.get(organization_id)
        if place is None:
            values |= {"idp_org_id": organization_id, "slug": slugs.find_free(values["slug"])}
            tenant = tenants.insert(values, actor=SYSTEM_IDP, into=self.writes)
            self.places[organization_id] = Place(tenant, [], None)
            return True
        before = organization_values(self.objects.before[key], organization_id)
        changes = self._changes(before, values, place.tenant)
        slug = changes.pop("slug", None)
        is_given_here = before is None or before["slug"] == values["slug"]
        if slug is not None and not is_given_here and slugs.derive(slug) != place.tenant.slug:
            changes["slug"] = slugs.find_free(slug)
        tenant = tenants.update_read(place.tenant, changes, actor=SYSTEM_IDP, into=self.writes)
        self.places[organization_id] = place._replace(tenant=tenant)
        return False

    def write_membership(self, pair: Pair, keys: Sequence[Key]) -> bool:
        """Create or change the user and the membership that the objects ``keys`` are about.

        False where the tenant, the membership or its user is not known yet.
        """
        objects = self.objects
        place, user_key = self.places.get(pair.organization_id), Key(Kind.USER, pair.user_id)
        now, before = (
            membership_values([states[key] for key in keys], states[user_key], self.roles)
            for states in (objects.now, objects.before)
        )
        if place is None or now is None:
            return False
        role_keys = now.pop("role_keys")
        had_role_keys = set() if before is None else before.pop("role_keys")
        person = self.people.get((place.tenant.id, pair.user_id))
        if person is None:
            known = user_values(objects.now[user_key])
            if known is None:
                return False
            values = {**known, "idp_user_id": pair.user_id}
            user = users.insert_in(place.tenant, values, actor=SYSTEM_IDP, into=self.writes)
            person = Person(user, None)
        else:
            self._change_user(person, is_new=before is None)
        if person.membership is None:
            new = memberships.create_for(person.user, now, actor=SYSTEM_IDP, into=self.writes)
            if now["is_active"]:
                self.new_members.append(person.user)
            if role_keys:
                self.role_keys[new.tenant_id, new.id] = role_keys
            return True
        if role_keys != had_role_keys or self.force:
            self.role_keys[person.user.tenant_id, person.membership.id] = role_keys
        changes = self._changes(before, now, person.membership)
        if person.has_mapped_role is not None:  # the directory says it, by SCIM
            changes.pop("is_active", None)
        if person.has_mapped_role:
            changes.pop("role", None)
        is_demoted = "role" in changes and person.membership.role == Role.OWNER
        if changes.get("is_active") is False or is_demoted:
            self._end_owner(person.user, in_one_way=changes.get("is_active") is not False)
        if changes:
            self.changed_memberships.append((person.membership, changes))
        return True

    def write_user(self, user_id: str) -> None:
        """Change the user's rows in tenants where the provider knows no membership.

        A tenant may create a user with any ``idp_user_id``. Such a row only follows the end of the
        user, so that the tenant learns nothing about people of other tenants.
        """
        for (_, idp_user_id), person in self.people.items():
            if idp_user_id == user_id:
                self._change_user(person, fields=END if person.is_made_by_tenant else USER_FIELDS)

    def write_changes(self) -> None:
        """Write the changes that the other methods found in users and memberships.

        A tenant that has taken more seats than were free is recorded.
        """
        taken = self._taken_seats()
        for tenant, _, limit in self.places.values():
            if limit is not None and tenant.id in taken:
                seats.take_beyond(
                    limit, taken[tenant.id], tenant=tenant, actor=SYSTEM_IDP, into=self.writes
                )
        users.update_many(self.changed_users, actor=SYSTEM_IDP, into=self.writes)
        memberships.update_many(self.changed_memberships, actor=SYSTEM_IDP, into=self.writes)
        synced_assignments.follow(
            "membership_id", self.role_keys, actor=SYSTEM_IDP, within=AS_ADMIN, into=self.writes
        )

    def _change_user(
        self, person: Person, *, is_new: bool = False, fields: Collection[str] = USER_FIELDS
    ) -> None:
        """Change one row of the user, once; ``is_new``: the row was not certainly theirs before."""
        user, key = person.user, Key(Kind.USER, person.user.idp_user_id)
        now = user_values(self.objects.now[key])
        if now is None or user.id in self.written or person.has_mapped_role is not None:
            return
        self.written.add(user.id)
        before = None if is_new else user_values(self.objects.before[key])
        changes = self._changes(before, {name: now[name] for name in fields}, user)
        if changes.get("is_active") is False:
            self._end_owner(user)
        if changes:
            self.changed_users.append((user, changes))

    def _taken_seats(self) -> Counter[UUID]:
        """How many more seats are taken after the changes, in each tenant."""
        user_changes, member_changes = (
            {row.id: changes.get("is_active", row.is_active) for row, changes in changed}
            for changed in (self.changed_users, self.changed_memberships)
        )
        taken: Counter[UUID] = Counter()
        for user in self.new_members:
            taken[user.tenant_id] += user_changes.get(user.id, user.is_active)
        for user, member, *_ in self.people.values():
            if member is not None:
                is_active = user_changes.get(user.id, user.is_active)
                is_member = member_changes.get(member.id, member.is_active)
                taken[user.tenant_id] += is_active and is_member
                taken[user.tenant_id] -= user.is_active and member.is_active
        return taken

    def _is_inactive(self, user_id: str) -> bool:
        values = user_values(self.objects.now[Key(Kind.USER, user_id)])
        return values is not None and not values["is_active"]

    def _end_owner(self, user: User, *, in_one_way: bool = False) -> None:
        """Take the user from the tenant's active owners, even if none is left."""
        place = self.places[user.idp_org_id]
        place.owners[:] = owners.check_one_remains(
            place.owners,
            user.id,
            tenant_id=user.tenant_id,
            actor=SYSTEM_IDP,
            allow_ownerless=True,
            in_one_way=in_one_way,
            tenant=place.tenant,
            into=self.writes,
        )

    def _changes(
        self, before: Mapping[str, object] | None, now: Mapping[str, object], row: object
    ) -> dict[str, Any]:
        """The changes that the delivery makes in ``row``; everything, if nothing was known before.

        An event that repeats "active" does not reactivate what was ended here.
        """
        if before is None or self.force:
            changed = {name: value for name, value in now.items() if (name, value) != REPEATED}
        else:
            changed = {name: value for name, value in now.items() if before[name] != value}
        return {name: value for name, value in changed.items() if getattr(row, name) != value}

"""The rows that a set of lines is about: those that exist, and those that the set adds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, Text, and_, any_, bindparam, func, select

from app.auth.permissions import Role
from app.core.actors import Actor
from app.core.db.bulk import as_arrays, rows_from_arrays
from app.core.db.statements import Statement
from app.core.errors import Invalid, value_error
from app.imports.line_schemas import Kind
from app.imports.lines import Line
from app.memberships import owners
from app.memberships.directories import FIND_MANAGED
from app.memberships.models import Membership
from app.subscriptions.models import Subscription
from app.tenants.models import Tenant
from app.users.models import User

FIND_TENANTS = Statement(
    "imports.find_tenants",
    select(Tenant).where(Tenant.idp_org_id == any_(bindparam("idp_org_ids", type_=ARRAY(Text)))),
)
LOCK_OWNERS = Statement(
    "imports.lock_owners", select(func.unnest(owners.locked_owners(bindparam("tenant_id"))))
)


def _find(model: Any, key: str) -> Statement:
    """The rows of tenants by a key; the two parameters are arrays of the same length."""
    names = ("tenant_id", key)
    wanted = rows_from_arrays(model.__table__, names).subquery("wanted")
    columns = model.__table__.c
    same = and_(*(columns[name] == wanted.c[name] for name in names))
    return Statement(
        f"imports.find_{model.__tablename__}_by_{key}", select(model).join(wanted, same)
    )


FIND_USERS = _find(User, "idp_user_id")
FIND_USERS_BY_ID = _find(User, "id")
FIND_MEMBERSHIPS_OF_USERS = _find(Membership, "user_id")
FIND_MEMBERSHIPS = _find(Membership, "idp_membership_id")
FIND_SUBSCRIPTIONS = _find(Subscription, "bp_subscription_id")


class Rows:
    """The rows by the ids that lines use; a line's changes are entered as soon as it is checked."""

    def __init__(self, lines: Iterable[Line]) -> None:
        """Read what exists, with one statement for each table that lines name."""
        valid = [line for line in lines if not line.errors]
        self.tenants: dict[str, Tenant] = {}
        self.users: dict[tuple[UUID, str], User] = {}
        self.users_by_id: dict[UUID, User] = {}
        self.memberships: dict[tuple[UUID, UUID], Membership] = {}
        self.memberships_by_id: dict[tuple[UUID, str], Membership] = {}
        self.subscriptions: dict[tuple[UUID, str], Subscription] = {}
        self._owners: dict[UUID, list[UUID]] = {}  # once for each way in which they are owner
        self._new_owners: dict[UUID, set[UUID]] = {}
        org_ids = {line.values["idp_org_id"] for line in valid}
        if org_ids:
            for tenant in FIND_TENANTS.all(idp_org_ids=list(org_ids)):
                self.tenants[tenant.idp_org_id] = tenant
        people = [line for line in valid if line.kind in (Kind.USER, Kind.MEMBERSHIP)]
        for user in self._find(FIND_USERS, "idp_user_id", people):
            self.add_user(user)
        self._read_memberships(people)
        self.managed: dict[UUID, bool] = {}  # by a directory: whether a group gives the role
        if self.users_by_id:
            self.managed |= dict(FIND_MANAGED.all(ids=list(self.users_by_id)))
        billed = [line for line in valid if line.kind is Kind.SUBSCRIPTION]
        for one in self._find(FIND_SUBSCRIPTIONS, "bp_subscription_id", billed):
            self.subscriptions[one.tenant_id, one.bp_subscription_id] = one

    def tenant_of(self, line: Line) -> Tenant:
        """The tenant that the line names; raises Invalid."""
        org_id = line.values["idp_org_id"]
        if org_id not in self.tenants:
            raise unknown("idp_org_id", "no tenant has this id", org_id)
        return self.tenants[org_id]

    def user_of(self, line: Line, tenant: Tenant) -> User:
        """The user that a membership's line names; raises Invalid."""
        user_id = line.values.get("idp_user_id", "")
        if (tenant.id, user_id) not in self.users:
            raise unknown("idp_user_id", "no user of the tenant has this id", user_id)
        return self.users[tenant.id, user_id]

    def add_user(self, user: User) -> None:
        """Enter a user that the set adds or changes."""
        self.users[user.tenant_id, user.idp_user_id] = user
        self.users_by_id[user.id] = user

    def add_membership(self, membership: Membership) -> None:
        """Enter a membership that the set adds or changes."""
        place = membership.tenant_id, membership.user_id
        before = self.memberships.get(place, membership)
        self.memberships_by_id.pop((before.tenant_id, before.idp_membership_id), None)
        self.memberships[place] = membership
        if membership.idp_membership_id:
            self.memberships_by_id[membership.tenant_id, membership.idp_membership_id] = membership

    def note_owner(self, membership: Membership | None, user: User) -> None:
        """Note a user who is an active owner, after a change of the user or the membership."""
        if membership and membership.role == Role.OWNER and membership.is_active and user.is_active:
            self._new_owners.setdefault(user.tenant_id, set()).add(user.id)

    def lose_owner(
        self, tenant_id: UUID, user_id: UUID, *, actor: Actor, in_one_way: bool = False
    ) -> None:
        """Take the user from the tenant's active owners; raises LastOwner. Locks the tenant."""
        if tenant_id not in self._owners:
            self._owners[tenant_id] = LOCK_OWNERS.scalars(tenant_id=tenant_id)
        known = self._owners[tenant_id]
        known.extend(self._new_owners.pop(tenant_id, set()).difference(known))
        self._owners[tenant_id] = owners.check_one_remains(
            known,
            user_id,
            tenant_id=tenant_id,
            actor=actor,
            allow_ownerless=False,
            in_one_way=in_one_way,
        )

    def _find(self, statement: Statement, key: str, lines: Sequence[Line]) -> list[Any]:
        wanted = {
            (self.tenants[line.values["idp_org_id"]].id, line.values[key])
            for line in lines
            if line.values["idp_org_id"] in self.tenants and line.values.get(key)
        }
        rows = [{"tenant_id": tenant_id, key: value} for tenant_id, value in wanted]
        return statement.all(**as_arrays(rows)) if rows else []

    def _read_memberships(self, lines: Sequence[Line]) -> None:
        """The memberships of the users, and those that lines name by id, with their users."""
        named = self._find(FIND_MEMBERSHIPS, "idp_membership_id", lines)
        for one in named:
            self.add_membership(one)
        others = [one for one in named if one.user_id not in self.users_by_id]
        if others:
            keys = [{"tenant_id": one.tenant_id, "id": one.user_id} for one in others]
            found = FIND_USERS_BY_ID.all(**as_arrays(keys))
            self.users_by_id |= {user.id: user for user in found}
        keys = [{"tenant_id": one.tenant_id, "user_id": one.id} for one in self.users.values()]
        for one in FIND_MEMBERSHIPS_OF_USERS.all(**as_arrays(keys)) if keys else ():
            self.add_membership(one)


def unknown(field: str, reason: str, value: str) -> Invalid:
    """The error of a line that names something that does not exist."""
    return Invalid(value_error(["body", field], reason, value))

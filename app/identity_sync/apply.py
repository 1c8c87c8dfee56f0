"""Showing what the identity provider says as rows: tenants, users, memberships.

Before a merge and after it, the objects' states each say what the rows should hold; the rows
get the difference. A row that is missing gets everything, as soon as enough is known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import Select, exists, func, or_, select, tuple_

from app.auth.models import ApiKey
from app.core.actors import SYSTEM_IDP
from app.core.db import transactions
from app.core.db.models import Row
from app.core.errors import Conflict
from app.extensions import db
from app.identity_sync.merge_state import membership_values, organization_values, user_values
from app.identity_sync.store import Key, Kind, Objects, Pair
from app.memberships import service as memberships
from app.memberships.models import Membership
from app.tenants import service as tenants
from app.tenants import slugs
from app.tenants.models import Tenant
from app.users import service as users
from app.users.models import User

R = TypeVar("R", bound=Row)
REPEATED = ("is_active", True)
USER_FIELDS = frozenset({"email", "first_name", "last_name", "is_active"})
END = frozenset({"is_active"})
MADE_BY_TENANT = or_(
    User.created_by_user_id.not_like("%:%"),
    User.created_by_user_id.like("key:%")
    & exists().where(
        func.concat("key:", ApiKey.id) == User.created_by_user_id, ApiKey.tenant_id.is_not(None)
    ),
)
"""A column: whether the row was made with a tenant's own credential, a user token or a key."""


class Projection:
    """The rows of one delivery; see the module."""

    def __init__(self, objects: Objects, roles: Mapping[str, str], *, force: bool) -> None:
        self._objects = objects
        self._roles = roles
        self._force = force
        self._shown: set[UUID] = set()

    def show_organization(self, organization_id: str) -> bool:
        """Make or change the organization's tenant; whether it was made."""
        key = Key(Kind.ORGANIZATION, organization_id)
        values = organization_values(self._objects.now[key], organization_id)
        if values is None:
            return False
        tenant = _find_tenants([organization_id]).get(organization_id)
        if tenant is None:
            _create_tenant(organization_id, values)
            return True
        before = organization_values(self._objects.before[key], organization_id)
        changes = self._changes(before, values)
        if before is None or before["slug"] == values["slug"]:
            changes.pop("slug", None)  # a slug given here stays
        _change_tenant(tenant, changes)
        return False

    def show_pairs(self, pairs: Sequence[Pair]) -> set[Pair]:
        """Make or change the users and memberships of these; those that have to wait."""
        pairs = list(dict.fromkeys(pairs))
        self._objects.load([Key(Kind.USER, pair.user_id) for pair in pairs])
        found = _find_tenants({pair.organization_id for pair in pairs})
        people = _find_users(
            {(t.id, p.user_id) for p in pairs if (t := found.get(p.organization_id))}
        )
        members = _find_memberships([(user.tenant_id, user.id) for user in people.values()])
        connections = self._objects.connections()
        waiting = set()
        for pair in pairs:
            tenant = found.get(pair.organization_id)
            if tenant is None:
                waiting.add(pair)
                continue
            user = people.get((tenant.id, pair.user_id))
            membership = members.get((tenant.id, user.id)) if user else None
            keys = connections.get(pair, [])
            if not self._show_pair(pair, keys, tenant, user, membership):
                waiting.add(pair)
        return waiting

    def show_user(self, user_id: str) -> None:
        """Change the person's rows in tenants where the provider knows no membership.

        A tenant may name anybody as its user: of a row that it made itself only the end follows,
        so that it learns nothing about other tenants' people.
        """
        found = select(User, MADE_BY_TENANT).where(User.idp_user_id == user_id)
        fresh = found.order_by(User.tenant_id).execution_options(populate_existing=True)
        for user, is_claimed in db.session.execute(fresh).all():
            self._show_user(user, user_id, only=END if is_claimed else USER_FIELDS)

    def _show_pair(
        self,
        pair: Pair,
        keys: Sequence[Key],
        tenant: Tenant,
        user: User | None,
        membership: Membership | None,
    ) -> bool:
        """False where the membership, or its user, is not known yet."""
        objects, user_key = self._objects, Key(Kind.USER, pair.user_id)
        after = membership_values(
            [objects.now[k] for k in keys], objects.now[user_key], self._roles
        )
        if after is None:
            return False
        before = membership_values(
            [objects.before[k] for k in keys], objects.before[user_key], self._roles
        )
        if user is None:
            known = user_values(objects.now[user_key])
            if known is None:
                return False
            values = {**known, "idp_user_id": pair.user_id}
            user = users.create(tenant.id, values, actor=SYSTEM_IDP)
        else:
            self._show_user(user, pair.user_id, anew=before is None)
        if membership is None:
            values = {**after, "user_id": user.id}
            memberships.create(tenant.id, values, actor=SYSTEM_IDP)
            return True
        if changes := self._changes(before, after):
            memberships.change(membership.id, changes, actor=SYSTEM_IDP, allow_ownerless=True)
        return True

    def _show_user(
        self,
        user: User,
        user_id: str,
        *,
        anew: bool = False,
        only: Collection[str] = USER_FIELDS,
    ) -> None:
        """Change one row of the person; ``anew`` where it was not theirs for certain before."""
        key = Key(Kind.USER, user_id)
        after = user_values(self._objects.now[key])
        if after is None or user.id in self._shown:
            return
        self._shown.add(user.id)
        before = None if anew else user_values(self._objects.before[key])
        changes = {name: v for name, v in self._changes(before, after).items() if name in only}
        if changes:
            users.update(user.id, changes, actor=SYSTEM_IDP, allow_ownerless=True)

    def _changes(
        self, before: Mapping[str, Any] | None, after: Mapping[str, Any]
    ) -> dict[str, Any]:
        """What the delivery changed; everything, where nothing was known before.

        That something goes on does not make active again what was ended here.
        """
        if before is None or self._force:
            return {name: value for name, value in after.items() if (name, value) != REPEATED}
        return {name: value for name, value in after.items() if before[name] != value}


def _create_tenant(organization_id: str, values: Mapping[str, Any]) -> None:
    values = {**values, "idp_org_id": organization_id}
    _with_free_slug(values, lambda wanted: tenants.create(wanted, actor=SYSTEM_IDP))


def _change_tenant(tenant: Tenant, values: dict[str, Any]) -> None:
    is_active = values.pop("is_active", None)
    if "slug" in values:
        _with_free_slug(values, lambda wanted: tenants.update(tenant.id, wanted, actor=SYSTEM_IDP))
    elif values:
        tenants.update(tenant.id, values, actor=SYSTEM_IDP)
    if is_active is not None:
        tenants.set_active(tenant.id, is_active, actor=SYSTEM_IDP)


def _with_free_slug(values: Mapping[str, Any], write: Callable[[dict[str, Any]], Tenant]) -> None:
    """Write ``values`` with the first slug, made of the text they have for it, that is free."""
    for slug in slugs.candidates(values["slug"]):
        try:
            with transactions.savepoint():
                write({**values, "slug": slug})
                return
        except Conflict as taken:
            if taken.code != "slug_taken":
                raise


def _find_tenants(organization_ids: Collection[str]) -> dict[str, Tenant]:
    if not organization_ids:
        return {}
    rows = _all(select(Tenant).where(Tenant.idp_org_id.in_(organization_ids)))
    return {row.idp_org_id: row for row in rows}


def _find_users(keys: Collection[tuple[UUID, str]]) -> dict[tuple[UUID, str], User]:
    if not keys:
        return {}
    wanted = tuple_(User.tenant_id, User.idp_user_id).in_(keys)
    return {(row.tenant_id, row.idp_user_id): row for row in _all(select(User).where(wanted))}


def _find_memberships(keys: Collection[tuple[UUID, UUID]]) -> dict[tuple[UUID, UUID], Membership]:
    if not keys:
        return {}
    wanted = tuple_(Membership.tenant_id, Membership.user_id).in_(keys)
    rows = _all(select(Membership).where(wanted))
    return {(row.tenant_id, row.user_id): row for row in rows}


def _all(statement: Select[tuple[R]]) -> Sequence[R]:
    """The rows as they are now, not as an earlier delivery in this process saw them."""
    fresh = statement.execution_options(populate_existing=True)
    return db.session.execute(fresh).scalars().all()

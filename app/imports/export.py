"""A tenant as the lines of an import, read page by page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, Uuid, and_, any_, bindparam, select

from app.core.db.pages import Page, Paging
from app.core.db.statements import Statement
from app.flags.overrides import list_overrides
from app.imports.line_schemas import SCHEMAS, Kind
from app.memberships.models import Membership
from app.memberships.service import list_memberships
from app.plans.models import PlanPreset
from app.roles.access_resources import list_resources
from app.roles.authority import read as read_roles
from app.roles.role_assignments import list_assignments
from app.roles.role_graph import chain_of
from app.subscriptions.service import list_subscriptions
from app.tenants.models import Tenant
from app.users.models import User
from app.users.service import list_users

PAGE = 5_000  # rows; in a read of the past, a page costs as much as its table
ALWAYS = frozenset({"flag_value", "meta_data"})
"""Fields that are written even where they are empty."""

FIND_SUBJECTS = Statement(
    "imports.find_subjects",
    select(Membership.id, User.idp_user_id)
    .join(User, and_(User.tenant_id == Membership.tenant_id, User.id == Membership.user_id))
    .where(
        Membership.tenant_id == bindparam("tenant_id"),
        Membership.id == any_(bindparam("ids", type_=ARRAY(Uuid))),
    ),
)
FIND_NOW = Statement("imports.find_now", "SELECT now()")  # the moment, in a read of the past
FIND_PRESET_NAMES = Statement("imports.find_preset_names", select(PlanPreset.id, PlanPreset.name))


def lines_of(tenant: Tenant) -> Iterator[dict[str, Any]]:
    """The tenant's lines, in an order in which an import can apply them.

    Empty values are left out, and so are overrides and assignments that have expired, and
    assignments of groups and API keys or by the identity provider; of the past also rows of a person
    or a preset that the audit trail does not have.
    """
    now = FIND_NOW.scalar()
    yield _line(Kind.TENANT, tenant)
    parent = {"idp_org_id": tenant.idp_org_id}
    for page in _pages(list_subscriptions, tenant.id):
        yield from (_line(Kind.SUBSCRIPTION, row, parent) for row in page)
    for page in _pages(list_users, tenant.id):
        yield from (_line(Kind.USER, row, parent) for row in page)
    for page in _pages(list_memberships, tenant.id):
        subjects = _subjects(tenant.id, [row.id for row in page])
        for row in page:
            if subject := subjects.get(row.id):
                yield _line(Kind.MEMBERSHIP, row, {**parent, "idp_user_id": subject})
    for page in _pages(list_overrides, tenant.id):
        current = [row for row in page if row.expires_at is None or row.expires_at > now]
        names = dict(FIND_PRESET_NAMES.all())
        for row in current:
            if name := names.get(row.plan_preset_id):
                yield _line(Kind.OVERRIDE, row, {**parent, "preset_name": name})
    roles = read_roles(tenant.id)
    for role in sorted(
        roles.by_key.values(), key=lambda one: (len(chain_of(roles, one.key)), one.key)
    ):
        if role.tenant_id is not None:
            yield _line(Kind.ROLE, role, parent)
    for row in _resources(tenant.id):
        place = {"type": row.type, "id": row.id}
        yield _line(Kind.RESOURCE, row, {**parent, "resource": place})
    for page in _pages(list_assignments, tenant.id):
        current = [row for row in page if row.expires_at is None or row.expires_at > now]
        current = [row for row in current if row.membership_id and row.source == "api"]
        subjects = _subjects(tenant.id, [row.membership_id for row in current])
        for row in current:
            if subject := subjects.get(row.membership_id):
                yield _line(Kind.ROLE_ASSIGNMENT, row, {**parent, "idp_user_id": subject})


def _subjects(tenant_id: UUID, membership_ids: list[UUID]) -> dict[UUID, str]:
    return dict(FIND_SUBJECTS.all(tenant_id=tenant_id, ids=membership_ids))


def _resources(tenant_id: UUID) -> Iterator[Any]:
    """The resources, each after its parent."""

    def read(paging: Paging, *, tenant_id: UUID) -> Page:
        return list_resources(tenant_id=tenant_id, cursor=paging.cursor, limit=paging.limit)

    told: set[tuple[str, str] | None] = {None}
    waiting = defaultdict(list)  # rows whose parent comes later
    for page in _pages(read, tenant_id):
        for row in page:
            parent = row.parent and (row.parent["type"], row.parent["id"])
            waiting[parent].append(row)
            ready = waiting.pop(parent) if parent in told else []
            while ready:
                one = ready.pop()
                yield one
                told.add((one.type, one.id))
                ready += waiting.pop((one.type, one.id), ())


def _pages(read: Callable[..., Page], tenant_id: UUID) -> Iterator[Sequence[Any]]:
    cursor = None
    while True:
        page = read(Paging(PAGE, cursor), tenant_id=tenant_id)
        if page.items:
            yield page.items
        if page.next_cursor is None:
            return
        cursor = page.next_cursor


def _line(kind: Kind, row: Any, parent: Mapping[str, Any] | None = None) -> dict[str, Any]:
    schema = SCHEMAS[kind]
    columns = vars(row) if isinstance(row, SimpleNamespace) else row._asdict()
    values = {**columns, **(parent or {}), "type": kind.value}
    named = {name: values[name] for name in ("type", *schema.fields) if name in values}
    return {
        name: value for name, value in named.items() if name in ALWAYS or value not in (None, "")
    }

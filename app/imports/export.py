"""A tenant as the lines of an import, read page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, Uuid, any_, bindparam, select

from app.core.clock import utcnow
from app.core.db.pages import Page, Paging
from app.core.db.statements import Statement
from app.flags.overrides import list_overrides
from app.imports.line_schemas import SCHEMAS, Kind
from app.memberships.service import list_memberships
from app.plans.models import PlanPreset
from app.subscriptions.service import list_subscriptions
from app.tenants.models import Tenant
from app.users.models import User
from app.users.service import list_users

PAGE = 500  # rows
ALWAYS = frozenset({"flag_value", "meta_data"})
"""Fields that are written even where they are empty."""

FIND_SUBJECTS = Statement(
    "imports.find_subjects",
    select(User.id, User.idp_user_id).where(
        User.tenant_id == bindparam("tenant_id"),
        User.id == any_(bindparam("ids", type_=ARRAY(Uuid))),
    ),
)
FIND_PRESET_NAMES = Statement("imports.find_preset_names", select(PlanPreset.id, PlanPreset.name))


def lines_of(tenant: Tenant) -> Iterator[dict[str, Any]]:
    """The tenant's lines, in an order in which an import can apply them.

    Empty values are left out, and so are overrides that have expired.
    """
    yield _line(Kind.TENANT, tenant)
    parent = {"idp_org_id": tenant.idp_org_id}
    for page in _pages(list_subscriptions, tenant.id):
        yield from (_line(Kind.SUBSCRIPTION, row, parent) for row in page)
    for page in _pages(list_users, tenant.id):
        yield from (_line(Kind.USER, row, parent) for row in page)
    for page in _pages(list_memberships, tenant.id):
        ids = [row.user_id for row in page]
        subjects = dict(FIND_SUBJECTS.all(tenant_id=tenant.id, ids=ids))
        for row in page:
            yield _line(Kind.MEMBERSHIP, row, {**parent, "idp_user_id": subjects[row.user_id]})
    for page in _pages(list_overrides, tenant.id):
        current = [row for row in page if row.expires_at is None or row.expires_at > utcnow()]
        names = dict(FIND_PRESET_NAMES.all())
        for row in current:
            yield _line(Kind.OVERRIDE, row, {**parent, "preset_name": names[row.plan_preset_id]})


def _pages(read: Callable[..., Page], tenant_id: UUID) -> Iterator[Sequence[Any]]:
    cursor = None
    while True:
        page = read(Paging(PAGE, cursor), tenant_id=tenant_id)
        if page.items:
            yield page.items
        if page.next_cursor is None:
            return
        cursor = page.next_cursor


def _line(kind: Kind, row: Any, parent: Mapping[str, str] | None = None) -> dict[str, Any]:
    schema = SCHEMAS[kind]
    values = {**row._asdict(), **(parent or {}), "type": kind.value}
    named = {name: values[name] for name in ("type", *schema.fields) if name in values}
    return {
        name: value for name, value in named.items() if name in ALWAYS or value not in (None, "")
    }

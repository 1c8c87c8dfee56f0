"""The platform's own notes on tenants, which no tenant's credential can read."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import bindparam, select

from app.audit.service import add_event
from app.core.actors import Actor
from app.core.clock import utcnow
from app.core.db import queries, tenancy
from app.core.db.queries import Change
from app.core.db.statements import Statement
from app.core.db.writes import insert_row
from app.tenants.models import Tenant, TenantNotes

FIND = Statement(
    "tenant_notes.find",
    select(Tenant.id, TenantNotes)
    .outerjoin(TenantNotes, TenantNotes.tenant_id == Tenant.id)
    .where(Tenant.id == bindparam("id")),
)


def get_notes(tenant_id: UUID | str) -> TenantNotes:
    """The notes on a tenant; empty, with version 0, where there are none. Raises NotFound."""
    found = FIND.get(Tenant, id=queries.parse_id(tenant_id, Tenant))
    notes: TenantNotes = found.TenantNotes
    return TenantNotes._make((found.id, 0, None, None, "")) if notes.version is None else notes


def set_notes(tenant_id: UUID | str, text: str, *, actor: Actor) -> TenantNotes:
    """Replace the notes on a tenant. Raises NotFound, and PreconditionFailed for another version.

    The audit row is the platform's. It does not contain the text, because it outlives the tenant.
    """
    tenant, _ = queries.lock_with(Tenant, tenant_id)
    known = get_notes(tenant.id)
    queries.check_precondition(known)
    if known.text == text:
        return known
    notes = known._replace(
        version=known.version + 1, updated_at=utcnow(), updated_by=actor.id, text=text
    )
    if queries.update_where(TenantNotes, {"tenant_id": tenant.id}, notes._asdict()) == 0:
        insert_row(TenantNotes, notes._asdict())
    change = Change({"characters": len(known.text)}, {"characters": len(text)})
    tenancy.enter(tenancy.PLATFORM)  # a page of the console sees the tenant's rows only
    add_event(
        "tenant.notes_changed", target_id=str(tenant.id), tenant_id=None, change=change, actor=actor
    )
    return notes

"""The includes ``tenant`` and ``history`` of many resources; names of the audit trail."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import ARRAY, bindparam, func, select, true

from app.audit import known_names, schemas
from app.audit.models import AuditEvent
from app.auth.permissions import Permission
from app.core.db.statements import Statement
from app.core.http.includes import by_id, columns_of, own_column, related, related_lists
from app.core.validation.fields import AwareDateTime, Bool, JsonObject, ListOf, Nested, Str, Uuid
from app.core.validation.schemas import AnswerSchema
from app.tenants.models import Tenant

CHANGES_SHOWN = 10
MAX_HISTORY = 4 * 1024 * 1024  # bytes of all values in an answer's histories


class TenantSummarySchema(AnswerSchema):
    """Whose row it is."""

    examples = {"slug": "acme-ltd", "name": "Acme Ltd", "plan_name": "growth"}

    id = Uuid()
    slug = Str(description="The tenant's slug.")
    name = Str(description="The tenant's name.")
    plan_name = Str()
    is_active = Bool(description="False: the tenant is suspended.")


class ChangeSchema(schemas.Documented, AnswerSchema):
    """One of the row's last changes."""

    id = Uuid(description="The id in the audit trail.")
    created_at = AwareDateTime()
    actor = Str()
    action = Str()
    before = JsonObject(
        nullable=True, description="The changed fields before; null where all would exceed 4 MiB."
    )
    after = JsonObject(
        nullable=True, description="The same fields after; null where all would exceed 4 MiB."
    )
    request_id = Str()
    reason = schemas.Reason(attribute="request_id", dump_only=True)


def _histories() -> sa.Executable:
    """The last changes of each target in ``keys``. Values beyond 4 MiB in total are NULL."""
    each = func.unnest(bindparam("keys", type_=ARRAY(sa.Text)))
    keys = each.table_valued("target_id").render_derived()
    newest_first = (AuditEvent.created_at.desc(), AuditEvent.id.desc())
    last = (
        select(AuditEvent)
        .where(AuditEvent.target_id == keys.c.target_id)
        .order_by(*newest_first)
        .limit(CHANGES_SHOWN)
        .lateral("last")
    )
    size = func.octet_length(sa.cast(last.c.before, sa.Text)) + func.octet_length(
        sa.cast(last.c.after, sa.Text)
    )
    is_shown = func.sum(size).over(order_by=(last.c.created_at.desc(), last.c.id)) <= MAX_HISTORY
    return (
        select(
            last.c.target_id,
            last.c.id,
            last.c.created_at,
            last.c.actor,
            last.c.action,
            sa.case((is_shown, last.c.before)).label("before"),
            sa.case((is_shown, last.c.after)).label("after"),
            last.c.request_id,
        )
        .select_from(keys.join(last, true()))
        .order_by(last.c.created_at.desc(), last.c.id.desc())
    )


TENANT = related(
    "tenant",
    Nested(
        TenantSummarySchema,
        nullable=True,
        description="The row's tenant; null for a row of no tenant.",
    ),
    by_id("tenants.find_summaries", *columns_of(Tenant, TenantSummarySchema)),
    lambda row: getattr(row, "tenant_id", row.id),
    Permission.TENANTS_READ,
)
TENANT_ID = own_column("tenant_id", Uuid(description="The id of the row's tenant."))
HISTORY = related_lists(
    "history",
    ListOf(Nested(ChangeSchema), description=f"The last {CHANGES_SHOWN} changes, newest first."),
    Statement("audit_events.find_histories", _histories()),
    lambda row: str(row.id),
    Permission.AUDIT_READ,
)
ACTORS_NAME = related(
    "actor_name",
    Str(metadata=schemas.ACTOR_NAME),
    by_id("audit_events.find_actor_names", AuditEvent.id, known_names.ACTOR_NAME),
    lambda row: row.id,
    column="actor_name",
)
TARGETS_NAME = related(
    "target_name",
    Str(
        description="The name, key or address of the changed row, and of a membership that of its"
        " user; empty for a row that was deleted, or of another type."
    ),
    by_id("audit_events.find_target_names", AuditEvent.id, known_names.TARGET_NAME),
    lambda row: row.id,
    column="target_name",
)

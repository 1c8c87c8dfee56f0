"""The audit trail: record changes and list them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from app.audit.models import AuditEvent
from app.core.actors import Actor
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.db.queries import Change, insert_row
from app.core.db.tenancy import PLATFORM_TENANT_ID, narrow
from app.core.observability.logs import current_request_id


def record(action: str, target: Any, change: Change, *, actor: Actor) -> None:
    """Add one audit row for ``change`` of the row ``target``, in the current transaction.

    ``action`` is ``<resource>.<past participle>``, such as ``user.meta_data_patched``. ``change``
    must not contain secrets.
    """
    resource = action.partition(".")[0]
    add_event(
        action,
        target_type=resource,
        target_id=str(target.id),
        tenant_id=target.id if resource == "tenant" else getattr(target, "tenant_id", None),
        change=change,
        actor=actor,
    )


def record_creation(
    action: str, target: Any, *, actor: Actor, hidden: frozenset[str] = frozenset()
) -> None:
    """Add one audit row for a new row; ``after`` has all its columns except ``hidden``."""
    after = {name: value for name, value in target._asdict().items() if name not in hidden}
    record(action, target, Change({}, after), actor=actor)


def add_event(
    action: str,
    *,
    target_type: str,
    target_id: str,
    tenant_id: UUID | None,
    change: Change,
    actor: Actor,
) -> None:
    """Add one audit row for any target, also one that has no id."""
    insert_row(
        AuditEvent,
        {
            "tenant_id": tenant_id or PLATFORM_TENANT_ID,
            "actor": actor.id,
            "action": action,
            "target_type": target_type,
            "target_id": target_id,
            "before": change.before,
            "after": change.after,
            "request_id": current_request_id(),
        },
    )


def list_events(
    paging: Paging = FIRST_PAGE,
    *,
    tenant_id: UUID | None = None,
    filters: Mapping[str, str] | None = None,
) -> Page:
    """One page of a tenant's audit trail (of all, for the platform).

    ``filters`` are values of columns.
    """
    return paginate(AuditEvent, paging, equal=filters, tenant_id=narrow(tenant_id))

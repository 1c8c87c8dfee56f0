"""The audit trail: record changes and list them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, Text, any_, bindparam

from app.audit.models import AuditEvent
from app.audit.outbox import EVENT_TYPES, TARGET_TYPE_OF
from app.core.actors import Actor
from app.core.db.list_conditions import Condition
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.db.queries import Change
from app.core.db.tenancy import PLATFORM_TENANT_ID
from app.core.db.writes import Writes, writes
from app.core.jobs.signals import Signal
from app.core.observability import telemetry
from app.core.observability.logs import current_request_id
from app.events.models import OutboxEvent

OUTBOX = Signal("events:outbox")  # events wait for their positions
HAS_ACTION = AuditEvent.action == any_(bindparam("actions", type_=ARRAY(Text)))


def record(
    action: str,
    target: Any,
    change: Change | None,
    *,
    actor: Actor,
    hidden: frozenset[str] = frozenset(),
    into: Writes | None = None,
) -> None:
    """Add one audit row for ``change`` of the row ``target``; none if nothing has changed.

    ``action`` is ``<resource>.<past participle>``, such as ``user.meta_data_patched``. ``target``
    is the row after the change. ``change`` must not contain secrets. ``hidden`` names the columns
    of ``target`` that contain secrets.
    """
    if change is not None:
        data, place = _columns(target, hidden), _place_of(action, target)
        add_event(action, **place, change=change, actor=actor, data=data, into=into)


def record_creation(
    action: str,
    target: Any,
    *,
    actor: Actor,
    hidden: frozenset[str] = frozenset(),
    into: Writes | None = None,
) -> None:
    """Add one audit row for the new row ``target``, with all its columns except ``hidden``."""
    change = Change({}, _columns(target, hidden))
    add_event(action, **_place_of(action, target), change=change, actor=actor, into=into)


def add_event(
    action: str,
    *,
    target_id: str,
    tenant_id: UUID | None,
    change: Change,
    actor: Actor,
    data: Mapping[str, object] | None = None,
    into: Writes | None = None,
) -> None:
    """Add one audit row for any target, also for one that is not a row with an id.

    The same statement adds a row to the outbox. It becomes an event if the action is in
    :data:`app.audit.outbox.EVENT_TYPES`; otherwise it has no type and only gives a position.
    ``data`` has the target's columns after the change. None means: ``change.after`` has them all.
    """
    values = {
        "tenant_id": tenant_id or PLATFORM_TENANT_ID,
        "actor": actor.id,
        "action": action,
        "target_type": TARGET_TYPE_OF[action],
        "target_id": target_id,
        "row_id": _uuid(target_id),
        "before": change.before,
        "after": change.after,
        "request_id": current_request_id(),
    }
    event_type = EVENT_TYPES.get(action, "")
    values |= {"type": event_type, "is_platform_actor": actor.is_operator}
    values["data"] = data if event_type else None
    values |= telemetry.carried()
    with writes(into) as w:
        w.insert_into((AuditEvent, OutboxEvent), values)
    OUTBOX.notify()


def announce(event_type: str, after: Mapping[str, object], *, actor: Actor, into: Writes) -> None:
    """Add an event that belongs to no tenant and has no audit row."""
    values = {
        "tenant_id": PLATFORM_TENANT_ID,
        "type": event_type,
        "actor": actor.id,
        "is_platform_actor": actor.is_operator,
        "request_id": current_request_id(),
        "before": {},
        "after": after,
        "data": None,
        **telemetry.carried(),
    }
    into.insert(OutboxEvent, values)
    OUTBOX.notify()


def _uuid(text: str) -> UUID | None:
    with suppress(ValueError):
        found = UUID(text)
        return found if str(found) == text else None  # it may be a key of 32 digits
    return None


def _place_of(action: str, target: Any) -> dict[str, Any]:
    is_tenant = action.startswith("tenant.")
    tenant_id = target.id if is_tenant else getattr(target, "tenant_id", None)
    return {"target_id": str(target.id), "tenant_id": tenant_id}


def _columns(row: Any, hidden: frozenset[str]) -> dict[str, object]:
    values: dict[str, object] = row._asdict()
    return {name: values[name] for name in values if name not in hidden} if hidden else values


def list_events(
    paging: Paging = FIRST_PAGE, *, tenant_id: UUID | None = None, **equal: object
) -> Page:
    """One page of a tenant's audit trail; the platform sees all tenants without ``tenant_id``.

    ``equal`` are values of columns. ``target_type`` uses the index on actions.
    """
    target_type = equal.pop("target_type", None)
    conditions = []
    if target_type is not None:
        actions = [action for action, of in TARGET_TYPE_OF.items() if of == target_type]
        conditions.append(Condition(HAS_ACTION, {"actions": actions}))
    return paginate(AuditEvent, paging, *conditions, equal=equal, tenant_id=tenant_id)

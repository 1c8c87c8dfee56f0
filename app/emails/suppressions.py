"""The suppression list: addresses not to send e-mail to, with the reasons."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, select
from sqlalchemy.dialects.postgresql import insert
from uuid_utils.compat import uuid7

from app.audit import service as audit
from app.core.actors import SYSTEM_EMAIL, Actor
from app.core.clock import utcnow
from app.core.db.bulk import parameters
from app.core.db.pages import Page, paginate
from app.core.db.queries import update_row
from app.core.db.statements import Statement
from app.core.errors import NotFound
from app.emails import events
from app.emails.models import Suppression

MAX_KEY = 255  # characters of a message id or a scope in an index; a B-tree key has a limit

ADD_OR_LOCK_SUPPRESSION = Statement(
    "suppressions.add_or_lock",
    insert(Suppression.__table__)
    .values(parameters(Suppression))
    .on_conflict_do_update(
        index_elements=["address", "cause", "scope"], set_={"source": Suppression.source}
    )
    .returning(*Suppression.__table__.columns),
)
LOCK_SUPPRESSIONS = Statement(
    "suppressions.lock",
    select(Suppression)
    .where(Suppression.address == bindparam("address"), Suppression.is_active.is_(True))
    .order_by(Suppression.id)
    .with_for_update(),
)


def normalized(address: str) -> str:
    """The form in which addresses are compared: lower case, without surrounding space."""
    return address.strip().lower()


def list_active(
    *,
    limit: int,
    cursor: str | None,
    address: str | None = None,
    filters: Mapping[str, Any] | None = None,
) -> Page:
    """The reasons that apply now, oldest first."""
    equal = {**(filters or {}), "is_active": True}
    if address is not None:
        equal["address"] = normalized(address)
    return paginate(Suppression, equal=equal, limit=limit, cursor=cursor)


def lift(address: str, *, actor: Actor) -> None:
    """Remove an address from the list for all causes and scopes; NotFound if it is not listed.

    An older suppression that arrives later does not add it again.
    """
    rows = LOCK_SUPPRESSIONS.all(address=normalized(address))
    if not rows:
        raise NotFound
    now = utcnow()
    for row in rows:
        row, change = update_row(Suppression, row, {"lifted_at": now, "is_active": False})
        if change is not None:
            audit.record("suppression.lifted", row, change, actor=actor)


def record_change(change: events.Suppression, *, address: str, source: str, at: datetime) -> None:
    """Store when the address was last added to the list, or removed, for this cause."""
    now = utcnow()
    row = ADD_OR_LOCK_SUPPRESSION.first(
        id=uuid7(),
        created_at=now,
        updated_at=now,
        version=1,
        address=address,
        cause=change.cause.value,
        scope=change.scope[:MAX_KEY],
        source=source,
        suppressed_at=None,
        lifted_at=None,
        is_active=False,
    )
    suppressed_at = _later(row.suppressed_at, None if change.lifted else at)
    lifted_at = _later(row.lifted_at, at if change.lifted else None)
    is_active = suppressed_at is not None and (lifted_at is None or suppressed_at >= lifted_at)
    values = {
        "suppressed_at": suppressed_at,
        "lifted_at": lifted_at,
        "is_active": is_active,
        "source": source,
    }
    row, changed = update_row(Suppression, row, values)
    if changed is not None and "is_active" in changed.after:
        action = "suppression.added" if is_active else "suppression.lifted"
        audit.record(action, row, changed, actor=SYSTEM_EMAIL)


def _later(known: datetime | None, said: datetime | None) -> datetime | None:
    return max((moment for moment in (known, said) if moment is not None), default=None)

"""The suppression list: addresses not to send e-mail to, with the reasons."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import bindparam, select

from app.audit import service as audit
from app.core.actors import SYSTEM_EMAIL, Actor
from app.core.clock import utcnow
from app.core.db.bulk import as_arrays, update_rows
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.db.queries import update_row
from app.core.db.statements import Statement
from app.core.db.writes import Writes, insert_arrays, with_defaults
from app.core.errors import NotFound
from app.emails.events import EmailEvent
from app.emails.models import Suppression

MAX_KEY = 255  # characters of a message id or a scope in an index; a B-tree key has a limit
KEY = ("address", "cause", "scope")

ADD_OR_LOCK_SUPPRESSIONS = Statement(
    "suppressions.add_or_lock",
    insert_arrays(Suppression.__table__)
    .on_conflict_do_update(index_elements=KEY, set_={"source": Suppression.source})
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


def list_active(paging: Paging = FIRST_PAGE, *, address: str | None = None, **equal: str) -> Page:
    """The reasons that apply now; ``equal`` are values of columns."""
    if address is not None:
        equal["address"] = normalized(address)
    return paginate(Suppression, paging, equal={**equal, "is_active": True})


def lift(address: str, *, actor: Actor) -> None:
    """Remove an address from the list for all causes and scopes; NotFound if it is not listed.

    An older suppression that arrives later does not add it again.
    """
    rows = LOCK_SUPPRESSIONS.all(address=normalized(address))
    if not rows:
        raise NotFound.of(Suppression)
    now = utcnow()
    for row in rows:
        row, change = update_row(Suppression, row, {"lifted_at": now, "is_active": False})
        audit.record("suppression.lifted", row, change, actor=actor)


def record_changes(events: Iterable[EmailEvent], *, source: str, into: Writes) -> None:
    """Store when each address was last added to the list, or removed, for each cause."""
    by_key: defaultdict[tuple[str, str, str], list[tuple[bool, datetime]]] = defaultdict(list)
    for event in events:
        for one in event.suppressions:
            key = normalized(event.recipient), one.cause.value, one.scope[:MAX_KEY]
            by_key[key].append((one.lifted, event.occurred_at))
    if not by_key:
        return
    common = {"source": source, "is_active": False}
    new = [
        with_defaults(Suppression.__table__, dict(zip(KEY, key, strict=True)) | common)
        for key in sorted(by_key)
    ]
    rows = ADD_OR_LOCK_SUPPRESSIONS.all(**as_arrays(new))
    said = [(row, by_key[row.address, row.cause, row.scope]) for row in rows]
    values = [(row, {**_values(row, moments), "source": source}) for row, moments in said]
    for row, change in update_rows(Suppression, values):
        if change is not None and "is_active" in change.after:
            action = "suppression.added" if row.is_active else "suppression.lifted"
            audit.record(action, row, change, actor=SYSTEM_EMAIL, into=into)


def _values(row: Suppression, said: Iterable[tuple[bool, datetime]]) -> dict[str, object]:
    """The values of a row after what was known and what is said now."""
    known = [(False, row.suppressed_at), (True, row.lifted_at), *said]
    suppressed_at, lifted_at = (
        max((at for lifted, at in known if lifted is is_lifted and at), default=None)
        for is_lifted in (False, True)
    )
    is_active = suppressed_at is not None and (lifted_at is None or suppressed_at >= lifted_at)
    return {"suppressed_at": suppressed_at, "lifted_at": lifted_at, "is_active": is_active}

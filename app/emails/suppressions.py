"""The suppression list: addresses not to send e-mail to, with the reasons."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import bindparam, select, update
from sqlalchemy.dialects.postgresql import insert
from uuid_utils.compat import uuid7

from app.audit import service as audit
from app.core.actors import SYSTEM_EMAIL, Actor
from app.core.clock import utcnow
from app.core.db.bulk import as_arrays, rows_from_arrays
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.db.queries import Change, update_row
from app.core.db.statements import Statement
from app.core.db.writes import Writes
from app.core.errors import NotFound
from app.emails import events
from app.emails.models import Suppression

MAX_KEY = 255  # characters of a message id or a scope in an index; a B-tree key has a limit

COLUMNS = tuple(Suppression.__table__.columns.keys())
ADD_OR_LOCK_SUPPRESSIONS = Statement(
    "suppressions.add_or_lock",
    insert(Suppression.__table__)
    .from_select(COLUMNS, rows_from_arrays(Suppression.__table__, COLUMNS), include_defaults=False)
    .on_conflict_do_update(
        index_elements=["address", "cause", "scope"], set_={"source": Suppression.source}
    )
    .returning(*Suppression.__table__.columns),
)
_written = rows_from_arrays(
    Suppression.__table__, ("id", "updated_at", "source", "suppressed_at", "lifted_at", "is_active")
).subquery("written")
WRITE_SUPPRESSIONS = Statement(
    "suppressions.write",
    update(Suppression.__table__)
    .where(Suppression.id == _written.c.id)
    .values(
        version=Suppression.version + 1,
        **{column.name: column for column in _written.c if column.name != "id"},
    ),
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
        if change is not None:
            audit.record("suppression.lifted", row, change, actor=actor)


class Said(NamedTuple):
    """What one event says: an address was added to the list, or removed, at a moment."""

    address: str
    change: events.Suppression
    at: datetime

    @property
    def key(self) -> tuple[str, str, str]:
        return self.address, self.change.cause.value, self.change.scope[:MAX_KEY]


def record_changes(changes: Iterable[Said], *, source: str, into: Writes) -> None:
    """Store when each address was last added to the list, or removed, for each cause."""
    by_key: dict[tuple[str, str, str], list[Said]] = {}
    for said in changes:
        by_key.setdefault(said.key, []).append(said)
    if not by_key:
        return
    now = utcnow()
    new = [_new_row(*key, source, now) for key in sorted(by_key)]
    written = []
    for row in ADD_OR_LOCK_SUPPRESSIONS.all(**as_arrays(new)):
        values = {**_values(row, by_key[row.address, row.cause, row.scope]), "source": source}
        after = {name: value for name, value in values.items() if value != getattr(row, name)}
        if after:
            written.append({"id": row.id, "updated_at": now, **values})
        if "is_active" in after:
            action = "suppression.added" if values["is_active"] else "suppression.lifted"
            before = {name: getattr(row, name) for name in after}
            row, change = row._replace(**values), Change(before, after)
            audit.record(action, row, change, actor=SYSTEM_EMAIL, into=into)
    if written:
        WRITE_SUPPRESSIONS.execute(**as_arrays(written))


def _new_row(
    address: str, cause: str, scope: str, source: str, created_at: datetime
) -> dict[str, object]:
    return {
        "id": uuid7(),
        "created_at": created_at,
        "updated_at": created_at,
        "version": 1,
        "address": address,
        "cause": cause,
        "scope": scope,
        "source": source,
        "suppressed_at": None,
        "lifted_at": None,
        "is_active": False,
    }


def _values(row: Suppression, changes: Iterable[Said]) -> dict[str, object]:
    """What follows for a row from what was known and what is said now."""
    added, lifted = [row.suppressed_at], [row.lifted_at]
    for said in changes:
        (lifted if said.change.lifted else added).append(said.at)
    suppressed_at, lifted_at = (
        max((moment for moment in moments if moment is not None), default=None)
        for moments in (added, lifted)
    )
    return {
        "suppressed_at": suppressed_at,
        "lifted_at": lifted_at,
        "is_active": suppressed_at is not None
        and (lifted_at is None or suppressed_at >= lifted_at),
    }

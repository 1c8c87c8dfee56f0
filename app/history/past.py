"""Reading as of an earlier moment: the statements of a request find the rows that there were.

The schema ``past`` has a view for each table whose changes the audit trail records completely, with
the name of the table, and its ``now()`` is the moment. So with this schema first on the search path
every statement reads the past. The credential and its rights are those of today.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from app.core.clock import utcnow
from app.core.db.statements import Statement
from app.core.db.tenancy import PLATFORM_TENANT_ID, current_scope, in_platform_scope
from app.core.errors import Invalid, Location, NotFound, value_error
from app.events import service as events
from app.history import completeness
from app.tenants.models import Tenant

LOCATION = ("query", "as_of")
FIND_MOMENT = Statement(
    "history.find_moment",
    "SELECT p.position, p.number, a.created_at FROM audit_events a CROSS JOIN LATERAL ("
    "  SELECT p.position, p.number FROM audit_positions p"
    "  WHERE p.tenant_id = a.tenant_id AND p.id = a.id LIMIT 1"
    ") p WHERE a.created_at <= :time ORDER BY a.created_at DESC, a.id DESC LIMIT 1",
)
FIND_POSITION = Statement(
    "history.find_position",
    "SELECT p.position, p.number, a.created_at FROM audit_positions p"
    " JOIN audit_events a ON a.tenant_id = p.tenant_id AND a.id = p.id"
    " WHERE p.position <= :position ORDER BY p.position DESC, p.number DESC LIMIT 1",
)
ENTER = Statement(
    "history.enter",
    "SELECT set_config('app.as_of_position', :position, true),"
    " set_config('app.as_of_number', :number, true), set_config('app.as_of', :time, true),"
    " set_config('app.as_of_tenant', :tenant_id, true),"
    " set_config('search_path', 'past, public, pg_catalog', true)",
)
FIND_TENANT = Statement(
    "history.find_tenant",
    "SELECT tenant_id FROM audit_events WHERE target_id = :id AND tenant_id <> :platform LIMIT 1",
)
HAS_TENANT = Statement(
    "history.has_tenant",
    "SELECT EXISTS (SELECT FROM past.tenants WHERE id = CAST(:id AS uuid))",
)


class Moment(NamedTuple):
    """The place in the trail of the last audit row at or before a time.

    Rows of some kinds, which are no events, have the position of the event before them.
    """

    position: int
    number: int
    time: datetime


def enter(
    as_of: str, tenant_id: UUID | None, operation: str, row_id: UUID | None = None
) -> dict[str, str]:
    """Let the statements of this transaction read the rows of a moment; returns answer headers.

    ``as_of`` is as in :func:`find`. ``tenant_id`` is the tenant whose rows are wanted, None for
    all; ``row_id`` is the only row that is wanted. Raises what :func:`find` does, and NotFound
    where the tenant did not exist.
    """
    own = current_scope().tenant_id
    found = find(as_of, LOCATION)
    only = wanted = own or tenant_id
    if wanted is None and row_id is not None:
        only = FIND_TENANT.scalar(id=str(row_id), platform=PLATFORM_TENANT_ID)
    place = {name: str(value) for name, value in found._asdict().items()}
    ENTER.execute(**place, tenant_id=str(only or ""))
    if wanted is not None and not HAS_TENANT.scalar(id=str(wanted)):
        raise NotFound.of(Tenant)
    headers = {"X-As-Of": str(events.shown_position(found.position, own))}
    if lacks := completeness.lacks_of(operation, is_ordered=found.number >= 0):
        headers["X-As-Of-Incomplete"] = ",".join(lacks)
    return headers


def find(text: str, loc: Location) -> Moment:
    """The moment of a time (RFC 3339) or of a position of the event feed.

    Raises Invalid at ``loc`` for a text that is neither, a time in the future, and a position that
    was not given to this credential.
    """
    time = _time(text, loc)
    own = current_scope().tenant_id
    with in_platform_scope():  # the order is that of all tenants
        if time is not None:
            found = FIND_MOMENT.first(time=time)
        else:
            try:
                position = events.read_position(text, own, loc)
            except Invalid:
                told = "neither a time (RFC 3339) nor a position that the feed has shown to you"
                raise Invalid(value_error(loc, told, text)) from None
            if position > events.last_position():  # or a replica does not have it yet
                raise Invalid(value_error(loc, "no event has this position yet", text))
            found = FIND_POSITION.first(position=position)
    if found is None:
        return Moment(0, 0, time or datetime.min.replace(tzinfo=UTC))
    return Moment(found.position, found.number, time or found.created_at)


def _time(text: str, loc: Location) -> datetime | None:
    """The time, None for a text that is none; raises Invalid for one in the future."""
    if text.isdecimal():
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    if time.tzinfo is None:
        raise Invalid(value_error(loc, "a time needs an offset, such as Z", text))
    if time > utcnow():
        raise Invalid(value_error(loc, "must not be in the future", text))
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise Invalid(value_error(loc, "year 0 is out of range", text)) from None

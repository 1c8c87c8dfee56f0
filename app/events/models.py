"""Events: what changed, for other programs to read in one order.

A change adds a row to the outbox, in its transaction. The sequencer moves the rows of committed
transactions to ``events`` and gives each the next position.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import JSON, BigInteger, Identity, Index, LargeBinary, SmallInteger, Text, text
from sqlalchemy.orm import Mapped, mapped_column
from uuid_utils.compat import uuid7

from app.core.clock import utcnow
from app.core.db.models import Moment
from app.core.json_text import Json
from app.extensions import Model

Document = JSON(none_as_null=True)


class EventColumns:
    """The columns that the outbox and ``events`` share.

    ``id`` is that of the audit row, if the change has an audit row. ``tenant_id`` is
    :data:`app.core.db.tenancy.PLATFORM_TENANT_ID` for events of no tenant. ``before`` and ``after``
    are the changed columns. ``data`` are all columns after the change; it is None for a new row,
    whose columns are in ``after``. Where they are too large for an event, all three are None.
    ``traceparent`` (W3C Trace Context) is the span of the request or job that made the change,
    ``""`` without traces.
    """

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True, sort_order=-1)
    id: Mapped[UUID] = mapped_column(default=uuid7)
    created_at: Mapped[datetime] = mapped_column(Moment, default=utcnow)
    type: Mapped[str] = mapped_column(Text)
    actor: Mapped[str] = mapped_column(Text)
    is_platform_actor: Mapped[bool]
    request_id: Mapped[str] = mapped_column(Text, default="")
    traceparent: Mapped[str] = mapped_column(Text, default="", server_default="")
    before: Mapped[dict[str, Json] | None] = mapped_column(Document)
    after: Mapped[dict[str, Json] | None] = mapped_column(Document)
    data: Mapped[dict[str, Json] | None] = mapped_column(Document)


class OutboxEvent(EventColumns, Model):
    """An event without a position; with the type ``""``, an audit row that is not an event.

    PostgreSQL assigns ``number`` at the insertion. The second of two changes of one row waits for
    the commit of the first, so its number is larger. ``target_type`` and ``row_id`` are those of
    the place that the audit row gets; an event without an audit row has no ``target_type``.
    """

    __tablename__ = "event_outbox"
    __table_args__ = (Index(None, "number"),)

    number: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    target_type: Mapped[str] = mapped_column(Text, default="", server_default="")
    row_id: Mapped[UUID | None] = mapped_column()


class Event(EventColumns, Model):
    """An event at its position. The application's role may only read, insert and delete."""

    __tablename__ = "events"
    __table_args__ = (
        Index(None, "position"),
        Index(None, "id"),
        Index(None, "type", "position"),
        Index(None, "tenant_id", "type", "position"),
    )

    position: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)


# A deletion of a tenant's rows, one table after the other, does not miss rows that move between
# tables.
_outbox: Any = OutboxEvent.__table__
_outbox.add_is_dependent_on(Event.__table__)


class EventFeed(Model):
    """The only row: the last assigned position, and the last whose event was removed for its age.

    ``cursor_key`` encrypts positions for tenants. The audit rows up to ``ordered_at`` and
    ``ordered_id`` have a place in ``audit_positions``: ``ordered_count`` rows were looked at, and
    ``ordered_position`` is the last position among them. The tenants with changes before
    ``based_position`` have the bases that were due.
    """

    __tablename__ = "event_feed"

    id: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    last_position: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    removed_position: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    cursor_key: Mapped[bytes] = mapped_column(
        LargeBinary,
        server_default=text(
            "decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex')"
        ),
    )
    ordered_at: Mapped[datetime] = mapped_column(Moment, server_default=text("'-infinity'"))
    ordered_id: Mapped[UUID] = mapped_column(
        server_default=text("'00000000-0000-0000-0000-000000000000'")
    )
    ordered_position: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    ordered_count: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    based_position: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))

"""Rows that mention a person or an organization, where no index finds them.

The tables are the audit trail, the webhook inbox and the stored answers of idempotency keys. They
are read from one end to the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Text, and_, cast, func, or_, select

from app.audit.models import AuditEvent
from app.core.http.idempotency import IdempotencyKey
from app.privacy.identifiers import Identifiers
from app.webhooks.models import WebhookEvent

Progress = Callable[[str, int], None]
"""Called with the name of what is read, and the number of its rows read so far."""

AUDIT, EVENTS = AuditEvent.__table__, WebhookEvent.__table__
ANSWERS = IdempotencyKey.__table__
BATCH = 200


def audit_rows(
    connection: Connection,
    who: Identifiers,
    progress: Progress,
    *,
    since: datetime | None = None,
    targets: Mapping[str, Sequence[str]] | None = None,
) -> Iterator[Row]:
    """The audit rows that may mention ``who``, and all rows of ``targets`` (ids by type)."""
    patterns = who.patterns()
    columns = [cast(AUDIT.c.before, Text), cast(AUDIT.c.after, Text)]
    columns += [AUDIT.c.target_id, AUDIT.c.actor]
    conditions: list[Any] = [func.lower(one).like(func.any(patterns)) for one in columns]
    for kind, ids in (targets or {}).items():
        conditions.append(and_(AUDIT.c.target_type == kind, AUDIT.c.target_id.in_(ids)))
    chosen = select(AUDIT).where(or_(*conditions))
    if since is not None:
        chosen = chosen.where(AUDIT.c.created_at >= since)
    for number, row in enumerate(streamed(connection, chosen), 1):
        progress("Audit rows", number)
        yield row


def inbox_rows(
    connection: Connection, who: Identifiers, progress: Progress, *, since: datetime | None = None
) -> Iterator[Row]:
    """The webhook events whose body or key mentions ``who``."""
    chosen = select(EVENTS)
    if since is not None:
        chosen = chosen.where(EVENTS.c.created_at >= since)
    for number, row in enumerate(streamed(connection, chosen), 1):
        progress("Webhook events", number)
        if _mentions(row, who):
            yield row


def answer_rows(connection: Connection, who: Identifiers) -> Iterator[Row]:
    """The stored answers of idempotency keys that mention ``who``."""
    body = func.lower(func.convert_from(ANSWERS.c.body, "UTF8"))
    chosen = select(ANSWERS).where(body.like(func.any(who.patterns())))
    return (row for row in streamed(connection, chosen) if who.are_in_body(row.body))


def has_own_key(row: Row, who: Identifiers) -> bool:
    """Whether the key of an event contains the person's data."""
    return any(who.is_in(part) for part in [row.external_id, *row.external_id.split(":")])


def _mentions(row: Row, who: Identifiers) -> bool:
    return has_own_key(row, who) or (row.body is not None and who.are_in_body(row.body))


def streamed(connection: Connection, statement: Any) -> Iterator[Row]:
    """The statement's rows, :data:`BATCH` at a time, because tables may be larger than memory."""
    options = {"stream_results": True, "yield_per": BATCH}
    yield from connection.execute(statement, execution_options=options)

"""Looking through what no index finds somebody in: the audit trail, the inbox, stored answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Text, and_, cast, func, or_, select

from app.audit.models import AuditEvent
from app.core.http.idempotency import IdempotencyKey
from app.privacy.mentions import Identifiers
from app.webhooks.models import WebhookEvent

Progress = Callable[[str, int], None]
"""Told what is looked through, and how many rows of it have been by now."""

AUDIT, EVENTS = AuditEvent.__table__, WebhookEvent.__table__
ANSWERS = IdempotencyKey.__table__
BATCH = 200


def audit_rows(
    session: Connection,
    who: Identifiers,
    progress: Progress,
    *,
    since: datetime | None = None,
    targets: Mapping[str, Sequence[str]] | None = None,
) -> Iterator[Row]:
    """The audit rows that may mention ``who``, and all those of ``targets`` (type to ids)."""
    patterns = who.patterns()
    columns = [cast(AUDIT.c.before, Text), cast(AUDIT.c.after, Text)]
    columns += [AUDIT.c.target_id, AUDIT.c.actor]
    conditions: list[Any] = [func.lower(one).like(func.any(patterns)) for one in columns]
    for kind, ids in (targets or {}).items():
        conditions.append(and_(AUDIT.c.target_type == kind, AUDIT.c.target_id.in_(ids)))
    chosen = select(AUDIT).where(or_(*conditions))
    if since is not None:
        chosen = chosen.where(AUDIT.c.created_at >= since)
    for number, row in enumerate(streamed(session, chosen), 1):
        progress("Audit rows", number)
        yield row


def inbox_rows(
    session: Connection, who: Identifiers, progress: Progress, *, since: datetime | None = None
) -> Iterator[Row]:
    """The events whose payload, or key, mentions ``who``."""
    chosen = select(EVENTS)
    if since is not None:
        chosen = chosen.where(EVENTS.c.created_at >= since)
    for number, row in enumerate(streamed(session, chosen), 1):
        progress("Webhook events", number)
        if _mentions(row, who):
            yield row


def answer_rows(session: Connection, who: Identifiers) -> Iterator[Row]:
    """The stored answers of idempotency keys that mention ``who``."""
    spelled = func.lower(func.convert_from(ANSWERS.c.body, "UTF8"))
    chosen = select(ANSWERS).where(spelled.like(func.any(who.patterns())))
    return (row for row in streamed(session, chosen) if who.are_in_body(row.body))


def has_own_key(row: Row, who: Identifiers) -> bool:
    """Whether the key that an event is known by is made of the person's data."""
    return any(who.is_in(part) for part in [row.external_id, *row.external_id.split(":")])


def _mentions(row: Row, who: Identifiers) -> bool:
    return has_own_key(row, who) or (row.body is not None and who.are_in_body(row.body))


def streamed(session: Connection, statement: Any) -> Iterator[Row]:
    """The statement's rows, a few at a time: tables may be larger than memory."""
    options = {"stream_results": True, "yield_per": BATCH}
    yield from session.execute(statement, execution_options=options)

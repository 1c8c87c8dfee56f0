"""Rows that mention a person or an organization, where no index finds them.

The tables are the audit trail, the event feed and its outbox, the webhook inbox, the stored answers
of idempotency keys, the e-mail tables, and the files and faults of imports. They are read from one
end to the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Executable, Row, Table, select, tuple_

from app.audit.models import AuditEvent
from app.core.http.idempotency import IdempotencyKey
from app.emails.models import EmailEventRecord, EmailMessage, Suppression
from app.events.models import Event, OutboxEvent
from app.imports.models import Import, ImportFault, ImportPiece
from app.inbox.models import WebhookEvent
from app.inbox.providers.payloads import Unreadable, parse
from app.privacy.identifiers import ANY_ID, Identifiers

Progress = Callable[[str, int], None]
"""Called with the name of what is read, and the number of its rows read so far."""

Targets = Mapping[str, Sequence[str]]
"""Ids of rows by their type, as the audit trail names them: ``user``, ``tenant``."""

AUDIT, EVENTS = AuditEvent.__table__, WebhookEvent.__table__
ANSWERS = IdempotencyKey.__table__
IMPORTS, FAULTS, PIECES = Import.__table__, ImportFault.__table__, ImportPiece.__table__
OUTBOX, PLACED = OutboxEvent.__table__, Event.__table__
FEED: tuple[Table, ...] = (OUTBOX, PLACED)
"""In the order in which an event moves, so that none is missed between the two."""
MAILS: tuple[Table, ...] = tuple(
    model.__table__ for model in (EmailEventRecord, EmailMessage, Suppression)
)
MAIL_TEXTS = ("message_id", "scope", "reason", "response", "url", "tags", "metadata")
BATCH = 200
LONGEST = 2048  # bytes of an id or an address in a file, encoded


class Found(NamedTuple):
    """The webhook events and answers older than ``since`` that mention people, by their keys."""

    since: datetime
    events: Sequence[UUID]
    answers: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Reader:
    """Reads tables from one end to the other.

    With ``since`` only newer rows of the audit trail, the inbox, the answers and e-mail are read;
    with ``found`` only these rows of the inbox and of the answers.
    """

    connection: Connection
    progress: Progress
    since: datetime | None = None
    found: Found | None = None

    def rows(self, statement: Executable) -> Iterator[Row]:
        """The rows, :data:`BATCH` at a time, because tables may be larger than memory."""
        options = {"stream_results": True, "yield_per": BATCH}
        yield from self.connection.execute(statement, execution_options=options)

    def audit_rows(
        self, who: Identifiers, targets: Targets, tenant_id: UUID | None = None
    ) -> Iterator[Row]:
        """The audit rows that mention ``who``, and all rows of ``targets``; of one tenant if given."""
        conditions = [] if tenant_id is None else [AUDIT.c.tenant_id == tenant_id]
        for row in self._new(AUDIT, "Audit rows", *conditions):
            named = {row.target_type: row.target_id, "actor": row.actor}
            if row.target_id in targets.get(row.target_type, ()) or who.are_in(
                [row.before, row.after, named, row.request_id]
            ):
                yield row

    def feed_rows(
        self, table: Table, who: Identifiers, targets: Targets, *conditions: ColumnElement[bool]
    ) -> Iterator[Row]:
        """The events of a table of :data:`FEED` that mention ``who``, and all of ``targets``."""
        for row in self._all(table, "Events", *conditions):
            if is_about(row, targets) or who.are_in(
                [row.before, row.after, row.data, {"actor": row.actor}, row.request_id]
            ):
                yield row

    def inbox_rows(
        self, who: Identifiers, *, or_unreadable: bool = False, organization: str | None = None
    ) -> Iterator[Row]:
        """The webhook events that mention ``who``.

        With ``or_unreadable`` also those whose body is not JSON: it may mention anybody. With an
        ``organization``, only those that mention the organization too.
        """
        place = Identifiers(frozenset({organization or ""}), frozenset(), fields=ANY_ID)
        chosen = [] if self.found is None else [EVENTS.c.id.in_(self.found.events)]
        for row in self._new(EVENTS, "Webhook events", *chosen):
            is_meant = (or_unreadable and _is_unreadable(row.body)) or _mentions(row, who)
            if is_meant and (organization is None or _mentions(row, place)):
                yield row

    def answer_rows(self, who: Identifiers) -> Iterator[Row]:
        """The stored answers of idempotency keys that mention ``who``."""
        key = tuple_(ANSWERS.c.scope, ANSWERS.c.key)
        chosen = [] if self.found is None else [key.in_(self.found.answers)]
        for row in self._new(ANSWERS, "Stored answers", *chosen):
            if who.are_in([{"id": row.key}, row.headers]) or (
                row.body and who.are_in_body(row.body)
            ):
                yield row

    def mail_rows(self, table: Table, who: Identifiers) -> Iterator[tuple[UUID, dict[str, object]]]:
        """The rows of an e-mail table about other recipients that mention ``who``.

        Each is the row's id and those of its :data:`MAIL_TEXTS` that mention ``who``.
        """
        names = [name for name in MAIL_TEXTS if name in table.c]
        for row in self._new(table, table.name):
            if row.address.lower() not in who.addresses:
                values = {name: row._mapping[name] for name in names}
                if found := {name: value for name, value in values.items() if who.are_in(value)}:
                    yield row.id, found

    def fault_rows(self, who: Identifiers) -> Iterator[Row]:
        """The faults of imports that mention ``who``."""
        for row in self._all(FAULTS, "Faults of imports"):
            names = [row.name, *(entry.get("input") for entry in row.errors)]
            if who.are_in([{"id": names}, row.errors]):
                yield row

    def has_open_import(self, who: Identifiers) -> bool:
        """Whether a file that is still to be applied mentions ``who``, perhaps."""
        unfinished = select(IMPORTS.c.id).where(IMPORTS.c.finished_at.is_(None))
        pieces = select(PIECES).where(PIECES.c.import_id.in_(unfinished))
        end = b""  # an id may begin in one piece and end in the next
        for row in self.rows(pieces.order_by(PIECES.c.import_id, PIECES.c.number)):
            if who.are_in_body(end + row.body):
                return True
            end = row.body[-LONGEST:]
        return False

    def piece_rows(self, who: Identifiers) -> Iterator[Mapping[str, object]]:
        """The parts of imported files that mention ``who``, with only the lines that do."""
        for row in self._all(PIECES, "Files of imports"):
            lines = [line for line in row.body.split(b"\n") if who.are_in_body(line)]
            if lines:
                yield {**row._mapping, "body": b"\n".join(lines)}

    def _new(self, table: Table, title: str, *conditions: ColumnElement[bool]) -> Iterator[Row]:
        recent = [] if self.since is None else [table.c.created_at >= self.since]
        return self._all(table, title, *conditions, *recent)

    def _all(self, table: Table, title: str, *conditions: ColumnElement[bool]) -> Iterator[Row]:
        for number, row in enumerate(self.rows(select(table).where(*conditions)), 1):
            self.progress(title, number)
            yield row


def is_about(event: Row, targets: Targets) -> bool:
    """Whether the event is about one of ``targets``."""
    ids = targets.get(event.type.partition(".")[0], ())
    return (event.data or event.after or {}).get("id") in ids


def has_own_key(row: Row, who: Identifiers) -> bool:
    """Whether the key of an event contains the person's data."""
    parts = [row.external_id, *row.external_id.split(":")]
    return any(who.is_in(part, "id") for part in parts)


def _mentions(row: Row, who: Identifiers) -> bool:
    return (
        has_own_key(row, who)
        or who.are_in([row.event_type, row.detail, row.headers, row.request_id])
        or (row.body is not None and who.are_in_body(row.body))
    )


def _is_unreadable(body: bytes | None) -> bool:
    try:
        parse(body or b"null")
    except Unreadable:
        return True
    return False

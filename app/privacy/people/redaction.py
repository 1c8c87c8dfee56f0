"""Redacting a person from the audit trail, the event feed and e-mail events about others.

No row is deleted. Each value that names the person is replaced, in the trail and the feed also the
actor ``platform:<subject>`` and a target or request id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from sqlalchemy import (
    JSON,
    Connection,
    Executable,
    Row,
    Select,
    bindparam,
    func,
    select,
    text,
    update,
)

from app.audit.models import ERASED, PastBase
from app.core.db.queries import id_or_none
from app.emails.models import EmailEventRecord, EmailMessage
from app.events.positions import LOCK_KEY
from app.inbox.providers.payloads import digest
from app.privacy.identifiers import Identifiers
from app.privacy.mentions import MAIL_TEXTS, MAILS, OUTBOX, PLACED, Reader, is_about
from app.privacy.people.person import Person
from app.privacy.people.person_rows import CONTACT_ADDRESSES, CONTACT_FIELDS, targets_of
from app.privacy.people.search_terms import rewrite_terms
from app.search.models import EntityType
from app.webhooks.deliveries.models import WebhookDelivery

PERSONAL = frozenset((
    "directory", "email", "first_name", "idp_invitation_id", "idp_user_id", "last_name", "meta_data",
))  # fmt: skip
MEMBERSHIP = frozenset({"idp_membership_id"})
MAIL_FIELDS = frozenset({"recipient", "address", *MAIL_TEXTS})

# Only the owner of the tables may update these; the functions are the owner's.
_redacted_values = bindparam("redacted", type_=JSON)
REDACT_AUDIT_EVENT = select(
    func.redact_audit_event(bindparam("tenant_id"), bindparam("id"), _redacted_values)
)
REDACT_EVENT = select(func.redact_event(bindparam("tenant_id"), bindparam("id"), _redacted_values))
REDACT_EMAIL_EVENT = select(func.redact_email_event(bindparam("id"), _redacted_values))
LOCK_BASES = text("SELECT past.lock_bases()")
WRITE_BASES_AGAIN = text("SELECT past.write_bases_again(:tenant_id, CAST(:row_ids AS uuid[]))")
OLDEST_ROWS = text(
    "SELECT * FROM past.oldest WHERE tenant_id = coalesce(CAST(:tenant_id AS uuid), tenant_id)"
)
BASES, DELIVERIES = PastBase.__table__, WebhookDelivery.__table__
FORGET_ANSWERS = (
    update(DELIVERIES).where(DELIVERIES.c.response_body.is_not(None)).values(response_body=None)
)


@dataclass(frozen=True)
class Erasure:
    """An erasure while it runs: ``done`` counts the rows changed or deleted in each table.

    ``redacted``: the tenants and targets of the audit rows that were changed.
    """

    person: Person
    reader: Reader
    done: Counter[str]
    redacted: set[tuple[UUID, str]] = field(default_factory=set)

    @property
    def connection(self) -> Connection:
        return self.reader.connection

    def run(self, table: str, statement: Executable) -> None:
        """Execute a statement that changes rows of the table."""
        rows = self.connection.execute(statement).rowcount
        if rows:
            self.done[table] += rows


def redact_trail(work: Erasure) -> None:
    """Replace the values that name the person in the audit trail."""
    person = work.person
    who, targets = person.in_rows, targets_of(work.connection, person)
    for row in list(work.reader.audit_rows(who, targets, person.only_in)):
        is_target = row.target_id in targets.get(row.target_type, ())
        values = _redacted(row, person, row.target_type, ("before", "after"), is_target=is_target)
        values["target_id"] = who.redact(row.target_id, row.target_type)
        if _write(work.connection, REDACT_AUDIT_EVENT, row, values):
            work.done["audit_events"] += 1
            work.redacted.add((row.tenant_id, row.target_id))


def redact_bases(work: Erasure) -> None:
    """Write these rows again in the bases of the past; what is older than the trail is redacted."""
    person, connection = work.person, work.connection
    connection.execute(LOCK_BASES)
    targets = targets_of(connection, person)
    only_in = None if person.only_in is None else str(person.only_in)
    for row in work.reader.rows(OLDEST_ROWS.bindparams(tenant_id=only_in)):
        is_target = str(row.row_id) in targets.get(row.target_type, ())
        values = _redacted(row, person, row.target_type, ("state",), is_target=is_target)
        changed = {name: values[name] for name in ("state", "actor")}
        if any(getattr(row, name) != value for name, value in changed.items()):
            key = [column == getattr(row, column.name) for column in BASES.primary_key]
            connection.execute(update(BASES).where(*key).values(changed))
            work.redacted.add((row.tenant_id, str(row.row_id)))
    for tenant_id in {tenant_id for tenant_id, _ in work.redacted}:
        ids = [one for tenant, one in work.redacted if tenant == tenant_id and id_or_none(one)]
        connection.execute(WRITE_BASES_AGAIN, {"tenant_id": str(tenant_id), "row_ids": ids})


def redact_feed(work: Erasure, *, after: int | None = None) -> None:
    """Redact events, with their data.

    With ``after``, only the events after this position, and those without a position. From then on
    no event gets a position until the transaction ends. Without it only those with a position, so
    that the sequencer does not have to wait. What endpoints have answered to these events is
    removed.
    """
    person, connection = work.person, work.connection
    targets = targets_of(connection, person)
    tables = [PLACED]
    if after is not None:
        connection.execute(select(func.pg_advisory_xact_lock(LOCK_KEY)))
        tables = [OUTBOX, PLACED]
    for table in tables:
        chosen = [] if person.only_in is None else [table.c.tenant_id == person.only_in]
        if after is not None and table is PLACED:
            chosen.append(table.c.position > after)
        rows = list(work.reader.feed_rows(table, person.in_rows, targets, *chosen))
        for row in rows:
            kind, is_target = row.type.partition(".")[0], is_about(row, targets)
            documents = ("before", "after", "data")
            values = _redacted(row, person, kind, documents, is_target=is_target)
            if _write(connection, REDACT_EVENT, row, values):
                work.done[table.name] += 1
        of_events = DELIVERIES.c.event_id.in_([row.id for row in rows])
        work.run("webhook_deliveries", FORGET_ANSWERS.where(of_events))


def redact_mails(work: Erasure) -> None:
    """Replace what names the person in e-mail events and messages of other recipients.

    Keys are replaced by their digests, so they remain different and still agree.
    """
    who = work.person.identifiers
    for table in MAILS:
        rows = dict(work.reader.mail_rows(table, who))
        for row_id, found in rows.items():
            values = {
                name: digest(str(value).encode())
                if name in ("message_id", "scope")
                else who.redact(value, name)
                for name, value in found.items()
            }
            if table is EmailEventRecord.__table__:
                work.connection.execute(REDACT_EMAIL_EVENT, {"id": row_id, "redacted": values})
            else:
                work.connection.execute(update(table).where(table.c.id == row_id).values(values))
            work.done[table.name] += 1
        if table is EmailMessage.__table__:
            rewrite_terms(work.connection, EntityType.EMAIL_MESSAGE, list(rows))


def _redacted(
    row: Row, person: Person, kind: str, names: Sequence[str], *, is_target: bool
) -> dict[str, object]:
    """The row's documents ``names``, actor and request id without the person.

    ``kind`` is what the row is about; ``is_target``: it is about a row of the person.
    """
    who = person.in_rows
    documents = {name: getattr(row, name) for name in names if getattr(row, name) is not None}
    hidden = frozenset[str]()  # fields whose values are replaced whatever they are
    if is_target and kind in ("user", "invitation", "join_request"):
        hidden = PERSONAL
    elif is_target and kind == "membership":
        hidden = MEMBERSHIP
    elif is_target or who.are_in(list(documents.values())):
        hidden = MAIL_FIELDS if kind == "email" else CONTACT_FIELDS
    redacted: dict[str, object] = {
        document: _without(who, values, hidden) for document, values in documents.items()
    }
    common = {name: who.redact(getattr(row, name), name) for name in ("actor", "request_id")}
    return {**redacted, **common}


def _without(
    who: Identifiers, document: Mapping[str, object], hidden: frozenset[str]
) -> dict[str, object]:
    """The document without the person, and without ``hidden``; the contact may be somebody else."""
    addresses = [str(document[name]) for name in CONTACT_ADDRESSES if document.get(name)]
    if addresses and not any(map(who.is_in, addresses)):
        hidden -= CONTACT_FIELDS
    return {
        name: ERASED if name in hidden and value else who.redact(value, name)
        for name, value in document.items()
    }


def _write(
    connection: Connection, function: Select[tuple[object]], row: Row, values: dict[str, object]
) -> bool:
    """Write the values of a row where they differ; returns whether they do."""
    if all(getattr(row, name) == value for name, value in values.items()):
        return False
    place = {"tenant_id": row.tenant_id, "id": row.id}
    connection.execute(function, {**place, "redacted": values})
    return True

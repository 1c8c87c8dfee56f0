"""Redacting a person from the audit trail, the event feed and e-mail events about others.

No row is deleted. Each value that names the person is replaced, in the trail and the feed also the
actor ``platform:<subject>`` and a target or request id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import JSON, Connection, Row, bindparam, func, select, update

from app.emails.models import EmailEventRecord, EmailMessage
from app.events.positions import LOCK_KEY
from app.privacy.identifiers import ERASED
from app.privacy.mentions import (
    MAIL_TEXTS,
    MAILS,
    OUTBOX,
    PLACED,
    Progress,
    audit_rows,
    feed_rows,
    is_about,
    mail_rows,
)
from app.privacy.person import CONTACT_FIELDS, Person, contact_targets
from app.privacy.terms import rewrite_terms
from app.search.models import EntityType
from app.webhook_deliveries.models import WebhookDelivery
from app.webhooks.providers.payloads import digest

PERSONAL = frozenset({"directory", "email", "first_name", "idp_user_id", "last_name", "meta_data"})

Targets = Mapping[str, Sequence[str]]

MAIL_FIELDS = frozenset({"recipient", "address", *MAIL_TEXTS})

# Only the owner of the tables may update these; the functions are the owner's.
REDACT_AUDIT_EVENT = select(
    func.redact_audit_event(
        bindparam("tenant_id"), bindparam("id"), bindparam("redacted", type_=JSON)
    )
)
REDACT_EVENT = select(
    func.redact_event(bindparam("tenant_id"), bindparam("id"), bindparam("redacted", type_=JSON))
)
DELIVERIES = WebhookDelivery.__table__.c
FORGET_ANSWERS = (
    update(WebhookDelivery.__table__)
    .where(DELIVERIES.response_body.is_not(None))
    .values(response_body=None)
)
REDACT_EMAIL_EVENT = select(
    func.redact_email_event(bindparam("id"), bindparam("redacted", type_=JSON))
)


def redact_trail(
    connection: Connection,
    person: Person,
    progress: Progress,
    done: Counter[str],
    **bounds: Any,
) -> None:
    """Replace the values that name the person; counts the changed rows in ``done``.

    ``bounds``: those of :func:`audit_rows`.
    """
    users = [str(user_id) for user_id in person.user_ids]
    targets = {"user": users, **contact_targets(connection, person)}
    who = person.identifiers
    bounds |= {"targets": targets, "tenant_id": person.only_in}
    for row in list(audit_rows(connection, who, progress, **bounds)):
        hidden = _hidden(row, person, targets)
        values = _redacted(row, person, hidden, ("before", "after"))
        values["target_id"] = who.redact(row.target_id)
        if _write(connection, REDACT_AUDIT_EVENT, row, values):
            done["audit_events"] += 1


def redact_feed(
    connection: Connection,
    person: Person,
    progress: Progress,
    done: Counter[str],
    *,
    after: int | None = None,
) -> None:
    """The same for events, with their data.

    With ``after`` only the events after this position, and those that have none yet. From then on
    no event gets a position until the transaction ends. Without it only those with a position, so
    that the sequencer does not have to wait. What endpoints have answered to these events is removed.
    """
    users = [str(user_id) for user_id in person.user_ids]
    targets = {"user": users, **contact_targets(connection, person)}
    tables = [PLACED]
    if after is not None:
        connection.execute(select(func.pg_advisory_xact_lock(LOCK_KEY)))
        tables = [OUTBOX, PLACED]
    for table in tables:
        chosen = [] if person.only_in is None else [table.c.tenant_id == person.only_in]
        if after is not None and table is PLACED:
            chosen.append(table.c.position > after)
        rows = list(
            feed_rows(connection, table, person.identifiers, progress, *chosen, targets=targets)
        )
        for row in rows:
            hidden = _hidden_in_event(row, person, targets)
            values = _redacted(row, person, hidden, ("before", "after", "data"))
            if _write(connection, REDACT_EVENT, row, values):
                done[table.name] += 1
        forgotten = FORGET_ANSWERS.where(DELIVERIES.event_id.in_([row.id for row in rows]))
        if count := connection.execute(forgotten).rowcount:
            done["webhook_deliveries"] += count


def redact_mails(
    connection: Connection,
    person: Person,
    progress: Progress,
    done: Counter[str],
    **bounds: Any,
) -> None:
    """Replace what names the person in e-mail events and messages of other recipients.

    Keys are replaced by their digests, so they remain different and still agree.
    """
    who = person.identifiers
    for table in MAILS:
        rows = list(mail_rows(connection, table, who, progress, **bounds))
        for row in rows:
            values = {name: who.redact(value) for name, value in row.items() if name != "id"}
            for name in values.keys() & {"message_id", "scope"}:
                values[name] = digest(row[name].encode())
            if table is EmailEventRecord.__table__:
                connection.execute(REDACT_EMAIL_EVENT, {"id": row["id"], "redacted": values})
            else:
                connection.execute(update(table).where(table.c.id == row["id"]).values(values))
            done[table.name] += 1
        if table is EmailMessage.__table__:
            rewrite_terms(connection, EntityType.EMAIL_MESSAGE, [row["id"] for row in rows])


def _redacted(
    row: Row, person: Person, hidden: frozenset[str], names: Sequence[str]
) -> dict[str, Any]:
    """The documents ``names``, the actor and the request id; ``hidden`` fields lose any value."""
    who = person.identifiers
    documents = {
        document: {
            name: ERASED if name in hidden and value else who.redact(value)
            for name, value in getattr(row, document).items()
        }
        for document in names
        if getattr(row, document) is not None
    }
    is_superadmin = row.actor.removeprefix("platform:") in person.subjects
    actor = f"platform:{ERASED}" if is_superadmin else row.actor
    return {**documents, "actor": actor, "request_id": who.redact(row.request_id)}


def _write(connection: Connection, function: Any, row: Row, values: Mapping[str, Any]) -> bool:
    """Write the values of a row where they differ; returns whether they do."""
    if all(getattr(row, name) == value for name, value in values.items()):
        return False
    place = {"tenant_id": row.tenant_id, "id": row.id}
    connection.execute(function, {**place, "redacted": values})
    return True


def _hidden(row: Row, person: Person, targets: Targets) -> frozenset[str]:
    """The fields of this row whose values are replaced whatever they are."""
    is_target = row.target_id in targets.get(row.target_type, ())
    if is_target and row.target_type == "user":
        return PERSONAL
    if is_target or person.identifiers.are_in([row.before, row.after]):
        return CONTACT_FIELDS
    return frozenset()


def _hidden_in_event(row: Row, person: Person, targets: Targets) -> frozenset[str]:
    """The same for an event."""
    kind, is_target = row.type.partition(".")[0], is_about(row, targets)
    if is_target and kind == "user":
        return PERSONAL
    if is_target or person.identifiers.are_in([row.before, row.after, row.data]):
        return MAIL_FIELDS if kind == "email" else CONTACT_FIELDS
    return frozenset()

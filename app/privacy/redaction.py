"""Redacting a person from the audit trail, the event feed and e-mail events about others.

No row is deleted. Each value that names the person is replaced, in the trail and the feed also the
actor ``platform:<subject>`` and a target or request id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, Table, update

from app.privacy.identifiers import ERASED
from app.privacy.mentions import (
    AUDIT,
    FEED,
    MAIL_TEXTS,
    MAILS,
    Progress,
    audit_rows,
    feed_rows,
    is_about,
    mail_rows,
)
from app.privacy.person import CONTACT_FIELDS, Person, contact_targets
from app.webhooks.providers.payloads import digest

PERSONAL = frozenset({"email", "first_name", "last_name", "meta_data", "idp_user_id"})

Targets = Mapping[str, Sequence[str]]

MAIL_FIELDS = frozenset({"recipient", "address", *MAIL_TEXTS})


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
    rows = audit_rows(connection, who, progress, targets=targets, **bounds)
    for row in list(rows):
        hidden = _hidden(row, person, targets)
        values = _redacted(row, person, hidden, ("before", "after"))
        _write(connection, AUDIT, row, {**values, "target_id": who.redact(row.target_id)}, done)


def redact_feed(
    connection: Connection,
    person: Person,
    progress: Progress,
    done: Counter[str],
    **bounds: Any,
) -> None:
    """The same for events, with their data; ``bounds``: those of :func:`feed_rows`."""
    users = [str(user_id) for user_id in person.user_ids]
    targets = {"user": users, **contact_targets(connection, person)}
    for table in FEED:
        rows = feed_rows(connection, table, person.identifiers, progress, targets=targets, **bounds)
        for row in list(rows):
            hidden = _hidden_in_event(row, person, targets)
            values = _redacted(row, person, hidden, ("before", "after", "data"))
            _write(connection, table, row, values, done)


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
        for row in list(mail_rows(connection, table, who, progress, **bounds)):
            values = {name: who.redact(value) for name, value in row.items() if name != "id"}
            for name in values.keys() & {"message_id", "scope"}:
                values[name] = digest(row[name].encode())
            connection.execute(update(table).where(table.c.id == row["id"]).values(values))
            done[table.name] += 1


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


def _write(
    connection: Connection, table: Table, row: Row, values: dict[str, Any], done: Counter[str]
) -> None:
    """Write the values of a row where they differ."""
    if values != {name: getattr(row, name) for name in values}:
        same = [column == getattr(row, column.name) for column in table.primary_key]
        connection.execute(update(table).where(*same).values(values))
        done[table.name] += 1


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

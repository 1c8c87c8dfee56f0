"""Redacting a person from the audit trail and from e-mail events about others.

No row is deleted. Each value that names the person is replaced, in the audit trail also the actor
``platform:<subject>`` and a target or request id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import JSON, Connection, Row, bindparam, func, select, update

from app.emails.models import EmailEventRecord, EmailMessage
from app.privacy.identifiers import ERASED
from app.privacy.mentions import MAILS, Progress, audit_rows, mail_rows
from app.privacy.person import CONTACT_FIELDS, Person, contact_targets
from app.privacy.terms import rewrite_terms
from app.search.models import EntityType
from app.webhooks.providers.payloads import digest

PERSONAL = frozenset({"email", "first_name", "last_name", "meta_data", "idp_user_id"})

Targets = Mapping[str, Sequence[str]]

# Only the owner of the tables may update these two; the functions are the owner's.
REDACT_AUDIT_EVENT = select(
    func.redact_audit_event(
        bindparam("tenant_id"), bindparam("id"), bindparam("redacted", type_=JSON)
    )
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
    bounds |= {"targets": targets, "tenant_id": person.only_in}
    rows = audit_rows(connection, person.identifiers, progress, **bounds)
    for row in list(rows):
        values = _redacted(row, person, targets)
        old = {name: getattr(row, name) for name in values}
        if values != old:
            place = {"tenant_id": row.tenant_id, "id": row.id}
            connection.execute(REDACT_AUDIT_EVENT, {**place, "redacted": values})
            done["audit_events"] += 1


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


def _redacted(row: Row, person: Person, targets: Targets) -> dict[str, Any]:
    who = person.identifiers
    hidden = _hidden(row, person, targets)
    sides = {
        side: {
            name: ERASED if name in hidden and value else who.redact(value)
            for name, value in getattr(row, side).items()
        }
        for side in ("before", "after")
    }
    is_superadmin = row.actor.removeprefix("platform:") in person.subjects
    actor = f"platform:{ERASED}" if is_superadmin else row.actor
    named = {name: who.redact(getattr(row, name)) for name in ("target_id", "request_id")}
    return {**sides, **named, "actor": actor}


def _hidden(row: Row, person: Person, targets: Targets) -> frozenset[str]:
    """The fields of this row whose values are replaced whatever they are."""
    is_target = row.target_id in targets.get(row.target_type, ())
    if is_target and row.target_type == "user":
        return PERSONAL
    if is_target or person.identifiers.are_in([row.before, row.after]):
        return CONTACT_FIELDS
    return frozenset()

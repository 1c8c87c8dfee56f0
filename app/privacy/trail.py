"""Taking a person out of the audit trail; each row stays, with who did what to which row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, update

from app.privacy import scans
from app.privacy.contacts import CONTACT_FIELDS, contact_targets
from app.privacy.mentions import ERASED
from app.privacy.person import Person

PERSONAL = frozenset({"email", "first_name", "last_name", "meta_data", "idp_user_id"})

Targets = Mapping[str, Sequence[str]]

WRITE = (
    update(scans.AUDIT)
    .where(
        scans.AUDIT.c.tenant_id == bindparam("of_tenant"), scans.AUDIT.c.id == bindparam("of_id")
    )
    .values(
        {
            name: bindparam(f"new_{name}", type_=scans.AUDIT.c[name].type)
            for name in ("before", "after", "actor", "target_id")
        }
    )
)


def scrub(
    session: Connection,
    person: Person,
    progress: scans.Progress,
    done: Counter[str],
    **bounds: Any,
) -> None:
    """Replace what the trail says of the person; counts the rows in ``done``."""
    users = [str(user_id) for user_id in person.user_ids]
    targets = {"user": users, **contact_targets(session, person)}
    rows = scans.audit_rows(session, person.identifiers, progress, targets=targets, **bounds)
    for row in list(rows):
        values = _scrubbed(row, person, targets)
        old = {name: getattr(row, name) for name in values}
        if values != old:
            new = {f"new_{name}": value for name, value in values.items()}
            session.execute(WRITE, {"of_tenant": row.tenant_id, "of_id": row.id, **new})
            done["audit_events"] += 1


def _scrubbed(row: Row, person: Person, targets: Targets) -> dict[str, Any]:
    who = person.identifiers
    hidden = _hidden(row, person, targets)
    sides = {
        side: {
            name: ERASED if name in hidden and value else who.scrub(value)
            for name, value in getattr(row, side).items()
        }
        for side in ("before", "after")
    }
    is_superadmin = row.actor.removeprefix("platform:") in person.subjects
    actor = f"platform:{ERASED}" if is_superadmin else row.actor
    return {**sides, "actor": actor, "target_id": who.scrub(row.target_id)}


def _hidden(row: Row, person: Person, targets: Targets) -> frozenset[str]:
    """The fields that are the person's in this row."""
    is_target = row.target_id in targets.get(row.target_type, ())
    if is_target and row.target_type == "user":
        return PERSONAL
    if is_target or person.identifiers.are_in([row.before, row.after]):
        return CONTACT_FIELDS
    return frozenset()

"""Audit rows about what only a directory says of a person, such as the title or the manager.

Names, the address and activity are those of the user and the membership, whose changes have rows of
their own.
"""

from __future__ import annotations

from collections.abc import Mapping

from app.audit.service import record
from app.core.actors import Actor
from app.core.db.queries import Change
from app.core.json_text import differs
from app.custom_fields.entities import USER
from app.scim.models import ScimUser
from app.users.models import User

RECORDED_ELSEWHERE = {"schemas", "active", "name.givenName", "name.familyName"}


def record_change(
    user: User, before: Mapping[str, object], after: Mapping[str, object], *, actor: Actor
) -> None:
    """Add an audit row, and an event, about the values of :func:`values_of` that differ, if any."""
    names = [
        name
        for name in sorted(before.keys() | after.keys())
        if differs(before.get(name), after.get(name))
    ]
    if names:
        change = Change(
            {"directory": {name: before.get(name) for name in names}},
            {"directory": {name: after.get(name) for name in names}},
        )
        record("user.directory_updated", user, change, actor=actor, hidden=USER.derived)


def values_of(row: ScimUser) -> dict[str, object]:
    """The directory's values, by SCIM's paths, such as ``title`` and ``urn:…:User:department``."""
    values: dict[str, object] = names_of(row)
    for name, value in row.attributes.items():
        if isinstance(value, dict):
            separator = ":" if name.startswith("urn:") else "."
            values |= {f"{name}{separator}{part}": one for part, one in value.items()}
        else:
            values[name] = value
    return {name: value for name, value in values.items() if name not in RECORDED_ELSEWHERE}


def names_of(row: ScimUser) -> dict[str, object]:
    """The names by which the directory knows the person."""
    return {"userName": row.user_name or None, "externalId": row.external_id or None}

"""Permissions of the product and templates of roles kept as code: applies what a file has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from app.auth.permissions import ROLE_PERMISSIONS, Role
from app.core.actors import Actor
from app.core.db.queries import find_row
from app.core.json_text import Json
from app.roles import product_permissions, service
from app.roles.authority import read
from app.roles.models import AccessRole, ProductPermission

PERMISSION_FIELDS = ("description", "group_name", "requires_flag", "requires_limit")
ROLE_FIELDS = ("name", "permissions", "inherits", "assignable_by")
Document = Mapping[str, list[dict[str, Any]]]


class Difference(NamedTuple):
    """A change by a file to one row. ``before`` is None for a new row."""

    item: str
    field: str
    before: Json
    after: Json


def apply(document: Document, *, actor: Actor) -> list[Difference]:
    """Create the permissions and templates that are missing, and update the others.

    What the file lacks stays as it is. In the five roles of memberships only the product's
    permissions are set. Returns what differs; raises what the services raise.
    """
    found: list[Difference] = []
    for given in document["permissions"]:
        values = dict(given)
        key = values.pop("key")
        known = find_row(ProductPermission, key=key)
        row = product_permissions.put(key, values, actor=actor)
        found += _differences(f"permission {key}", known, row, PERMISSION_FIELDS)
    for values in document["roles"]:
        old = read(None).by_key.get(values["key"])
        found += _differences(
            f"role {values['key']}", old, _apply(old, values, actor=actor), ROLE_FIELDS
        )
    if document["roles"]:
        service.check_ranks(read(None))
    return found


def _apply(known: AccessRole | None, values: dict[str, Any], *, actor: Actor) -> AccessRole:
    if known is None:
        return service.create(None, values, actor=actor)
    if known.key in service.FIXED:
        every = [*ROLE_PERMISSIONS[Role(known.key)], *values["permissions"]]
        return service.update(known.id, {"permissions": every}, actor=actor, with_ranks=False)
    return service.update(known.id, {name: values[name] for name in ROLE_FIELDS}, actor=actor)


def _differences(item: str, old: Any, new: Any, fields: tuple[str, ...]) -> Iterator[Difference]:
    for name in fields:
        before, after = old and getattr(old, name), getattr(new, name)
        if before != after:
            yield Difference(item, name, before, after)

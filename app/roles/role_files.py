"""Permissions of the product and templates of roles kept as code: reads a file and applies it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import yaml

from app.auth.permissions import ROLE_PERMISSIONS, Role
from app.core.actors import Actor
from app.core.db.queries import find_row
from app.core.errors import Invalid
from app.core.json_text import Json
from app.roles import product_permissions, service
from app.roles.authority import read
from app.roles.models import AccessRole, ProductPermission
from app.roles.schemas import RoleFileSchema

PERMISSION_FIELDS = ("description", "group_name", "requires_flag", "requires_limit")
ROLE_FIELDS = ("name", "permissions", "inherits", "assignable_by")
Document = Mapping[str, list[dict[str, Any]]]


class UnreadableRoles(Exception):
    """The file has another form; the message is a sentence."""


class Difference(NamedTuple):
    """A change by a file to one row. ``before`` is None for a new row."""

    item: str
    field: str
    before: Json
    after: Json


def read_roles(text: bytes) -> Document:
    """The lists ``permissions`` and ``roles`` of a YAML file; raises UnreadableRoles."""
    try:
        # By way of JSON: a date or another type of YAML alone is refused.
        document = json.loads(json.dumps(yaml.safe_load(text), allow_nan=False))
        return RoleFileSchema().load(document)
    except Invalid as fault:
        place = ".".join(map(str, fault.errors[0]["loc"])) or "The file"
        raise UnreadableRoles(f"{place}: {fault.errors[0]['msg']}.") from None
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as fault:
        raise UnreadableRoles(f"This is not YAML with JSON's types: {fault}") from None


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

"""PATCH of a user: what this service tolerates there as in POST and PUT."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from scim2_models import InvalidPathException, PatchOp, PatchOperation, Path, Resource
from scim2_models.path import CompareOperator, Comparison

from app.connections import activity
from app.scim import bounds
from app.scim.errors import invalid_value
from app.scim.resources import CREATING, POLICY, UserResource

ROLES = re.compile(r"(urn:ietf:params:scim:schemas:core:2\.0:user:)?roles($|[.\[])", re.IGNORECASE)

VISITS = 10  # that comparing an entry counts; it takes up to 0.2 ms


def leave_out_roles(body: Any) -> None:
    """Remove roles, which groups give, from the operations of a PATCH, also in a bulk request.

    Entra sends mapped roles together with other operations.
    """
    operations = body.get("Operations") if isinstance(body, dict) else None
    for operation in operations if isinstance(operations, list) else ():
        if not isinstance(operation, dict):
            continue
        leave_out_roles(operation.get("data"))
        path, value = operation.get("path"), operation.get("value")
        if isinstance(path, str) and ROLES.match(path):
            operation.update(op="add", path=None, value={})  # changes nothing
            activity.note_ignored("roles")
        elif path is None and isinstance(value, dict):
            for name in [one for one in value if ROLES.match(one) or one.lower() == "groups"]:
                del value[name]
                activity.note_ignored(name)


def apply(user: Resource, patch_op: PatchOp[Any]) -> bool:
    """Apply the operations in their order; whether the user has changed.

    Attributes that no schema has are left out, as in POST, and noted for the connection's log.
    Raises ScimError for too many comparisons or entries, and the errors of `scim2-models`.
    """
    is_changed = False
    before = _lengths(user)
    for operation in patch_op.operations or ():
        for name in _unknown(operation):
            activity.note_ignored(name)
        entries = max(_lengths(user).values(), default=0)
        bounds.count_visits(VISITS * _comparisons(operation) * entries)
        with CREATING if _may_create(operation) else POLICY:
            is_changed |= patch_op.model_copy(update={"operations": [operation]}).patch(user)
        for name, length in _lengths(user).items():
            if length > max(bounds.MAX_ENTRIES, before.get(name, 0)):
                raise invalid_value(f"A list of a user has at most {bounds.MAX_ENTRIES} entries.")
    return is_changed


def _lengths(user: Resource) -> dict[str, int]:
    return {name: len(value) for name, value in user if isinstance(value, list)}


def _comparisons(operation: PatchOperation[Any]) -> int:
    """How many comparisons select entries. ``remove`` compares all that its value has."""
    values = operation.value if isinstance(operation.value, list) else [operation.value]
    names = [name for value in values if isinstance(value, dict) for name in value]
    paths = [str(operation.path)] if operation.path else names
    removed = len(names) if operation.op == PatchOperation.Op.remove else 0
    return removed + sum(map(bounds.count_comparisons, paths))


def _may_create(operation: PatchOperation[Any]) -> bool:
    """Whether the operation may create the entry that its path selects: only by ``type eq``."""
    selects = None if operation.path is None else operation.path.value_filter
    return (
        isinstance(selects, Comparison)
        and selects.op is CompareOperator.eq
        and selects.attr_path.attr.lower() == "type"
    )


def _unknown(operation: PatchOperation[Any]) -> Iterator[str]:
    """The attributes that no schema has."""
    value = operation.value if isinstance(operation.value, dict) else {}
    for name in [operation.path] if operation.path else value:
        try:
            path = Path[UserResource](name)
        except InvalidPathException:
            yield str(name)
        else:
            if path.model is None and path.resolve() is None:
                yield str(name)

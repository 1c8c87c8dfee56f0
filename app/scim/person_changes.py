"""PATCH of a user: what this service tolerates there as in POST and PUT."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from scim2_models import InvalidPathException, PatchOp, PatchOperation, Path, Resource
from scim2_models.path import CompareOperator, Comparison

from app.connections import activity
from app.scim.resources import CREATING, POLICY, UserResource

ROLES = re.compile(r"(urn:ietf:params:scim:schemas:core:2\.0:user:)?roles($|[.\[])", re.IGNORECASE)


def leave_out_roles(body: Any) -> None:
    """Take roles, which groups give, out of the operations of a PATCH, also in a bulk request.

    Entra sends mapped roles beside other operations.
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
    """
    is_changed = False
    for may_create, run in groupby(patch_op.operations or (), _may_create):
        operations = list(run)
        for name in _unknown(operations):
            activity.note_ignored(name)
        with CREATING if may_create else POLICY:
            is_changed |= patch_op.model_copy(update={"operations": operations}).patch(user)
    return is_changed


def _may_create(operation: PatchOperation[Any]) -> bool:
    """Whether the operation may create the entry that its path selects: only by ``type eq``."""
    selects = None if operation.path is None else operation.path.value_filter
    return (
        isinstance(selects, Comparison)
        and selects.op is CompareOperator.eq
        and selects.attr_path.attr.lower() == "type"
    )


def _unknown(operations: list[PatchOperation[Any]]) -> Iterator[str]:
    """The attributes that no schema has."""
    for operation in operations:
        value = operation.value if isinstance(operation.value, dict) else {}
        for name in [operation.path] if operation.path else value:
            try:
                path = Path[UserResource](name)
            except InvalidPathException:
                yield str(name)
            else:
                if path.model is None and path.resolve() is None:
                    yield str(name)

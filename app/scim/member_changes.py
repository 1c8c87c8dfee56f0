"""PATCH of a group with thousands of members, in time that does not grow with their product.

`scim2-models` goes through all members for each value of an operation: 100 values removed from
10,000 members take 10 s. So members are removed here, by their ids, and neighbouring operations
that add members are applied as one.
"""

from __future__ import annotations

from enum import Enum
from itertools import chain, groupby

from scim2_models import Group, PatchOp, PatchOperation
from scim2_models.path import CompareOperator, Comparison, FilterNode, LogicalExpr, LogicalOperator

from app.scim import bounds
from app.scim.errors import ScimError

MAX_OPERATIONS = 100  # of a PATCH, after neighbours are joined


Operations = list[PatchOperation[Group]]


class Kind(Enum):
    """The effect of neighbouring operations."""

    ADD = "add members"
    REMOVE = "remove members by id"
    OTHER = "anything else"


def apply(group: Group, patch_op: PatchOp[Group]) -> bool:
    """Apply the operations in their order; whether the group has changed.

    Raises ScimError for too many visits to members, and the errors of `scim2-models`.
    """
    is_changed = False
    for kind, run in _runs(patch_op):
        if kind is Kind.REMOVE:
            is_changed |= _remove(group, run)
            continue
        operations = [_joined(run)] if kind is Kind.ADD else run
        comparisons = sum(bounds.count_comparisons(str(one.path)) or 1 for one in operations)
        bounds.count_visits(comparisons * len(group.members or ()))
        is_changed |= patch_op.model_copy(update={"operations": operations}).patch(group)
    return is_changed


def check_number(patch_op: PatchOp[Group]) -> None:
    """Raise ScimError for more than :data:`MAX_OPERATIONS`."""
    runs = _runs(patch_op)
    if sum(len(run) if kind is Kind.OTHER else 1 for kind, run in runs) > MAX_OPERATIONS:
        raise ScimError(
            400, f"A PATCH has at most {MAX_OPERATIONS} operations.", scim_type="tooMany"
        )


def _runs(patch_op: PatchOp[Group]) -> list[tuple[Kind, Operations]]:
    return [(kind, list(run)) for kind, run in groupby(patch_op.operations or (), _kind)]


def _kind(operation: PatchOperation[Group]) -> Kind:
    if str(operation.path).rpartition(":")[2].lower() == "members" and operation.op == "add":
        return Kind.ADD
    return Kind.OTHER if _removed(operation) is None else Kind.REMOVE


def _joined(operations: Operations) -> PatchOperation[Group]:
    values = (one.value if isinstance(one.value, list) else [one.value] for one in operations)
    return operations[0].model_copy(update={"value": list(chain.from_iterable(values))})


def _remove(group: Group, operations: Operations) -> bool:
    removed = frozenset(chain.from_iterable(map(_removed, operations)))  # type: ignore[arg-type]
    members = group.members or []
    kept = [one for one in members if (one.value or "").lower() not in removed]
    group.members = kept or None
    return len(kept) != len(members)


def _removed(operation: PatchOperation[Group]) -> frozenset[str] | None:
    """The ids, in lower case, of the members that an operation removes; None for another one."""
    path, value = operation.path, operation.value
    if operation.op != "remove" or path is None or (path.attr or "").lower() != "members":
        return None
    if path.value_filter is not None:
        is_whole = str(path).endswith("]")  # not members[…].display
        return _compared(path.value_filter) if is_whole and value is None else None
    entries = value if isinstance(value, list) else [value]
    ids = [
        entry["value"].lower()
        for entry in entries
        if isinstance(entry, dict) and isinstance(entry.get("value"), str)
    ]
    is_whole = str(path).rpartition(":")[2].lower() == "members"  # not members.display
    return frozenset(ids) if is_whole and len(ids) == len(entries) else None


def _compared(node: FilterNode) -> frozenset[str] | None:
    """The ids of ``value eq "…" or value eq "…"``."""
    match node:
        case Comparison(op=CompareOperator.eq, value=str(value)):
            path = node.attr_path
            is_value = path.attr.lower() == "value" and not path.sub_attr
            return frozenset({value.lower()}) if is_value else None
        case LogicalExpr(op=LogicalOperator.or_):
            found = [ids for term in node.terms if (ids := _compared(term)) is not None]
            return frozenset().union(*found) if len(found) == len(node.terms) else None
    return None

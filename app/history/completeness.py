"""What the past has and what it lacks: the table of docs/concepts/history.md."""

from __future__ import annotations

from typing import NamedTuple

DECISIONS = ("access_explain", "authzen_evaluate_one", "authzen_evaluate_several")


class Part(NamedTuple):
    """A part of the past. ``name`` is in the header of answers that lack some of it.

    These are the answers of the ``operations``.
    """

    what: str
    past: str
    name: str = ""
    operations: tuple[str, ...] = ()


ORDER = Part(
    "Order of changes before the release that keeps it",
    "by time (approximate)",
    "order",
)
PARTS = (
    Part(
        "Rows of the reads above, except flags",
        "completely, since the release that records their creation",
    ),
    Part("Columns added later", "their defaults"),
    Part("When a billing provider's data were read, an expiry announced", "as of the creation"),
    Part("The effective flags of a tenant", "by the plan, overrides and rules of then"),
    Part("Assigned plans (trials)", "the tenant's plan, not its end"),
    Part(
        "Access decisions and explanations",
        "by the tenant, people, API keys, roles, flags and limits of then",
    ),
    Part(
        "Members of a directory's groups",
        "as the directory changed them; a person whom it deleted stays",
        "groups",
        DECISIONS,
    ),
    Part(
        "Counts of usage, holds, credits",
        "not recorded: nothing is used, and credits are the plan's",
        "usage",
        DECISIONS,
    ),
    Part("Erased people", "nothing: an erasure also holds for the past"),
    Part("Secrets, payloads, sign-ins", "not recorded"),
    ORDER,
)
NOT_RECORDED = frozenset({"source_timestamp", "read_at", "missing_since", "announced_expiry"})
"""The columns of which the trail has only what the row was created with."""


def lacks_of(operation: str, *, is_ordered: bool) -> list[str]:
    """The names of the parts that the answer of an operation lacks."""
    found = [part.name for part in PARTS if operation in part.operations]
    return found if is_ordered else [*found, ORDER.name]

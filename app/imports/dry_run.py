"""Checking a file without applying it.

Each set of lines is applied in a transaction that is rolled back. So rows that earlier lines add
are absent for later sets. Lines about such rows are checked by their fields and ids alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from app.core.actors import Actor
from app.core.db import retries, tenancy
from app.imports import lines
from app.imports.apply import apply_set
from app.imports.line_schemas import Kind
from app.imports.lines import Line
from app.imports.outcomes import Outcome, Result
from app.imports.rows import NO_USER, unknown

Key = tuple[str, ...]


class RolledBack(Exception):
    """Ends the transaction of a set; it has the results."""

    def __init__(self, results: Sequence[Result]) -> None:
        super().__init__()
        self.results = results


def check(blocks: Iterable[bytes], *, actor: Actor) -> Iterator[tuple[int, list[Result]]]:
    """For each set of lines the number of its last line, and the results that it would have."""
    added: set[Key] = set()
    for one in lines.sets(lines.split(blocks)):
        stored = [line for line in one.lines if not _is_about(line, added)]
        results = [
            *_tried(stored, actor),
            *(_of_added(line, added) for line in one.lines if _is_about(line, added)),
        ]
        for result in results:
            if result.outcome is Outcome.CREATED and result.line.kind in KEYS:
                added.add(KEYS[result.line.kind](result.line))
        yield one.last, sorted(results, key=lambda result: result.line.number)


def _tried(stored: Sequence[Line], actor: Actor) -> Sequence[Result]:
    def work() -> None:
        tenancy.enter(tenancy.PLATFORM)
        raise RolledBack(apply_set(stored, actor=actor))

    try:
        retries.run(work)
    except RolledBack as ended:
        return ended.results
    raise AssertionError("unreachable")


def _is_about(line: Line, added: set[Key]) -> bool:
    """Whether the line's tenant or user would be added by an earlier set."""
    return not line.errors and (_tenant_key(line) in added or _user_key(line) in added)


def _of_added(line: Line, added: set[Key]) -> Result:
    user_id = line.values.get("idp_user_id")
    if line.kind is Kind.MEMBERSHIP and user_id and _user_key(line) not in added:
        return Result(line, Outcome.FAILED, unknown("idp_user_id", NO_USER, user_id).errors)
    return Result(line, Outcome.CREATED)


def _tenant_key(line: Line) -> Key:
    return (line.values["idp_org_id"],)


def _user_key(line: Line) -> Key:
    return (line.values["idp_org_id"], line.values.get("idp_user_id", ""))


KEYS = {Kind.TENANT: _tenant_key, Kind.USER: _user_key}

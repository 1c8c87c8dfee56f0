"""Applying imports set by set.

Each set is one transaction, which also stores how far the import is. An import that is interrupted
continues there. A set locks the import's row, so two workers of one import take turns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

from app.core import json_text
from app.core.actors import Actor
from app.core.db import queries, tenancy
from app.core.db.writes import writes
from app.core.errors import Entry, error
from app.core.jobs import slices
from app.core.validation import messages
from app.imports import files, lines, service
from app.imports.apply import apply_set
from app.imports.models import Import, ImportFault, ImportState
from app.imports.outcomes import Outcome, Result

MAX_FAULTS = 1000  # of one import
MAX_FAULT = 8 * 1024  # bytes of a line's errors
MAX_INPUT = 1024  # bytes of an error's input
TOO_LONG = "The errors of this line are too long to be shown."

Counts = dict[str, dict[str, int]]


def work(import_id: UUID) -> Iterator[Import]:
    """Apply an import until it is finished; its row after each set.

    After an error of the database the work can be resumed; any other makes the import ``failed``.
    """
    next_set, fail = partial(_apply_next, import_id), partial(_fail, import_id)
    return slices.run(next_set, lambda current: current.finished_at is not None, fail)


@dataclass
class Check:
    """The result of checking a file."""

    lines_total: int = 0
    lines_failed: int = 0
    counts: Counts = field(default_factory=dict)
    faults: list[dict[str, Any]] = field(default_factory=list)


def check(
    blocks: Iterable[bytes], *, actor: Actor, progress: Callable[[int], object] = int
) -> Check:
    """Apply all lines in the current transaction and undo them; until its end it holds their locks.

    ``progress`` is called with the number of each set's last line.
    """
    found = Check()
    with tenancy.trial():
        for one in lines.sets(lines.split(blocks)):
            results = apply_set(one.lines, actor=actor)
            failed = [each for each in results if each.outcome is Outcome.FAILED]
            found.lines_total = one.last
            found.lines_failed += len(failed)
            found.counts = add_counts(found.counts, results)
            found.faults += map(as_fault, failed[: MAX_FAULTS - len(found.faults)])
            progress(one.last)
    return found


def _apply_next(import_id: UUID) -> Import:
    """Apply the next set of an import, unless it is finished."""
    tenancy.enter(tenancy.PLATFORM)
    current = queries.lock_row(Import, import_id)
    if current.finished_at is not None:
        return current
    place = {"end": current.position, "number": current.lines_done}
    raw = lines.split(files.read(current.id, current.position), **place)
    following = next(lines.sets(raw, **place), None)
    if following is None:
        is_complete = current.position == current.size
        return service.finish(current, {}, error="" if is_complete else "Its file was removed.")
    results = apply_set(following.lines, actor=Actor(current.created_by_user_id))
    failed = [one for one in results if one.outcome is Outcome.FAILED]
    _store_faults(current.id, failed[: max(0, MAX_FAULTS - current.lines_failed)])
    values = {
        "state": ImportState.RUNNING.value,
        "position": following.end,
        "lines_done": following.last,
        "lines_failed": current.lines_failed + len(failed),
        "counts": add_counts(current.counts, results),
    }
    if following.end == current.size:
        return service.finish(current, values)
    return queries.update_row(Import, current, values)[0]


def _fail(import_id: UUID, reason: str) -> None:
    tenancy.enter(tenancy.PLATFORM)
    current = queries.lock_row(Import, import_id)
    if current.finished_at is None:
        service.finish(current, {}, error=reason)


def add_counts(counts: Counts, results: Iterable[Result]) -> Counts:
    """``counts`` and the number of these lines, by type and outcome."""
    found = Counter((str(one.line.kind or "unknown"), one.outcome) for one in results)
    total: Counts = {kind: dict(numbers) for kind, numbers in counts.items()}
    for (kind, outcome), number in found.items():
        numbers = total.setdefault(kind, dict.fromkeys(map(str, Outcome), 0))
        numbers[outcome.value] += number
    return total


def as_fault(result: Result) -> dict[str, Any]:
    """The shown part of a line that has failed; its size is limited."""
    line = result.line
    return {
        "line": line.number,
        "type": str(line.kind or ""),
        "idp_org_id": line.idp_org_id,
        "name": line.name,
        "errors": _shown(result.errors),
    }


def _store_faults(import_id: UUID, failed: Sequence[Result]) -> None:
    with writes() as w:
        for one in failed:
            w.insert(ImportFault, {"import_id": import_id, **as_fault(one)})


def _shown(errors: Sequence[Entry]) -> list[Entry]:
    text = messages.body(errors, max_bytes=MAX_FAULT, max_input=MAX_INPUT)
    shown: list[Entry] = json_text.loads(text.decode())["detail"]
    return shown or [error(["body"], errors[0]["type"], TOO_LONG)]

"""Doing a rewind slice by slice.

Each slice is one transaction, which also stores how far the rewind is. It compares its rows again,
so a rewind that is interrupted continues there, and changes nothing twice. Rows that need others are
made again after them, and removed before them. What is refused in the first round, such as an e-mail
address that somebody has until later, is tried again in a second one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

import psycopg2

from app.core.actors import Actor
from app.core.db import queries, retries, tenancy
from app.core.db.statements import Statement
from app.core.db.transactions import DATABASE_FAULTS, RowChanged, savepoint
from app.core.errors import AppError, Invalid
from app.core.observability import logs
from app.rewinds import service
from app.rewinds.comparing import (
    CREATED,
    FIND_LAST_VERSION,
    REMOVED,
    Difference,
    Period,
    compare,
    difference_of,
    find_changed,
)
from app.rewinds.kinds import KINDS
from app.rewinds.models import Rewind, RewindState
from app.tenants.models import Tenant

SLICE = 100  # rows
ROUNDS = 2
MAX_LEFT_OUT = 1000  # of one rewind
RESUMABLE = (*DATABASE_FAULTS, RowChanged)
REFUSED = (AppError, psycopg2.IntegrityError, psycopg2.DataError)
FIND_OWN_POSITION = Statement(
    "rewinds.find_own_position",
    "SELECT position FROM audit_positions WHERE tenant_id = :tenant_id"
    " AND target_type = 'rewind' AND row_id = :id ORDER BY position, number LIMIT 1",
)


class Step(NamedTuple):
    """A pass over the changed rows of a kind."""

    kind: str
    removes: bool
    is_last_round: bool


def steps(kinds: list[str]) -> list[Step]:
    """The passes of a rewind in their order."""
    ordered = [kind for kind in KINDS if kind in kinds]
    passes = [(kind, False) for kind in ordered] + [(kind, True) for kind in reversed(ordered)]
    return [Step(*each, number == ROUNDS - 1) for number in range(ROUNDS) for each in passes]


def work(rewind_id: UUID) -> Iterator[Rewind | None]:
    """Continue a rewind until it is finished; its row after each slice.

    None says that the rewind has no position yet, so the caller tries again a moment later. After an
    error of the database the work can be resumed; any other makes the rewind ``failed``.
    """
    logs.resume_request(f"rewind:{rewind_id}")  # the audit rows and the events have it
    while True:
        try:
            current = retries.run(partial(_do_next, rewind_id))
        except RESUMABLE:
            raise
        except Exception as fault:
            retries.run(partial(_fail, rewind_id, type(fault).__name__))
            raise
        if current is None:
            return
        yield current if current.position is not None else None
        if current.finished_at is not None:
            return


def _do_next(rewind_id: UUID) -> Rewind | None:
    """Do the next slice; None for a rewind that is gone with its tenant."""
    tenancy.enter(tenancy.PLATFORM)
    current = queries.find_locked(Rewind, id=rewind_id)
    if current is None or current.finished_at is not None:
        return current
    tenancy.enter(tenancy.Scope(current.tenant_id))
    tenant = queries.find_row(Tenant, id=current.tenant_id)
    if tenant is None or tenant.deletes_at is not None:
        return service.finish(current, {}, error="The deletion of the tenant is requested.")
    if current.position is None:
        position = FIND_OWN_POSITION.scalar(tenant_id=current.tenant_id, id=current.id)
        values: dict[str, Any] = {"position": position, "state": RewindState.RUNNING.value}
        return queries.update_row(Rewind, current, values)[0] if position is not None else current
    ahead = steps(current.kinds)[current.step :]
    if not ahead:
        return service.finish(current, {})
    step = ahead[0]
    period = Period(current.tenant_id, current.to_position, current.position, current.only)
    changed = find_changed(step.kind, period, current.last_id or service.FIRST, SLICE)
    if len(changed) < SLICE:
        values = {"step": current.step + 1, "last_id": None}
    else:
        values = {"last_id": changed[-1].row_id}
    values |= _apply(current, step, period, changed)
    return queries.update_row(Rewind, current, values)[0]


def _apply(current: Rewind, step: Step, period: Period, changed: Any) -> dict[str, Any]:
    """Change the rows that differ; the columns that say what was done."""
    counts = {kind: dict(numbers) for kind, numbers in current.counts.items()}
    left_out, actor = list(current.left_out), Actor(current.created_by_user_id)
    new = {row.row_id: row for row in changed}
    done, total = current.done, current.left_out_total
    for one in [*compare(step.kind, period, changed)]:
        found = [*service.entries(one)] if not step.removes else []
        if one.action and (one.action == REMOVED) == step.removes:
            try:
                with savepoint():
                    action = _change(one, new[one.row_id], period, actor)
            except REFUSED as fault:
                found.append(_refusal(one, fault))
            else:
                if action:
                    done += 1
                    numbers = counts.setdefault(one.kind, {})
                    numbers[action] = numbers.get(action, 0) + 1
        if step.is_last_round:
            left_out += found[: MAX_LEFT_OUT - len(left_out)]
            total += len(found)
    return {"done": done, "counts": counts, "left_out": left_out, "left_out_total": total}


def _change(one: Difference, changed: Any, period: Period, actor: Actor) -> str:
    """Change a row if it still differs, now that it is locked; returns what was done."""
    kind, values = KINDS[one.kind], dict(one.values)
    if one.action == CREATED and kind.create is not None:
        place = {"tenant_id": period.tenant_id, "target_type": kind.target_type}
        last = FIND_LAST_VERSION.scalar(
            **place, row_id=one.row_id
        )  # its ETags are never used again
        kind.create({**values, "version": (last or 0) + 1}, actor)
        return one.action
    row = queries.lock_row(kind.model, one.row_id)
    fresh = difference_of(one.kind, changed, row, one.past)
    if fresh.action == REMOVED and kind.remove is not None:
        kind.remove(row, actor)
    elif fresh.action:
        kind.update(row, dict(fresh.values), actor)
    return fresh.action


def _refusal(one: Difference, fault: Exception) -> dict[str, object]:
    """A row whose change was refused, as it is shown."""
    shown = {"kind": one.kind, "id": str(one.row_id)}
    if isinstance(fault, Invalid):
        return {**shown, "code": "invalid", "detail": fault.errors[0]["msg"]}
    if isinstance(fault, AppError):
        return {**shown, "code": fault.code or "refused", "detail": fault.detail}
    return {**shown, "code": "refused", "detail": "The database refuses the row."}


def _fail(rewind_id: UUID, name: str) -> None:
    tenancy.enter(tenancy.PLATFORM)
    current = queries.find_locked(Rewind, id=rewind_id)
    if current is not None and current.finished_at is None:
        service.finish(current, {}, error=f"It ended with an unexpected error ({name}).")

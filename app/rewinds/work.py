"""Doing a rewind slice by slice.

Each slice is one transaction, which also stores how far the rewind is. It compares its rows again,
so a rewind that is interrupted continues there, and changes nothing twice. Rows that need others are
made again after them, and removed before them. What is refused in the first round, such as an e-mail
address that somebody has until later, is tried again in a second one.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from functools import partial
from typing import Any
from uuid import UUID

import psycopg2

from app.billing import status
from app.core.actors import Actor
from app.core.clock import utcnow
from app.core.db import queries, tenancy
from app.core.db.statements import Statement
from app.core.db.transactions import savepoint
from app.core.errors import AppError, Invalid
from app.core.jobs import slices
from app.core.observability import logs
from app.rewinds import comparing, service
from app.rewinds.comparing import CREATED, REMOVED, Difference, left_out
from app.rewinds.kinds import KINDS
from app.rewinds.models import Rewind, RewindState
from app.tenants.models import Tenant

SLICE = 100  # rows
ROUNDS = 2
MAX_LEFT_OUT = 1000  # of one rewind
REFUSED = (AppError, psycopg2.IntegrityError, psycopg2.DataError)
FIND_OWN_POSITION = Statement(
    "rewinds.find_own_position",
    "SELECT min(position) FROM audit_positions WHERE tenant_id = :tenant_id"
    " AND target_type = 'rewind' AND row_id = :id",
)
FIND_LAST_VERSION = Statement(
    "rewinds.find_last_version",
    "SELECT max(version) FROM past.trail"
    " WHERE tenant_id = :tenant_id AND target_type = :target_type AND target_id = :target_id",
)


def work(rewind_id: UUID) -> Iterator[Rewind]:
    """Continue a rewind until it is finished; its row after each slice, none if that is gone.

    It ends where the sequencer has not given the rewind its ``position`` yet: try again a moment
    later. After an error of the database it can be resumed; any other makes the rewind ``failed``.
    """
    logs.resume_request(f"rewind:{rewind_id}")  # the audit rows and the events have it
    do_next = partial(_do_next, rewind_id)
    return slices.run(do_next, _pauses, do_next)


def _pauses(current: Rewind) -> bool:
    return current.finished_at is not None or current.position is None


def _do_next(rewind_id: UUID, error: str = "") -> Rewind | None:
    """Do the next slice, or end the rewind with an ``error``."""
    tenancy.enter(tenancy.PLATFORM)
    current = queries.find_locked(Rewind, id=rewind_id)
    if current is None or current.finished_at is not None:
        return current
    tenancy.enter(tenancy.Scope(current.tenant_id))
    if queries.get_row(Tenant, current.tenant_id).deletes_at is not None:
        error = "The deletion of the tenant is requested."
    kinds = current.kinds
    made = [(kind, False) for kind in kinds for _ in range(KINDS[kind].passes)]
    steps = made + [(kind, True) for kind, _ in reversed(made)]
    round_, number = divmod(current.step, len(steps))
    if error or round_ == ROUNDS:
        if "subscriptions" in kinds:
            status.compare_tenant(current.tenant_id)
        return service.finish(current, error=error)
    if current.position is None:
        position = FIND_OWN_POSITION.scalar(tenant_id=current.tenant_id, id=current.id)
        values = {"position": position, "state": RewindState.RUNNING.value}
        return queries.update_row(Rewind, current, values)[0] if position is not None else current
    kind, removes = steps[number]
    changed = comparing.find_changed(kind, current, current.last_id, SLICE)
    is_last = len(changed) < SLICE
    counts, refused = _change_all(current, kind, changed, removes=removes)
    reached: dict[str, object] = {
        "step": current.step + is_last,
        "last_id": None if is_last else str(changed[-1].place),
        "done": sum(sum(numbers.values()) for numbers in counts.values()),
        "counts": counts,
    }
    if round_ == ROUNDS - 1 and steps[number] not in steps[number + 1 :]:
        reached["left_out"] = [*current.left_out, *refused][:MAX_LEFT_OUT]
        reached["left_out_total"] = current.left_out_total + len(refused)
    return queries.update_row(Rewind, current, reached)[0]


def _change_all(
    current: Rewind, kind: str, changed: list[Any], *, removes: bool
) -> tuple[service.Counts, list[dict[str, object]]]:
    """Change or remove the rows that differ; returns the new counts, and what is left out."""
    counts, actor = deepcopy(current.counts), Actor(current.created_by_user_id)
    refused = list[dict[str, object]]()
    for one in comparing.compare(kind, current, changed) if changed else ():
        if not removes:
            refused += [left_out(one, code) for code in one.left]
        if not one.action or (one.action == REMOVED) is not removes:
            continue
        try:
            with savepoint():
                action = _change(one, current.tenant_id, actor)
        except REFUSED as fault:
            refused.append(_refusal(one, fault))
        else:
            service.count(counts, kind, action)
    return counts, refused


def _change(one: Difference, tenant_id: UUID, actor: Actor) -> str:
    """Change a row if it still differs, now that it is locked; returns what was done."""
    kind, row = KINDS[one.kind], None
    if one.now is not None:
        names = kind.model.__table__.primary_key.columns.keys()
        row = queries.find_locked(kind.model, **{name: getattr(one.now, name) for name in names})
    fresh = comparing.difference_of(one.kind, one.changed, row, one.past)
    if fresh.action == CREATED and kind.create is not None:
        place = {"tenant_id": tenant_id, "target_type": kind.target_type}
        last = FIND_LAST_VERSION.scalar(**place, target_id=str(one.changed.row_id))
        again = {"updated_at": utcnow(), "version": (last or 0) + 1}  # no ETag means two states
        values = {**one.past._asdict(), **again}
        values.pop("updated_by_user_id", None)  # it is the actor's
        kind.create(tenant_id, values, actor=actor)
    elif fresh.action == REMOVED and kind.remove is not None:
        kind.remove(row if kind.has_names else one.changed.row_id, actor=actor)
    elif fresh.action:
        kind.update(row, dict(fresh.values), actor)
    return fresh.action


def _refusal(one: Difference, fault: Exception) -> dict[str, object]:
    if isinstance(fault, Invalid):
        return left_out(one, "invalid", fault.errors[0]["msg"])
    if isinstance(fault, AppError):
        return left_out(one, fault.code or "refused", fault.detail)
    return left_out(one, "refused", "The database refuses the row.")

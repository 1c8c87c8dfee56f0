"""Plans that the platform assigns to tenants: trials, pilots, comped and internal tenants.

An assigned plan takes precedence over every subscription until it ends or is deleted. Evaluation
compares its end with PostgreSQL's clock. A job then ends the assignment, and ``plan_name`` of the
tenant follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import bindparam, func, select

from app.audit import service as audit
from app.core.actors import Actor
from app.core.clock import check_future
from app.core.db import queries
from app.core.db.queries import Change
from app.core.db.statements import Statement
from app.core.db.writes import Writes, insert_row, writes
from app.core.errors import Invalid, value_error
from app.core.json_text import differs
from app.plans.following import follow_plan
from app.plans.models import PlanAssignment
from app.tenants.models import Tenant
from app.tenants.starting import LOCK_PRESET

FIELDS = ("plan_name", "until", "reason")
NOTICE = timedelta(days=3)  # between the announcement of an end and the end

END_NOW = Statement(
    "plan_assignments.end_now",
    "UPDATE plan_assignments SET until = least(until, now()) WHERE tenant_id = :tenant_id",
)
TAKE_ENDING = Statement(
    "plan_assignments.take_ending",
    """
    UPDATE plan_assignments SET ending_announced_at = now() WHERE tenant_id IN (
        SELECT tenant_id FROM plan_assignments
        WHERE until > now() AND until <= now() + :notice AND ending_announced_at IS NULL
        ORDER BY until LIMIT :limit FOR UPDATE SKIP LOCKED
    ) RETURNING *
    """,
)
FIND_ENDED = Statement(
    "plan_assignments.find_ended",
    "SELECT tenant_id FROM plan_assignments WHERE until <= now() ORDER BY until LIMIT :limit",
)
LOCK_ENDED = Statement(
    "plan_assignments.lock_ended",
    select(PlanAssignment)
    .where(PlanAssignment.tenant_id == bindparam("tenant_id"), PlanAssignment.until <= func.now())
    .with_for_update(),
)


def assign(
    tenant_id: UUID | str,
    *,
    plan_name: str,
    until: datetime | None,
    reason: str | None = None,
    actor: Actor,
) -> None:
    """Give the tenant a plan, or change its assigned plan; ``until`` None: until it is deleted.

    ``reason`` None keeps that of the assigned plan; it is empty for a new assignment. Raises
    Invalid for an end in the past and a plan without a preset, and NotFound.
    """
    check_future(until, ("body", "until"))
    tenant, _ = queries.lock_with(Tenant, queries.visible_id(tenant_id))
    if LOCK_PRESET.scalar(name=plan_name) is None:
        missing = "there is no plan preset of this name"
        raise Invalid(value_error(["body", "plan_name"], missing, plan_name))
    queries.check_precondition(tenant)
    known = queries.find_row(PlanAssignment, tenant_id=tenant.id)
    if reason is None:
        reason = "" if known is None else known.reason
    values = {"plan_name": plan_name, "until": until, "reason": reason}
    before = {} if known is None else {name: getattr(known, name) for name in FIELDS}
    changed = [name for name in FIELDS if known is None or differs(before[name], values[name])]
    if not changed:
        return
    if known is None:
        start = {"next_plan_name": tenant.plan_name, "created_by": actor.id}
        insert_row(PlanAssignment, {"tenant_id": tenant.id, **values, **start})
    else:
        announced = None if "until" in changed else known.ending_announced_at
        changes = {**values, "ending_announced_at": announced}
        queries.update_where(PlanAssignment, {"tenant_id": tenant.id}, changes)
    change = Change(before, values).part(changed) if before else Change({}, values)
    with writes() as w:
        audit.record("tenant.plan_assigned", tenant, change, actor=actor, into=w)
        follow_plan(tenant.id, actor=actor, into=w)


def withdraw(tenant_id: UUID | str, *, actor: Actor) -> None:
    """Delete the tenant's assigned plan; raises NotFound where it has none."""
    tenant, _ = queries.lock_with(Tenant, queries.visible_id(tenant_id))
    assignment = queries.get_where(PlanAssignment, tenant_id=tenant.id)
    queries.check_precondition(tenant)
    END_NOW.execute(tenant_id=tenant.id)
    with writes() as w:
        follow_plan(tenant.id, actor=actor, into=w)
        _delete(assignment, "tenant.plan_withdrawn", actor, into=w)


def announce_endings(limit: int, *, actor: Actor) -> int:
    """Record ``trial.ending`` for some plans that end within :data:`NOTICE`, once for each end.

    Returns their number. A new end is announced again.
    """
    ending = TAKE_ENDING.all(limit=limit, notice=NOTICE)
    with writes() as w:
        for assignment in ending:
            _record("trial.ending", assignment, Change({}, _shown(assignment)), actor, into=w)
    return len(ending)


def find_ended(*, limit: int) -> Sequence[UUID]:
    """The tenants whose assigned plan has ended, those that ended first, first."""
    return FIND_ENDED.scalars(limit=limit)


def end(tenant_id: UUID, *, actor: Actor) -> None:
    """End the tenant's assigned plan, which is over; the tenant's plan follows.

    Does nothing if the assigned plan has been extended or deleted since. This is called once for
    each assigned plan that ends by itself.
    """
    with writes() as w:
        follow_plan(tenant_id, actor=actor, into=w)  # locks the tenant
        assignment = LOCK_ENDED.first(tenant_id=tenant_id)
        if assignment is not None:
            _delete(assignment, "trial.ended", actor, into=w)


def _delete(assignment: Any, action: str, actor: Actor, *, into: Writes) -> None:
    """Delete an assignment that is no longer in force."""
    queries.delete_where(PlanAssignment, tenant_id=assignment.tenant_id)
    change = Change({name: getattr(assignment, name) for name in FIELDS}, {})
    _record(action, assignment, change, actor, into=into)


def _record(action: str, assignment: Any, change: Change, actor: Actor, *, into: Writes) -> None:
    audit.add_event(
        action,
        target_id=str(assignment.tenant_id),
        tenant_id=assignment.tenant_id,
        change=change,
        actor=actor,
        data=_shown(assignment),
        into=into,
    )


def _shown(assignment: Any) -> dict[str, object]:
    return {name: getattr(assignment, name) for name in (*FIELDS, "next_plan_name")}

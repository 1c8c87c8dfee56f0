"""The start of a new tenant: a trial of the plan ``NEW_TENANT_PLAN``."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from sqlalchemy import bindparam, select

from app.audit.service import record
from app.config import current_config
from app.core.actors import SYSTEM_JOB
from app.core.clock import utcnow
from app.core.db.queries import Change
from app.core.db.statements import Statement
from app.core.db.writes import Writes
from app.plans.models import PlanAssignment, PlanPreset
from app.tenants.models import Tenant

log = logging.getLogger(__name__)

LOCK_PRESET = Statement(
    "plan_presets.lock_name",
    select(PlanPreset.id)
    .where(PlanPreset.name == bindparam("name"))
    .with_for_update(read=True, key_share=True),
)


def find_trial() -> dict[str, Any] | None:
    """The plan, end and reason of a trial that begins now; None if there is none.

    There is none without a preset of the plan's name, which is logged.
    """
    wanted = current_config().new_tenant_plan
    if wanted is None:
        return None
    plan_name, days = wanted
    if LOCK_PRESET.scalar(name=plan_name) is None:
        log.warning("new_tenant_plan_unknown", extra={"plan_name": plan_name})
        return None
    until = utcnow() + timedelta(days=days)
    return {"plan_name": plan_name, "until": until, "reason": "new tenant"}


def start_trial(tenant: Tenant, trial: dict[str, Any], *, into: Writes) -> None:
    """Assign the plan to a tenant that the same block inserts with it as its ``plan_name``."""
    next_plan = {"next_plan_name": current_config().default_plan, "created_by": SYSTEM_JOB.id}
    into.insert(PlanAssignment, {"tenant_id": tenant.id, **trial, **next_plan})
    record("tenant.plan_assigned", tenant, Change({}, trial), actor=SYSTEM_JOB, into=into)

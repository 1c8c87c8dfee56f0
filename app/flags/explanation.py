"""Why a flag of a tenant has its value."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import Text, bindparam, cast, func, select
from sqlalchemy.dialects.postgresql import JSONB

from app.audit.models import AuditEvent
from app.core.db.statements import Statement
from app.core.json_text import Json
from app.flags.evaluation import EffectiveFlag, Layer, evaluate
from app.flags.models import PlanPreset
from app.flags.presets import FIND_BY_NAME

PLANS_WITH = Statement(
    "plan_presets.find_with_flag",
    select(PlanPreset.name)
    .where(
        cast(PlanPreset.flags, JSONB).contains(
            func.jsonb_build_array(
                func.jsonb_build_object("flag_key", cast(bindparam("flag_key"), Text))
            )
        )
    )
    .order_by(PlanPreset.name)
    .limit(20),
)
LAST_PLAN = Statement(
    "audit_events.find_last_plan",
    select(AuditEvent.before, AuditEvent.created_at)
    .where(
        AuditEvent.tenant_id == bindparam("tenant_id"),
        AuditEvent.action == "tenant.plan_changed",
    )
    .order_by(AuditEvent.created_at.desc(), AuditEvent.id.desc())
    .limit(1),
)


def explain(tenant_id: UUID, flag_key: str) -> dict[str, Json]:
    """A flag's value, what could have decided it, and what did; see FlagExplanationSchema.

    Raises NotFound for an unknown tenant. A flag that the plan does not have is explained too.
    """
    found = evaluate(tenant_id, flag_key)
    flag = found.flags.get(flag_key) or EffectiveFlag(
        flag_key, "", None, Layer.NOT_IN_PLAN, None, False, None, None, None
    )
    return {
        "tenant_id": tenant_id,
        "is_suspended": not found.is_active,
        "plan_name": found.plan_name,
        "flag_key": flag.key,
        "flag_type": flag.type or None,
        "value": flag.value,
        "decided_by": flag.layer,
        "because": _because(flag, tenant_id, found.plan_name),
        "preset_value": flag.preset_value,
        "is_locked": flag.is_locked,
        "override_id": flag.override_id,
        "override_value": flag.override_value,
        "expires_at": flag.expires_at,
    }


def _absent(tenant_id: UUID, flag_key: str, plan_name: str) -> str:
    """Why the plan does not have a flag: which plans have it, and what the tenant had before."""
    plans = PLANS_WITH.scalars(flag_key=flag_key)
    reasons = [f"The plan {plan_name} does not have this flag."]
    if FIND_BY_NAME.first(name=plan_name) is None:
        reasons = [f"No preset is named {plan_name}, the tenant's plan."]
    reasons.append(f"Plans that have it: {', '.join(plans)}." if plans else "No plan has it.")
    last = LAST_PLAN.first(tenant_id=tenant_id)
    if last is not None:
        ended = last.created_at.strftime("%Y-%m-%d %H:%M UTC")
        reasons.append(f"The plan {last.before['plan_name']} ended at {ended}.")
    return " ".join(reasons)


def _because(flag: EffectiveFlag, tenant_id: UUID, plan_name: str) -> str:
    match flag.layer:
        case Layer.TENANT_SUSPENDED:
            return "The tenant is suspended, so its flags are disabled and have the plan's values."
        case Layer.OVERRIDE:
            return "The tenant's override takes precedence over the plan's preset."
        case Layer.OVERRIDE_EXPIRED:
            return "The tenant's override has expired, so the plan's preset applies."
        case Layer.OVERRIDE_OF_WRONG_TYPE:
            return f"The tenant's override is not a {flag.type}, so the plan's preset applies."
        case Layer.PRESET:
            return "The tenant has no override, so the plan's preset applies."
        case Layer.NOT_IN_PLAN:
            return _absent(tenant_id, flag.key, plan_name)

"""Why a flag of a tenant has its value."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from uuid import UUID

from app.audit.service import list_events
from app.core.db.pages import MAX_LIMIT, ListOrder, Paging
from app.core.json_text import Json
from app.flags.evaluation import EffectiveFlag, Layer, evaluate
from app.flags.rules import RULE_FAULTS, Facts, Rule, bucket, compile_rule
from app.plans.presets import find_preset, list_presets

NEWEST = Paging(limit=1, order=ListOrder.NEWEST_FIRST)
BECAUSE = {
    Layer.TENANT_SUSPENDED: "The tenant is suspended, so its flags are disabled and have the plan's"
    " values.",
    Layer.OVERRIDE: "The tenant's override takes precedence over the plan's preset.",
    Layer.OVERRIDE_EXPIRED: "The tenant's override has expired, so the plan's preset applies.",
    Layer.OVERRIDE_OF_WRONG_TYPE: "The tenant's override is not a {type}, so the plan's preset"
    " applies.",
    Layer.PRESET: "The tenant has no override{unmatched}, so the plan's preset applies.",
    Layer.RULE: "The rule is the first of the plan's preset that matches, and no override applies.",
    Layer.RULE_FAILED: "A rule of the plan could not be evaluated, so the plan's preset applies.",
}


def explain(tenant_id: UUID, flag_key: str, *, targeting_key: str = "") -> dict[str, Json]:
    """A flag's value, what could have decided it, and what did; see FlagExplanationSchema.

    Raises NotFound for an unknown tenant. A flag that the plan does not have is explained too.
    """
    found = evaluate(tenant_id, flag_key, {"targetingKey": targeting_key})
    absent = EffectiveFlag(flag_key, "", None, Layer.NOT_IN_PLAN)
    flag = found.flags.get(flag_key, absent)
    rules = [_explained(rule, found.facts, flag) for rule in flag.rules if found.facts]
    if flag.layer is Layer.NOT_IN_PLAN:
        because = _absent(tenant_id, flag_key, found.plan_name)
    else:
        unmatched = " and no rule matches" if rules else ""
        because = BECAUSE[flag.layer].format(type=flag.type, unmatched=unmatched)
    return {
        **asdict(flag),
        "tenant_id": tenant_id,
        "is_suspended": not found.is_active,
        "plan_name": found.plan_name,
        "type": flag.type or None,
        "because": because,
        "rule": flag.rule and flag.rule["name"],
        "tried": rules,
    }


def _explained(rule: Rule, facts: Facts, flag: EffectiveFlag) -> dict[str, Json]:
    """The result of a rule on its own; a rule that is not valid does not match."""
    told = {"name": rule["name"], "matches": False, "bucket": None, "salt": None}
    with suppress(*RULE_FAULTS):
        told["matches"] = compile_rule(rule, {"flag_key": flag.key, "flag_type": flag.type})(facts)
        if "rollout" in rule:
            told["bucket"], told["salt"] = bucket(rule, facts, flag.key)
    return told


def _absent(tenant_id: UUID, flag_key: str, plan_name: str) -> str:
    """Why the plan does not have a flag: which plans have it, and what the tenant had before."""
    presets = list_presets(Paging(limit=MAX_LIMIT)).items
    plans = [p.name for p in presets if any(each["flag_key"] == flag_key for each in p.flags)]
    reasons = [f"The plan {plan_name} does not have this flag."]
    if find_preset(plan_name) is None:
        reasons = [f"No preset is named {plan_name}, the tenant's plan."]
    reasons.append(f"Plans that have it: {', '.join(plans)}." if plans else "No plan has it.")
    for last in list_events(NEWEST, tenant_id=tenant_id, action="tenant.plan_changed").items:
        until = last.created_at.strftime("%Y-%m-%d %H:%M UTC")
        reasons.append(f"The tenant had the plan {last.before['plan_name']} until {until}.")
    return " ".join(reasons)

"""How many tenants new rules of a flag would give another value, before they are saved."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from uuid import UUID

from app.core.db.queries import check_precondition, get_row
from app.core.db.statements import Statement
from app.core.errors import Invalid, NotFound
from app.core.json_text import Json, differs
from app.flags.evaluation import FROM_PLANS, IN_FORCE, OVERRIDES
from app.flags.rules import COMPARED_FACTS, RULE_FAULTS, CompiledFlag, Facts, Rule, compared
from app.plans.models import PlanPreset
from app.plans.rule_schemas import rule_errors

MAX_TENANTS, SLICE, SHOWN = 100_000, 5_000, 20

LIST_TENANTS = Statement(
    "flags.list_tenants_of_preset",
    f"""
    SELECT plan.tenant_id, plan.is_active AND NOT EXISTS (
        SELECT {OVERRIDES} AND o.flag_key = :flag_key AND {IN_FORCE}
    ) AS follows_rules, {COMPARED_FACTS} AS facts
    {FROM_PLANS} WHERE preset.id = :preset_id AND plan.tenant_id > :after
    ORDER BY plan.tenant_id LIMIT :limit
    """,
    prepare=False,
)


def preview_rules(preset_id: UUID | str, flag_key: str, rules: Sequence[Rule]) -> dict[str, Json]:
    """How many of the preset's tenants would have another value (see RulePreviewSchema).

    Nobody is named, and no context given, so only rules about tenants match. Raises NotFound, and
    Invalid for rules that do not fit the flag.
    """
    preset = get_row(PlanPreset, preset_id)
    check_precondition(preset)
    flag = next((each for each in preset.flags if each["flag_key"] == flag_key), None)
    if flag is None:
        raise NotFound.of("flag")
    new = {**flag, "rules": rules}
    if errors := list(rule_errors(new, ["body", "rules"])):
        raise Invalid(*errors)
    before, after = CompiledFlag.of(flag), CompiledFlag.of(new)
    wanted = {"preset_id": preset.id, "flag_key": flag_key, "names": sorted(compared((flag, new)))}
    checked, changes, last, is_complete = 0, list[dict[str, Json]](), UUID(int=0), False
    while not is_complete and checked < MAX_TENANTS:
        page = LIST_TENANTS.all(**wanted, after=last, limit=SLICE)
        checked, is_complete = checked + len(page), len(page) < SLICE
        for tenant in page:
            last = tenant.tenant_id
            if tenant.follows_rules:
                facts = Facts(tenant.tenant_id, tenant.facts, {})
                old_value, new_value = _value(before, facts), _value(after, facts)
                if differs(old_value, new_value):
                    changes.append({"tenant_id": last, "before": old_value, "after": new_value})
    return {
        "tenants": checked,
        "is_complete": is_complete,
        "changed": len(changes),
        "changes": changes[:SHOWN],
    }


def _value(known: CompiledFlag, facts: Facts) -> Json:
    with suppress(*RULE_FAULTS):
        rule = known.first_match(facts)
        if rule is not None:
            return rule["value"]
    return known.flag["default_value"]

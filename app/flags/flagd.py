"""The flags of many tenants as one flagd document, for evaluation inside of an application.

The context of an evaluation names the tenant by its id, ``tenant_id``; rules also compare its other
keys, and ``user``, an object of the user's attributes. The values are those of OFREP at the moment
of the document. It lists the tenants of each plan but one, the tenants of each value of an
override, and the tenants for which a rule's condition on the tenant holds. A tenant that it does
not list has the one plan: new tenants have the default plan.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from app.core import json_text
from app.core.db.statements import Statement
from app.core.errors import Conflict, NotFound
from app.core.json_text import Json
from app.flags.evaluation import FROM_PLANS, IN_FORCE, OVERRIDES
from app.flags.rules import COMPARED_FACTS, RULE_FAULTS, Facts, compared
from app.flags.targeting import to_flagd
from app.plans.flag_types import fits
from app.plans.following import default_plan
from app.plans.models import Flag
from app.plans.preset_files import LIST_ALL
from app.plans.rule_conditions import Condition, comparisons, compiled

SCHEMA = "https://flagd.dev/schema/v0/flags.json"
MAX_LISTED = 20_000


class FlagdDocumentTooLarge(Conflict):
    code = "flagd_document_too_large"
    detail = (
        f"The document would have more than {MAX_LISTED} entries in its lists of tenants. Narrow it"
        " by ?plan= or ?tenant_id=."
    )


CHOSEN = """
    (CAST(:tenant_id AS uuid) IS NULL OR plan.tenant_id = :tenant_id)
    AND (CAST(:plan AS text) IS NULL OR plan.plan_name = :plan)
"""
FIND_PLAN = Statement(
    "flags.find_plan_in_force", "SELECT plan_name FROM plans_in_force WHERE tenant_id = :tenant_id"
)
LIST_TENANTS = Statement(
    "flags.list_tenants_by_plan",
    f"""
    SELECT plan.tenant_id, plan.plan_name, plan.is_active,
        CASE WHEN plan.plan_name = ANY (:compared) THEN {COMPARED_FACTS} END AS facts
    FROM plans_in_force plan WHERE {CHOSEN} AND (
        plan.plan_name <> :usual OR NOT plan.is_active OR plan.plan_name = ANY (:compared)
    ) ORDER BY plan.tenant_id LIMIT :limit
    """,  # noqa: S608
    prepare=False,  # so that the plan is that of one tenant, or of all
)
LIST_OVERRIDES = Statement(
    "flags.list_overrides_in_force",
    f"""
    SELECT * FROM (
        SELECT DISTINCT ON (plan.tenant_id, o.flag_key)
            plan.tenant_id, plan.plan_name, o.flag_key, o.flag_value, {IN_FORCE} AS is_in_force
        {FROM_PLANS}
        JOIN LATERAL (SELECT o.* {OVERRIDES}) o ON true
        WHERE plan.is_active AND {CHOSEN}
        ORDER BY plan.tenant_id, o.flag_key, o.plan_preset_id = preset.id DESC
    ) one WHERE is_in_force LIMIT :limit
    """,  # noqa: S608
    prepare=False,
)
"""Those of active tenants. An override of the plan's preset replaces one that carries over."""


def document(*, plan: str | None = None, tenant_id: UUID | None = None) -> dict[str, Json]:
    """The document of all tenants, of a plan's or of one; raises FlagdDocumentTooLarge, NotFound."""
    presets = {one.name: {flag["flag_key"]: flag for flag in one.flags} for one in LIST_ALL.all()}
    if plan is not None and plan not in presets:
        raise NotFound.of("plan_preset")
    usual = plan or default_plan()
    if tenant_id is not None:
        usual = FIND_PLAN.scalar(tenant_id=tenant_id)
        if usual is None:
            raise NotFound.of("tenant")
    chosen = {"plan": plan, "tenant_id": tenant_id, "limit": MAX_LISTED + 1}
    attributes = {name: compared(flags.values()) for name, flags in presets.items()}
    tenants = LIST_TENANTS.all(
        usual=usual,
        compared=[name for name, names in attributes.items() if names],
        names=[*set().union(*attributes.values())],
        **chosen,
    )
    overrides = LIST_OVERRIDES.all(**chosen)
    if max(len(tenants), len(overrides)) > MAX_LISTED:
        raise FlagdDocumentTooLarge
    return _Export(usual, presets, tenants, overrides).document()


class _Export:
    """One document. Its ``entries`` are those of lists of tenants."""

    def __init__(
        self,
        usual: str,
        presets: Mapping[str, Mapping[str, Flag]],
        tenants: Sequence[Any],
        overrides: Sequence[Any],
    ) -> None:
        self.presets = presets
        self.entries = 0
        self.facts: dict[str, dict[str, Facts]] = defaultdict(dict)  # of active tenants, by plan
        plans: dict[str, list[str]] = defaultdict(list)
        suspended = [str(tenant.tenant_id) for tenant in tenants if not tenant.is_active]
        for tenant in tenants:
            if tenant.plan_name != usual:
                plans[tenant.plan_name].append(str(tenant.tenant_id))
            if tenant.is_active and tenant.facts is not None:
                known = Facts(tenant.tenant_id, tenant.facts, {})
                self.facts[tenant.plan_name][str(tenant.tenant_id)] = known
        self.plans = [usual, *plans]
        self.refs = {name: f"plan-{number}" for number, name in enumerate(plans, start=1)}
        self.evaluators = {self.refs[name]: self._is_one_of(ids) for name, ids in plans.items()}
        if suspended:
            self.evaluators["suspended"] = self._is_one_of(suspended)
        self.overrides: dict[str, list[Any]] = defaultdict(list)
        for override in overrides:
            flag = presets[override.plan_name].get(override.flag_key)
            if flag is not None and fits(flag["flag_type"], override.flag_value):
                self.overrides[override.flag_key].append(override)

    def document(self) -> dict[str, Json]:
        """The document. Flags without a value but null are left out."""
        keys = dict.fromkeys(key for name in self.plans for key in self.presets.get(name, ()))
        flags = {key: self._flag(key) for key in keys}
        return {
            "$schema": SCHEMA,
            "$evaluators": self.evaluators,
            "flags": {key: flag for key, flag in flags.items() if flag["variants"]},
        }

    def _flag(self, key: str) -> dict[str, Any]:
        variants: dict[str, str] = {}  # JSON -> name
        by_plan = {
            name: self._of_plan(self.presets.get(name, {}).get(key), name, variants)
            for name in self.plans
        }
        usual = targeting = by_plan.pop(self.plans[0])
        for name, each in by_plan.items():
            if each != usual:
                targeting = {"if": [{"$ref": self.refs[name]}, each, targeting]}
        tenants: dict[str | None, list[str]] = defaultdict(list)
        for override in self.overrides[key]:
            tenants[_name(override.flag_value, variants)].append(str(override.tenant_id))
        for value, tenant_ids in tenants.items():
            targeting = {"if": [self._is_one_of(tenant_ids), value, targeting]}
        decided = {"defaultVariant": targeting}
        if isinstance(targeting, dict):
            decided = {"defaultVariant": None, "targeting": targeting}
        values = {name: json_text.loads(text) for text, name in variants.items()}
        return {"state": "ENABLED", "variants": values, **decided}

    def _of_plan(self, flag: Flag | None, plan_name: str, variants: dict[str, str]) -> Any:
        """The targeting that gives the value of a plan's flag to tenants without an override."""
        if flag is None:
            return None
        value = _name(flag["default_value"], variants)
        targeting: Any = value
        try:
            for rule in reversed(flag.get("rules", ())):
                if "when" in rule:
                    rule = {**rule, "when": self._listed(rule["when"], self.facts[plan_name])}
                condition = to_flagd(rule, flag["flag_key"])
                targeting = {"if": [condition, _name(rule["value"], variants), targeting]}
        except RULE_FAULTS:  # as in an evaluation, the preset's value
            return value
        if targeting != value and "suspended" in self.evaluators:
            targeting = {"if": [{"$ref": "suspended"}, value, targeting]}
        return targeting

    def _listed(self, condition: Condition, tenants: Mapping[str, Facts]) -> Condition:
        """The condition with lists of tenants in place of comparisons of their attributes."""
        if all(one["attribute"].startswith("tenant.") for one, _ in comparisons(condition)):
            test = compiled(condition)
            ids = [one for one, facts in tenants.items() if test(facts)]
            self._count(ids)
            return {"attribute": "context.tenant_id", "op": "in", "value": ids}
        if "not" in condition:
            return {"not": self._listed(condition["not"], tenants)}
        if "attribute" in condition:
            return condition
        ((name, parts),) = condition.items()
        return {name: [self._listed(one, tenants) for one in parts]}

    def _is_one_of(self, tenant_ids: list[str]) -> dict[str, Json]:
        self._count(tenant_ids)
        return {"in": [{"var": "tenant_id"}, tenant_ids]}

    def _count(self, tenant_ids: list[str]) -> None:
        self.entries += len(tenant_ids)
        if self.entries > MAX_LISTED:
            raise FlagdDocumentTooLarge


def _name(value: Json, variants: dict[str, str]) -> str | None:
    """The name of a value, added to ``variants`` by its JSON.

    Null has none: the application's default applies.
    """
    if value is None:
        return None
    return variants.setdefault(json_text.dumps_text(value), f"value-{len(variants) + 1}")

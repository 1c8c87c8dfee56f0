"""The flags of many tenants as one flagd document, for evaluation inside of an application.

The context of an evaluation names the tenant by its id, ``tenant_id``. The values are those of
OFREP at the moment of the document. It lists the tenants of each plan but one, and of each value of
an override. A tenant that it does not list has that one plan: new tenants have the default plan.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from app.core import json_text
from app.core.db.statements import Statement
from app.core.errors import Conflict, NotFound
from app.core.json_text import Json
from app.flags.evaluation import IN_FORCE, OVERRIDES
from app.plans.flag_types import fits
from app.plans.following import default_plan
from app.plans.models import Flag
from app.plans.preset_files import LIST_ALL

SCHEMA = "https://flagd.dev/schema/v0/flags.json"
MAX_LISTED = 20_000
TENANT = {"var": "tenant_id"}


class FlagdDocumentTooLarge(Conflict):
    code = "flagd_document_too_large"
    detail = (
        f"The document would list more than {MAX_LISTED} tenants or overrides. Narrow it by"
        " ?plan= or ?tenant_id=."
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
    SELECT plan.tenant_id, plan.plan_name, plan.is_active FROM plans_in_force plan
    WHERE {CHOSEN} AND (plan.plan_name <> :usual OR NOT plan.is_active)
    ORDER BY plan.tenant_id LIMIT :limit
    """,  # noqa: S608
)
LIST_OVERRIDES = Statement(
    "flags.list_overrides_in_force",
    f"""
    SELECT * FROM (
        SELECT DISTINCT ON (plan.tenant_id, o.flag_key)
            plan.tenant_id, plan.plan_name, o.flag_key, o.flag_value, {IN_FORCE} AS is_in_force
        FROM plans_in_force plan
        JOIN plan_presets preset ON preset.name = plan.plan_name
        LEFT JOIN plan_presets ended ON ended.name = plan.ended_plan_name
        JOIN LATERAL (SELECT o.* {OVERRIDES}) o ON true
        WHERE plan.is_active AND {CHOSEN}
        ORDER BY plan.tenant_id, o.flag_key, o.plan_preset_id = preset.id DESC
    ) one WHERE is_in_force LIMIT :limit
    """,  # noqa: S608
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
    tenants = LIST_TENANTS.all(usual=usual, **chosen)
    overrides = LIST_OVERRIDES.all(**chosen)
    if max(len(tenants), len(overrides)) > MAX_LISTED:
        raise FlagdDocumentTooLarge
    listed: dict[str, list[str]] = defaultdict(list)
    for tenant in tenants:
        if tenant.plan_name != usual:
            listed[tenant.plan_name].append(str(tenant.tenant_id))
    refs = {name: {"$ref": f"plan-{number}"} for number, name in enumerate(listed, start=1)}
    given: dict[str, list[Any]] = defaultdict(list)
    for override in overrides:
        flag = presets[override.plan_name].get(override.flag_key)
        if flag is not None and fits(flag["flag_type"], override.flag_value):
            given[override.flag_key].append(override)
    flags = {
        key: _flag(
            {name: presets.get(name, {}).get(key) for name in (usual, *refs)}, refs, given[key]
        )
        for key in dict.fromkeys(key for name in (usual, *refs) for key in presets.get(name, ()))
    }
    return {
        "$schema": SCHEMA,
        "$evaluators": {refs[name]["$ref"]: _is_one_of(ids) for name, ids in listed.items()},
        # A flag whose values are all null has no variants; the application's default applies.
        "flags": {key: flag for key, flag in flags.items() if flag["variants"]},
    }


def _flag(
    by_plan: Mapping[str, Flag | None], refs: Mapping[str, Any], overrides: Iterable[Any]
) -> dict[str, Any]:
    """One flag. ``by_plan`` has the usual plan first; ``refs`` has the condition of each other."""
    variants = Variants()
    plans_with: dict[str | None, list[str]] = defaultdict(list)
    for plan_name, flag in by_plan.items():
        plans_with[variants.name(flag and flag["default_value"])].append(plan_name)
    (chosen, _), *others = plans_with.items()
    targeting: Any = chosen
    for value, names in others:
        targeting = {"if": [{"or": [refs[name] for name in names]}, value, targeting]}
    tenants_with: dict[str | None, list[str]] = defaultdict(list)
    for override in overrides:
        tenants_with[variants.name(override.flag_value)].append(str(override.tenant_id))
    for value, tenant_ids in tenants_with.items():
        targeting = {"if": [_is_one_of(tenant_ids), value, targeting]}
    decided = {"targeting": targeting} if isinstance(targeting, dict) else {}
    default = None if decided else targeting
    return {"state": "ENABLED", "variants": variants.values, "defaultVariant": default, **decided}


class Variants:
    """The values of one flag, each with a name. Null has none: the application's default applies."""

    def __init__(self) -> None:
        self.values: dict[str, Json] = {}
        self._names: dict[str, str] = {}

    def name(self, value: Json) -> str | None:
        if value is None:
            return None
        name = self._names.setdefault(json_text.dumps_text(value), f"value-{len(self._names) + 1}")
        self.values[name] = value
        return name


def _is_one_of(tenant_ids: list[str]) -> dict[str, Json]:
    return {"in": [TENANT, tenant_ids]}

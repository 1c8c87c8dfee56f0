"""Requests and answers of /v1/billing/plans and /v1/tenants/{tenant_id}/plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from app.core.errors import Entry, Invalid, value_error
from app.core.http.pagination import PageQuerySchema
from app.core.json_text import Json
from app.core.validation.fields import (
    AnyJson,
    AwareDateTime,
    Bool,
    Choice,
    Int,
    ListOf,
    Name,
    Nested,
    Str,
    Uuid,
)
from app.core.validation.schemas import AnswerSchema, RowSchema, Schema
from app.plans.decision import MAX_SUBSCRIPTIONS, PlanSource
from app.plans.flag_types import (
    MAX_LIMIT,
    MAX_VALUE_BYTES,
    FlagType,
    LimitKind,
    Period,
    Policy,
    Rollover,
    is_too_long,
    type_errors,
)
from app.plans.metering import credit_keys, metering_errors
from app.plans.rule_schemas import MAX_RULES, Rules, RuleSchema, rule_errors

MAX_THRESHOLDS = 10
FLAGS = {"maxItems": 1000}  # of a preset; each evaluation reads them
FLAG_KEY_PATTERN = "^[A-Za-z0-9._-]{1,128}$"

FLAG = {
    "flag_key": "single-sign-on",
    "flag_type": "boolean",
    "default_value": False,
    "description": "Whether members sign in at their own provider.",
    "is_locked": False,
}
RULE = {
    "name": "growth-first",
    "when": {"attribute": "tenant.plan", "op": "in", "value": ["growth", "pro"]},
    "rollout": {"percent": 10.0},
    "value": True,
}


class Documented(Schema):
    """Descriptions and examples of the fields that the schemas here share."""

    examples = {
        "bp_subscription_id": "sub_1PqR",
        "bp_status": "active",
        "plan_name": "growth",
        "reason": "too expensive",
        "source": "subscription",
        "because": "Of the subscriptions that have not ended, it has the latest start date and id.",
        "flag_key": "single-sign-on",
        "default_value": False,
        "description": "Whether members sign in at their own provider.",
        "name": "growth",
        "display_name": "Growth",
        "flags": [FLAG],
        "rules_": [RULE],
        "flag_type": "boolean",
        "tenants": 12,
    }
    descriptions = {
        "subscription_id": "The subscription that gives it; null for every other source.",
        "source": "What gives the plan.",
        "name": "The plan's name, which `plan_name` of tenants and subscriptions refers to.",
        "flags": "The flags of the plan.",
        "display_name": "For people; may change while the plan is in use.",
        "overrides_lost": "Overrides that would lose their effect, by flag.",
        "limits_below_usage": "Lowered limits that would be below what tenants use.",
        "warn_at": "Percentages of the limit whose crossing is recorded.",
    }


class FlagValue(AnyJson):
    """A flag's value in a request; its size is limited."""

    keywords = {"description": f"Of the flag's type; at most {MAX_VALUE_BYTES} bytes of JSON."}

    def from_json(self, value: Any) -> Any:
        loaded = super().from_json(value)
        if is_too_long(loaded):
            reason = f"a flag's value can have at most {MAX_VALUE_BYTES} bytes of JSON"
            raise Invalid(value_error((), reason, value))
        return loaded


class BurnsSchema(Schema):
    """The balance that pays for the use of a limit."""

    examples = {"credits": "ai-credits", "rate": 3}

    credits = Str(
        required=True,
        pattern=FLAG_KEY_PATTERN,
        description="The key of a limit of the kind `credits` in the same preset.",
    )
    rate = Int(required=True, ge=1, le=10**6, description="The credits that one unit takes.")


class MeteringSchema(Documented):
    """How the use of a limit is counted."""

    period = Choice(
        Period,
        required=True,
        description="`none` never starts anew. Months and billing cycles start on the start "
        "day of the current subscription, or on the day on which the tenant was created.",
    )
    policy = Choice(Policy, load_default=Policy.HARD)
    warn_at = ListOf(
        Int(ge=1, le=100),
        load_default=lambda: [80, 100],
        metadata={"maxItems": MAX_THRESHOLDS, "examples": [[80, 100]]},
    )
    warn_days = Int(
        ge=1,
        le=90,
        description="Record `limit.forecast` once the limit would end within so many days at the "
        "pace of the last 7.",
    )
    kind = Choice(
        LimitKind,
        description="`credits`: the limit is a balance. The plan grants the limit's value in each "
        "period, once if the period is `none`.",
    )
    rollover = Choice(
        Rollover,
        description="Only for credits: what is left of the plan's when their period ends. `none`, "
        "the default: it expires. `cap`: at most `rollover_cap` is left.",
    )
    rollover_cap = Int(ge=0, le=MAX_LIMIT, description="Required for the rollover `cap`.")
    warn_below = ListOf(
        Int(ge=0, le=MAX_LIMIT),
        metadata={"maxItems": MAX_THRESHOLDS, "examples": [[100]]},
        description="Only for credits: balances that are recorded when so much or less is left.",
    )
    burns = Nested(BurnsSchema, description="Each count also takes credits, both or none.")

    def _dump_one(self, row: dict[str, object]) -> dict[str, object]:
        written = super()._dump_one(dict.fromkeys(self.dump_fields) | row)
        return {name: value for name, value in written.items() if value is not None}


class PresetFlagSchema(Documented):
    """One flag of a preset; only a limit has `metering`, and only some have `rules`."""

    flag_key = Str(required=True, pattern=FLAG_KEY_PATTERN)
    flag_type = Choice(FlagType, required=True)
    default_value = FlagValue(required=True)
    description = Str(load_default="", description="What the flag is for; for people.")
    is_locked = Bool(
        description="Whether only a platform superadmin can change its overrides. By default "
        "true for a new flag, and unchanged for one that exists."
    )
    metering = Nested(MeteringSchema, description="Required for a limit.")
    rules_ = Rules(
        Nested(RuleSchema),
        attribute="rules",
        data_key="rules",
        metadata={"maxItems": MAX_RULES},
        description="The first that matches decides, where no override does.",
    )

    def _dump_one(self, row: dict[str, object]) -> dict[str, object]:
        written = super()._dump_one({"metering": None, "rules": None, **row})
        for name in ("metering", "rules"):
            if written[name] is None:
                del written[name]
        return written


class PlanPresetSchema(Documented, RowSchema):
    """The flags of a plan's tenants."""

    name = Str()
    flags = ListOf(Nested(PresetFlagSchema))
    display_name = Str()


class PlanPresetCreateSchema(Documented):
    """A new preset."""

    name = Name(required=True, min_length=1)
    flags = ListOf(Nested(PresetFlagSchema), load_default=list, metadata=FLAGS)
    display_name = Name()

    def rules(self, values: dict[str, Json]) -> Iterator[Entry]:
        return flag_errors(values["flags"])


class PlanPresetUpdateSchema(Documented):
    """New names, the complete list of new flags, or both. The read-only fields may be present."""

    id = Uuid(description="May be present if unchanged.")
    created_at = AwareDateTime(description="May be present if unchanged.")
    updated_at = AwareDateTime(description="May be present if unchanged.")
    name = Name(min_length=1)
    flags = ListOf(Nested(PresetFlagSchema), metadata=FLAGS)
    display_name = Name()

    def rules(self, values: dict[str, Json]) -> Iterator[Entry]:
        return flag_errors(values.get("flags", []))


class PlanPresetForceSchema(Schema):
    """Whether to remove flags that overrides use."""

    force = Bool(
        load_default=False,
        description="Remove flags even if overrides use them; those lose their effect.",
    )


class FlagChangeSchema(Documented, AnswerSchema):
    """A flag that would change."""

    examples = {
        "flag_key": "single-sign-on",
        "before": FLAG,
        "after": {**FLAG, "default_value": True},
    }

    flag_key = Str()
    before = Nested(PresetFlagSchema, description="The flag as it is.")
    after = Nested(PresetFlagSchema, description="The flag as it would be.")


class LostOverridesSchema(Documented, AnswerSchema):
    """The overrides of a flag that would be removed or get another type."""

    examples = {"flag_key": "theme", "overrides": 3}

    flag_key = Str()
    overrides = Int(description="How many overrides would lose their effect.")


class LimitBelowUsageSchema(Documented, AnswerSchema):
    """A lowered limit that would be below what tenants without an override of it use now."""

    examples = {"feature": "api-calls", "limit": 1000, "tenants": 2, "most_used": 4711}

    feature = Str()
    limit = Int(description="The new limit.")
    tenants = Int(description="How many use more.")
    most_used = Int(description="The most that one of them uses.")


class PlanPreviewSchema(Documented, AnswerSchema):
    """What an update of a preset would change."""

    name = Str()
    display_name = Str()
    tenants = Int(description="Tenants that have the plan, now or after their assigned plan.")
    flags_added = ListOf(Nested(PresetFlagSchema), description="Flags that would be new.")
    flags_removed = ListOf(Nested(PresetFlagSchema), description="Flags that would be removed.")
    flags_changed = ListOf(Nested(FlagChangeSchema), description="Flags that would change.")
    overrides_lost = ListOf(Nested(LostOverridesSchema))
    limits_below_usage = ListOf(Nested(LimitBelowUsageSchema))


class PlanPresetQuerySchema(Documented, PageQuerySchema):
    """Filters of the list of presets."""

    name = Str(description="Only the preset with this name.")


class PlanCandidateSchema(Documented, AnswerSchema):
    """One plan that the tenant could have."""

    source = Choice(PlanSource)
    plan_name = Str(description="The plan that it gives.")
    decides = Bool(description="Whether it decides the plan; true for one of the candidates.")
    because = Str(description="Why it decides the plan, or why it does not.")
    subscription_id = Uuid(nullable=True)
    bp_subscription_id = Str(description="The billing provider's id of the subscription.")
    bp_status = Str(description="The billing provider's word, verbatim.")
    status_class = Str(description="The class of `bp_status`.")
    start_date = AwareDateTime(nullable=True, description="When the subscription began (UTC).")
    until = AwareDateTime(nullable=True, description="When an assigned plan ends.")
    reason = Str(description="Why the plan was assigned.")


class PlanDecisionSchema(Documented, AnswerSchema):
    """The plan of a tenant, and what decides it."""

    tenant_id = Uuid(description="The tenant.")
    plan_name = Str(description="The plan that the tenant has.")
    source = Choice(PlanSource)
    subscription_id = Uuid(nullable=True, description="The subscription that decides.")
    until = AwareDateTime(
        nullable=True, description="When the assigned plan ends that decides, or null."
    )
    because = Str(description="Why that decides the plan, in one sentence.")
    candidates = ListOf(
        Nested(PlanCandidateSchema),
        description="In order of precedence: the assigned plan, the subscriptions that have "
        "not ended, the plan that the tenant keeps while the first of them names a plan without "
        "a preset, the default plan; then the subscriptions that have ended; at most "
        f"{MAX_SUBSCRIPTIONS} subscriptions.",
    )


class PlanAssignmentSchema(Schema):
    """The plan to assign."""

    examples = {
        **Documented.examples,
        "until": None,
        "reason": "Pilot until the contract is signed.",
    }

    plan_name = Str(
        required=True, min_length=1, max_length=255, description="The name of a plan preset."
    )
    until = AwareDateTime(
        required=True,
        nullable=True,
        description="When the plan ends, in the future. Null: when it is deleted.",
    )
    reason = Str(
        max_length=500,
        description="Such as pilot, comped or internal; the explanation shows it. Without it "
        "an assigned plan keeps its reason.",
    )


class TrialSchema(PlanAssignmentSchema):
    """An assigned plan that ends, as its events show it."""

    examples = {
        **PlanAssignmentSchema.examples,
        "until": "2026-03-01T00:00:00Z",
        "next_plan_name": "free",
    }

    until = AwareDateTime(required=True, description="When the plan ends (UTC).")
    reason = Str(required=True, description="Why the plan was assigned.")
    next_plan_name = Str(required=True, description="The plan that the tenant has afterwards.")


def flag_errors(flags: list[dict[str, Json]]) -> Iterator[Entry]:
    """The errors of a list of flags whose fields are valid: repeated keys and wrong types."""
    seen: set[str] = set()
    balances = credit_keys(flags)
    for index, flag in enumerate(flags):
        loc: list[str | int] = ["body", "flags", index]
        key = flag["flag_key"]
        if key in seen:
            reason = "a preset can have each flag only once"
            yield value_error([*loc, "flag_key"], reason, key)
        seen.add(key)
        yield from type_errors(flag["flag_type"], flag["default_value"], [*loc, "default_value"])
        yield from metering_errors(flag, balances, [*loc, "metering"])
        yield from rule_errors(flag, [*loc, "rules"])

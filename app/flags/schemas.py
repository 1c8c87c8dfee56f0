"""Requests and answers of /v1/billing/flags."""

from __future__ import annotations

from app.auth.tenant_choice import TenantOrOwnSchema
from app.core.db.statements import Statement
from app.core.http.includes import by_id, own_column, related
from app.core.http.pagination import ONE_TENANT, PageQuerySchema
from app.core.validation.fields import (
    AnyJson,
    AwareDateTime,
    Bool,
    Choice,
    Int,
    ListOf,
    Nested,
    Str,
    Uuid,
)
from app.core.validation.schemas import AnswerSchema, RowSchema, Schema
from app.flags.evaluation import Layer
from app.plans.flag_types import FlagType
from app.plans.models import PlanPreset
from app.plans.rule_schemas import MAX_RULES, Percent, Rules, RuleSchema
from app.plans.schemas import FLAG_KEY_PATTERN, RULE, FlagValue

EXPIRY = "In the future; then the preset's value applies again. Null: no expiry."
CARRY_OVER = (
    "Whether it carries over to the tenant's next plan, where that has the flag with the"
    " same type and the tenant has no other override of it."
)
MAX_REASON = 500
REASON = (
    "Why the tenant has the value; its owners and admins can read it. Required by the setting"
    " `OVERRIDE_REASON_REQUIRED`."
)


class Documented(Schema):
    """Descriptions and examples of the fields that the schemas here share."""

    examples = {
        "flag_key": "single-sign-on",
        "flag_value": True,
        "expires_at": None,
        "plan_name": "growth",
        "flag_type": "boolean",
        "is_suspended": False,
        "decided_by": "override",
        "because": "The tenant's override takes precedence over the plan's preset.",
        "key": "single-sign-on",
        "value": True,
        "source": "override",
        "preset_value": False,
        "override_value": True,
        "override_id": "01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f",
        "reason": "Pilot until the contract is signed.",
        "rule": None,
        "name": "growth-first",
        "matches": False,
        "bucket": 37.214,
        "salt": "single-sign-on",
    }
    descriptions = {
        "source": "Where the value comes from.",
        "preset_value": "The value of the plan's preset.",
        "override_value": "The override's value; null without an override.",
        "override_id": "The override, also an expired one; null without an override.",
        "expires_at": "When the override ends (UTC); null: never, or without an override.",
        "is_locked": "Whether only a platform superadmin can change the flag's overrides.",
        "tenant_id": "The tenant.",
        "is_suspended": "Whether the tenant is suspended; then overrides have no effect.",
        "decided_by": "Except with `override` and `rule`, the value is the preset's.",
    }


class OverrideSchema(Documented, RowSchema):
    """One tenant's own value of one flag of one preset."""

    tenant_id = Uuid()
    plan_preset_id = Uuid(description="The plan preset whose flag it is.")
    flag_key = Str()
    flag_value = AnyJson(description="The tenant's own value of the flag.")


class OverrideCreateSchema(Documented):
    """A new override."""

    flag_key = Str(required=True, pattern=FLAG_KEY_PATTERN)
    flag_value = FlagValue(required=True)
    plan_preset_id = Uuid(description="By default the preset of the tenant's plan.")
    expires_at = AwareDateTime(nullable=True, description=EXPIRY)
    carry_over = Bool(description=CARRY_OVER)
    reason = Str(max_length=MAX_REASON, description=REASON)


class OverrideUpdateSchema(Documented):
    """The override's new value."""

    flag_value = FlagValue(required=True)
    expires_at = AwareDateTime(nullable=True, description=f"{EXPIRY} Only for superadmins.")
    carry_over = Bool(description=f"{CARRY_OVER} Only for superadmins.")
    reason = Str(max_length=MAX_REASON, description=f"{REASON} Without it, the old one stays.")


class OverrideQuerySchema(Documented, PageQuerySchema):
    """Filters of the list of overrides; an override has to match all."""

    as_json = True

    tenant_id = Uuid(metadata=ONE_TENANT)
    plan_preset_id = Uuid(description="Only overrides of this preset.")
    flag_key = Str(description="Only overrides of this flag.")


class FlagdQuerySchema(Documented):
    """Which tenants the document is for; by default all."""

    plan = Str(load_default=None, description="Only the tenants whose plan has this name.")
    tenant_id = Uuid(load_default=None, description="Only this tenant.")


FLAGD_DOCUMENT = {
    "description": "A flagd document: https://flagd.dev/schema/v0/flags.json.",
    "headers": {"ETag": {"$ref": "#/components/headers/ETag"}},
    "content": {"application/json": {"schema": {"type": "object"}}},
}


class EffectiveFlagSchema(Documented, AnswerSchema):
    """One flag of a tenant, and the source of its value."""

    key = Str(description="The flag's key.")
    type = Choice(FlagType, description="The type of the flag's values.")
    value = AnyJson(description="The value that applies now.")
    source = Str(metadata={"enum": ["preset", "override", "rule"]})
    preset_value = AnyJson()
    override_value = AnyJson()
    override_id = Str(nullable=True)
    expires_at = AwareDateTime(nullable=True)
    is_locked = Bool()


class FlagExplanationQuerySchema(TenantOrOwnSchema):
    """The tenant, and the user whom rules compare."""

    targeting_key = Str(
        load_default="",
        max_length=255,
        description="The user, as in the evaluation context. Rules that compare other keys of a"
        " context do not match here.",
    )


class ExplainedRuleSchema(Documented, AnswerSchema):
    """A rule of the flag, in order; the first that matches decides."""

    name = Str(description="The rule's name.")
    matches = Bool(description="Whether it matches the tenant and the user.")
    bucket = Percent(
        nullable=True, description="Where the rollout puts them, from 0 to 100; inside is below."
    )
    salt = Str(nullable=True, description="The salt of the bucket.")


class FlagExplanationSchema(Documented, AnswerSchema):
    """Why a flag of a tenant has its value. The plan's preset has the name `plan_name`."""

    tenant_id = Uuid()
    is_suspended = Bool()
    plan_name = Str()
    flag_key = Str(attribute="key")
    flag_type = Choice(FlagType, nullable=True, attribute="type")
    value = AnyJson(description="The value that applies now.")
    decided_by = Choice(Layer, attribute="layer")
    because = Str(description="Why that decides, in one sentence.")
    preset_value = AnyJson()
    is_locked = Bool(description="Whether the preset locks the flag.")
    override_id = Str(nullable=True)
    override_value = AnyJson()
    expires_at = AwareDateTime(nullable=True)
    reason = Str(description="Why the override was given; empty without a reason.")
    rule = Str(nullable=True, description="The rule that decides, or null.")
    tried = ListOf(
        Nested(ExplainedRuleSchema), data_key="rules", description="Empty if rules were not asked."
    )


class RulePreviewRequestSchema(Schema):
    """The rules that the flag would have."""

    examples = {"rules_": [RULE]}

    rules_ = Rules(
        Nested(RuleSchema),
        required=True,
        attribute="rules",
        data_key="rules",
        metadata={"maxItems": MAX_RULES},
        description="All rules; an empty list removes them.",
    )


class ChangedValueSchema(Documented, AnswerSchema):
    """A tenant that would have another value."""

    examples = {"before": False, "after": True}

    tenant_id = Uuid()
    before = AnyJson(description="The value that it has.")
    after = AnyJson(description="The value that it would have.")


class RulePreviewSchema(Documented, AnswerSchema):
    """How many tenants of a preset would have another value of a flag.

    Rules that compare users or the context, and rollouts by user, match nobody here.
    """

    tenants = Int(description="Tenants of the plan that were looked at, at most 100,000.")
    is_complete = Bool(description="Whether these are all tenants of the plan.")
    changed = Int(description="How many of them would have another value.")
    changes = ListOf(Nested(ChangedValueSchema), description="The first 20 of those.")


class PresetSummarySchema(AnswerSchema):
    """The preset that has the flag."""

    examples = {"name": "growth"}

    id = Uuid()
    name = Str(description="The plan's name.")


FIND_CREATORS = Statement(
    "audit_events.find_creators",
    "SELECT target_id, actor FROM audit_events"
    " WHERE target_id = ANY (CAST(:keys AS text[])) AND action = 'override.created'",
)
EXPIRES_AT = own_column("expires_at", AwareDateTime(nullable=True, description="Null: no expiry."))
CARRIES_OVER = own_column(
    "carry_over", Bool(description="Whether it carries over to the tenant's next plan.")
)
GIVEN_REASON = own_column("reason", Str(description="Empty if nobody gave one."))
PRESET = related(
    "preset",
    Nested(PresetSummarySchema, description="The preset that has the flag."),
    by_id("plan_presets.find_summaries", PlanPreset.id, PlanPreset.name),
    lambda row: row.plan_preset_id,
)
CREATED_BY = related(
    "created_by",
    Str(description="The actor, as in the audit trail."),
    FIND_CREATORS,
    lambda row: str(row.id),
    column="actor",
)

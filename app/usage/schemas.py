"""Requests and answers of /v1/usage."""

from __future__ import annotations

from collections.abc import Iterator

from app.auth.tenant_choice import TenantChoiceSchema
from app.core.db.pages import DEFAULT_LIMIT, MAX_LIMIT
from app.core.errors import Entry
from app.core.validation.fields import AwareDateTime, Bool, Choice, Int, ListOf, Nested, Str, Uuid
from app.core.validation.messages import refused
from app.core.validation.schemas import AnswerSchema, Schema
from app.plans.flag_types import Policy

MAX_ENTRIES = 100
MAX_AMOUNT = 10**15
MAX_KEY = 255
MAX_REASON = 500


class Documented(Schema):
    """Descriptions and examples of the fields that the schemas here share."""

    examples = {
        "feature": "api-calls",
        "limit": 1000,
        "used": 201,
        "remaining": 799,
        "resets_at": "2026-02-01T00:00:00Z",
        "period_start": "2026-01-01T00:00:00Z",
        "policy": "hard",
        "over_by": 0,
        "idempotency_key": "order-42",
        "reason": "A faulty client counted twice.",
    }
    descriptions = {
        "used": "What is used in the period.",
        "reason": "Why it is corrected; the audit trail shows it.",
        "idempotency_key": "The same key of a feature counts once in 24 hours.",
        "entries": "Several amounts, which are counted in the order of their keys.",
    }


GIVE_BACK = "Negative to give back, only where the period is `none`."
RESETS_AT = "When the count starts anew; null: never."
TENANT = Str(
    min_length=1,
    max_length=MAX_KEY,
    description="The tenant, for platform credentials: its id, `idp_org_id` or slug. "
    "Without it, the tenant of the token's organization.",
)


class EntrySchema(Documented):
    """An amount to count."""

    feature = Str(required=True, description="The key of a limit of the plan.")
    amount = Int(ge=-MAX_AMOUNT, le=MAX_AMOUNT, load_default=1, description=GIVE_BACK)
    idempotency_key = Str(min_length=1, max_length=MAX_KEY)
    at = AwareDateTime(description="A time, which must be in the current period.")


class ConsumeSchema(EntrySchema):
    """One amount, or a list of `entries` instead."""

    feature = Str(description="The key of a limit of the plan. Required without `entries`.")
    amount = Int(ge=-MAX_AMOUNT, le=MAX_AMOUNT, description=f"1 if absent. {GIVE_BACK}")
    tenant_id = TENANT
    entries = ListOf(Nested(EntrySchema), metadata={"minItems": 1, "maxItems": MAX_ENTRIES})

    def rules(self, values: dict[str, object]) -> Iterator[Entry]:
        if "entries" in values:
            for name in ("feature", "amount", "idempotency_key", "at"):
                if name in values:
                    yield refused("extra_forbidden", ("body", name), values[name])
        elif "feature" not in values:
            yield refused("missing", ("body", "feature"), values)


class DecisionSchema(Documented, AnswerSchema):
    """Whether the amount fits, and the limit's state."""

    optional = ("over_by",)

    allowed = Bool(description="Whether the amount fits.")
    feature = Str()
    limit = Int(description="-1: unlimited.")
    used = Int()
    remaining = Int(nullable=True, description="Null: unlimited.")
    resets_at = AwareDateTime(nullable=True, description=RESETS_AT)
    policy = Choice(Policy)
    over_by = Int(
        description="How much more than the limit is used. Of a soft limit, and of a "
        "hard one that is lower than what is used."
    )


class UsageSchema(Documented, AnswerSchema):
    """What is used of a limit in one period."""

    feature = Str()
    limit = Int(nullable=True, description="-1: unlimited. Null for a period that is over.")
    used = Int()
    remaining = Int(nullable=True, description="Null: unlimited, or the period is over.")
    over_by = Int(description="How much more than the limit is used.")
    period_start = AwareDateTime(nullable=True, description="Null: the count has no period.")
    resets_at = AwareDateTime(nullable=True, description="The end of the period, or null.")
    policy = Choice(Policy, nullable=True, description="Null for a period that is over.")
    is_current = Bool(description="Whether the period has not ended.")


class LimitUseSchema(Documented, AnswerSchema):
    """How much of a limit is used."""

    examples = {**Documented.examples, "percent": 80, "used": 800}

    feature = Str()
    used = Int()
    limit = Int(description="The limit.")
    percent = Int(
        description="The level that was reached; of credits, in percent of the last grant."
    )
    policy = Choice(Policy)
    resets_at = AwareDateTime(nullable=True, description=RESETS_AT)


class LimitOverrunSchema(Documented, AnswerSchema):
    """What was used beyond a hold or lease and did not fit into the limit."""

    examples = {**Documented.examples, "over_by": 5, "used": 1000}

    feature = Str()
    hold_id = Uuid(description="The hold or lease.")
    over_by = Int(description="How much was not counted.")
    used = Int(description="What is counted in the period.")
    limit = Int(description="The limit.")
    resets_at = AwareDateTime(nullable=True, description=RESETS_AT)


class CorrectionSchema(Documented):
    """What is used in the current period."""

    used = Int(required=True, ge=0, le=MAX_AMOUNT)
    reason = Str(required=True, min_length=1, max_length=MAX_REASON)


class UsageQuerySchema(Documented, TenantChoiceSchema):
    """The tenant, and which of its limits and periods are listed."""

    feature = Str(description="Only of this limit.")
    since = AwareDateTime(data_key="from", description="Only periods that end after this time.")
    until = AwareDateTime(data_key="to", description="Only periods that start before this time.")
    limit = Int(
        ge=1,
        le=MAX_LIMIT,
        load_default=DEFAULT_LIMIT,
        metadata={"description": "The most rows of a page.", "examples": [50]},
    )
    cursor = Str(description="`next_cursor` of the page before.")

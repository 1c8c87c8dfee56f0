"""Requests and answers of /v1/billing/prices."""

from __future__ import annotations

from collections.abc import Iterator

from app.core.errors import Entry, value_error
from app.core.http.pagination import PageQuerySchema
from app.core.json_text import Json
from app.core.validation.fields import Bool, Choice, Int, ListOf, Nested, Str, Uuid
from app.core.validation.schemas import AnswerSchema, RowSchema, Schema
from app.plans.prices import SHOWN
from app.plans.schemas import FLAG_KEY_PATTERN, PlanPresetCreateSchema
from app.subscriptions.models import ProviderName

MAX_SORT_ORDER = 10_000


class Documented(Schema):
    """Descriptions and examples of the fields that the schemas here share."""

    examples = {
        "price_id": "price_growth",
        "lookup_key": None,
        "plan_name": "growth",
        "limit_key": None,
        "sort_order": 0,
        "bp_subscription_id": "sub_1PqR",
        "next_plan_name": "scale",
        "subscriptions": 12,
    }
    descriptions = {
        "provider": "The billing provider.",
        "price_id": "The provider's id of the price; null if `lookup_key` names it.",
        "lookup_key": "The price's own name at the provider; null if `price_id` names it.",
        "plan_name": "The plan preset that a subscription with this price gives.",
        "limit_key": "The limit that the item's quantity sets, such as `seats`; null: none.",
        "sort_order": "Of several prices of a subscription, the lowest decides the plan.",
    }


class PlanPriceSchema(Documented, RowSchema):
    """What a price of a billing provider gives."""

    provider = Choice(ProviderName)
    price_id = Str(nullable=True)
    lookup_key = Str(nullable=True)
    plan_name = Str()
    limit_key = Str(nullable=True)
    sort_order = Int()


class ChangedSubscriptionSchema(Documented, AnswerSchema):
    """A subscription that gets another plan or other limits."""

    id = Uuid()
    tenant_id = Uuid()
    bp_subscription_id = Str(description="The provider's id of the subscription.")
    plan_name = Str(description="The plan that it has.")
    next_plan_name = Str(description="The plan that it gets.")


class PlanPriceChangeSchema(PlanPriceSchema):
    """What a price gives, and which subscriptions that changes."""

    subscriptions = Int(description="How many subscriptions change.")
    changed = ListOf(Nested(ChangedSubscriptionSchema), description=f"The first {SHOWN} of them.")


class PlanPriceSetSchema(Documented):
    """What a price gives; either `price_id` or `lookup_key` names it."""

    provider = Choice(ProviderName, required=True)
    price_id = Str(min_length=1, max_length=255, nullable=True, load_default=None)
    lookup_key = Str(min_length=1, max_length=255, nullable=True, load_default=None)
    plan_name = Str(required=True, min_length=1, max_length=255)
    limit_key = Str(pattern=FLAG_KEY_PATTERN, nullable=True, load_default=None)
    sort_order = Int(ge=0, le=MAX_SORT_ORDER, load_default=0)

    def rules(self, values: dict[str, Json]) -> Iterator[Entry]:
        if (values["price_id"] is None) == (values["lookup_key"] is None):
            reason = "give either price_id or lookup_key"
            place = "price_id" if values["price_id"] is None else "lookup_key"
            yield value_error(["body", place], reason, values[place])


class PlanFileSchema(Schema):
    """A file of ``flask plans apply``."""

    plans = ListOf(Nested(PlanPresetCreateSchema), required=True)
    prices = ListOf(Nested(PlanPriceSetSchema), load_default=list)

    def rules(self, values: dict[str, Json]) -> Iterator[Entry]:
        """Those of each plan and each price; a plan is there once."""
        names = [plan["name"] for plan in values["plans"]]
        if len({*names}) < len(names):
            yield value_error(["plans"], "a plan is in the file twice", None)
        for rows, schema in (("plans", PlanPresetCreateSchema()), ("prices", PlanPriceSetSchema())):
            for number, row in enumerate(values[rows]):
                for entry in schema.rules(row):
                    yield {**entry, "loc": [rows, number, *entry["loc"][1:]]}


class DryRunSchema(Schema):
    """Whether only to tell what would change."""

    dry_run = Bool(load_default=False, description="Tell what would change, and write nothing.")


class PlanPriceQuerySchema(Documented, PageQuerySchema):
    """Filters of the list of prices."""

    provider = Choice(ProviderName, description="Only prices of this billing provider.")

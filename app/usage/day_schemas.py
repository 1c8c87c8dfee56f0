"""Requests and answers about usage by day."""

from __future__ import annotations

from pydantic_core import core_schema

from app.auth.tenant_choice import TenantChoiceSchema
from app.core.validation.fields import AwareDateTime, Int, ListOf, Nested, Scalar, Str
from app.core.validation.schemas import AnswerSchema, Schema

MAX_DAYS = 90


class Documented(Schema):
    """Descriptions and examples of the fields that the schemas here share."""

    examples = {
        "feature": "api-calls",
        "day": "2026-01-31",
        "used": 24_000,
        "limit": 100_000,
        "pace_per_day": 2850.5,
        "ends_at": "2026-02-12T08:00:00Z",
    }
    descriptions = {"feature": "The key of a limit of the plan."}


class Pace(Scalar):
    """A number that is not negative."""

    accepts = core_schema.float_schema(ge=0)
    keywords = {
        "type": "number",
        "minimum": 0,
        "description": "What the last 7 days, today included, have used a day.",
    }


class DaysQuerySchema(Documented, TenantChoiceSchema):
    """The tenant, the limit, and how many days."""

    examples = {**Documented.examples, "days": 30}

    feature = Str(required=True)
    days = Int(ge=1, le=MAX_DAYS, load_default=30, description="How many days, today included.")


class UsageOfDaySchema(Documented, AnswerSchema):
    """What a day has used."""

    examples = {**Documented.examples, "used": 2900}

    day = Str(metadata={"format": "date"}, description="In UTC.")
    used = Int(description="Negative where more was given back than counted.")


class ForecastSchema(Documented, AnswerSchema):
    """When the limit ends at the pace of the last 7 days."""

    pace_per_day = Pace()
    ends_at = AwareDateTime(
        nullable=True,
        description="Null: unlimited, not within a year, or the next period begins before.",
    )


class UsageByDaySchema(Documented, AnswerSchema):
    """What was used of a limit on each day, the oldest first."""

    feature = Str()
    days = ListOf(
        Nested(UsageOfDaySchema),
        description="The last days, today included.",
        metadata={"maxItems": MAX_DAYS},
    )
    forecast = Nested(ForecastSchema, description="When the limit ends at the present pace.")


class LimitForecastSchema(Documented, AnswerSchema):
    """A limit that will end soon."""

    feature = Str()
    used = Int(description="What is used in the period.")
    limit = Int(description="The limit.")
    pace_per_day = Pace()
    ends_at = AwareDateTime(description="When all of it is used at this pace.")

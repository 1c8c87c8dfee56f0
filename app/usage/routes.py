"""/v1/usage."""

from __future__ import annotations

from collections.abc import Sequence

from app.auth.guard import current_actor, requires
from app.auth.permissions import Permission
from app.auth.tenant_choice import TenantChoiceSchema, target_id
from app.core.db.pages import Page
from app.core.errors import NotFound
from app.core.http.blueprint import Blueprint
from app.core.http.endpoint import reads_primary
from app.core.json_text import Json
from app.core.openapi.components import CONSISTENCY_ANSWER
from app.tenants.lookup import take_target_id
from app.usage import days, hold_routes, schemas, service
from app.usage.day_schemas import DaysQuerySchema, UsageByDaySchema
from app.usage.limits import BelowZero, Decision, LimitReached, Usage
from app.usage.service import Request

blp = Blueprint(
    "usage", __name__, url_prefix="/v1/usage", description="What tenants use of their limits."
)
BLUEPRINTS = (blp, hold_routes.blp, hold_routes.leases)

ONE = {"feature": "api-calls", "amount": 1, "idempotency_key": "order-42"}
DECISION = {
    "anyOf": [schemas.DecisionSchema, {"type": "array", "items": schemas.DecisionSchema}],
    "description": "What is decided, for one amount or for each of `entries`.",
}
DECIDED = {"type": "object", "required": ["data"], "properties": {"data": DECISION}}
ANSWER = {
    "description": "One object, or a list of them in the order of `entries`.",
    "content": {"application/json": {"schema": DECIDED}},
}


@blp.post("/consume")
@requires(Permission.USAGE_WRITE)
@blp.arguments(schemas.ConsumeSchema, example=ONE)
@blp.doc(responses={"200": {**ANSWER, "headers": CONSISTENCY_ANSWER}})
@blp.raises(LimitReached, BelowZero, NotFound.of("tenant"))
def consume(body: dict[str, Json]) -> dict[str, Json]:
    """Count what a tenant uses of a limit; more than a hard limit is refused and not counted.

    Of several `entries` each that fits is counted, and `allowed` tells which; then one that does not
    fit is no error. The amount is counted in PostgreSQL's current period.
    """
    tenant_id = take_target_id(body)
    if "entries" in body:
        return _answer(service.consume_all(tenant_id, _entries(body), actor=current_actor()))
    return _answer(service.consume(tenant_id, Request(**body), actor=current_actor()))


@blp.post("/check")
@requires(Permission.USAGE_READ)
@blp.arguments(schemas.ConsumeSchema, example=ONE)
@blp.doc(responses={"200": ANSWER})
@blp.raises(NotFound.of("tenant"))
@reads_primary
def check(body: dict[str, Json]) -> dict[str, Json]:
    """Ask whether an amount would fit, without counting it.

    Each of several `entries` is checked alone. One that does not fit is no error.
    """
    tenant_id = take_target_id(body)
    if "entries" in body:
        return _answer(service.check_all(tenant_id, _entries(body)))
    return _answer(service.check_all(tenant_id, [Request(**body)])[0])


@blp.get("")
@requires(Permission.USAGE_READ)
@blp.arguments(schemas.UsageQuerySchema, location="query")
@blp.columns("feature", "limit", "used", "remaining", "over_by", "period_start", "resets_at")
@blp.response(200, schemas.UsageSchema(many=True))
def list_usage(query: dict[str, Json]) -> Page:
    """List current and past periods of a tenant's limits, by limit, the newest first."""
    tenant_id = query.pop("tenant_id", None) or target_id()
    return service.list_usage(tenant_id, **query)


@blp.get("/days")
@requires(Permission.USAGE_READ)
@blp.arguments(DaysQuerySchema, location="query")
@blp.response(200, UsageByDaySchema)
@blp.raises(NotFound.of("limit"))
def list_days(query: dict[str, Json]) -> dict[str, object]:
    """List what was used of a limit on each of the last days, and forecast when the limit ends.

    Days are in UTC; 100 are kept. Counts are stored every 15 minutes, so a day can have a quarter of
    an hour of the next one.
    """
    tenant_id = target_id(query.pop("tenant_id", None))
    return days.list_days(tenant_id, **query)


@blp.put("/<feature>")
@requires(Permission.USAGE_WRITE, platform_only=True)
@blp.arguments(TenantChoiceSchema, location="query")
@blp.arguments(schemas.CorrectionSchema)
@blp.response(200, schemas.UsageSchema)
def correct(query: dict[str, Json], body: dict[str, Json], feature: str) -> Usage:
    """Correct what a tenant has used of a limit in the current period."""
    tenant_id = target_id(query.get("tenant_id"))
    return service.correct(tenant_id, feature, **body, actor=current_actor())


def _entries(body: dict[str, Json]) -> list[Request]:
    entries = enumerate(body["entries"])
    return [Request(**entry, loc=("body", "entries", place)) for place, entry in entries]


def _answer(decided: Decision | Sequence[Decision]) -> dict[str, Json]:
    if isinstance(decided, Decision):
        return {"data": decided.as_answer()}
    return {"data": [decision.as_answer() for decision in decided]}

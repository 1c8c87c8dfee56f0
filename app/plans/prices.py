"""The prices of billing providers: which plan each gives, and which limit gets its quantity.

The rule is ``migrations/functions/plan_of_items.sql``. A job applies a change to the subscriptions
that have the price.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any
from uuid import UUID

from sqlalchemy import select

from app.audit import service as audit
from app.core.actors import Actor
from app.core.db import queries
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.db.queries import Change
from app.core.db.statements import Statement
from app.core.db.tenancy import trial
from app.core.db.writes import insert_row
from app.core.errors import Invalid, NotFound, value_error
from app.core.jobs.queues import JOBS
from app.core.json_text import Json
from app.plans.flag_types import FlagType
from app.plans.following import default_plan
from app.plans.models import PlanPreset, PlanPrice
from app.plans.presets import find_preset

FOLLOW_PRICES = "app.billing.jobs.follow_prices"
FIRST = UUID(int=0)
SHOWN = 100  # subscriptions that change
KEY = ("provider", "price_id", "lookup_key")
FIELDS = (*KEY, "plan_name", "limit_key", "sort_order")
INTERNAL = frozenset({"is_pending", "is_deleted"})

# Wait for the transactions that have found a plan by the prices of this provider.
LOCK = Statement(
    "plan_prices.lock_of_provider",
    "SELECT pg_advisory_xact_lock(hashtextextended(concat('prices ', CAST(:provider AS text)), 0))",
)
LIST_ALL = Statement(
    "plan_prices.list_all",
    select(PlanPrice)
    .where(PlanPrice.is_deleted.is_(False))
    .order_by(PlanPrice.created_at, PlanPrice.id),
)
_CHANGED = """
    FROM subscriptions s CROSS JOIN LATERAL plan_of_items(s.bp_provider, s.items) f
    WHERE s.bp_provider = :provider AND s.status_class <> 'ended' AND s.id > :after
        AND EXISTS (SELECT FROM json_array_elements(s.items) i
            WHERE i ->> 'price' = :price_id OR i ->> 'lookup_key' = :lookup_key)
        AND (f.plan_name <> s.plan_name OR CAST(f.limits AS jsonb) <> CAST(s.limits AS jsonb))
"""
FIND_CHANGED = Statement(
    "plan_prices.find_changed",
    "SELECT s.id, s.tenant_id, s.bp_subscription_id, s.plan_name, f.plan_name AS next_plan_name"
    f"{_CHANGED} ORDER BY s.id LIMIT :limit",
    prepare=False,
)
COUNT_CHANGED = Statement("plan_prices.count_changed", f"SELECT count(*) {_CHANGED}", prepare=False)


def list_prices(paging: Paging = FIRST_PAGE, *, provider: str | None = None) -> Page:
    """One page of all prices, or of one provider's."""
    named = {} if provider is None else {"provider": provider}
    return paginate(PlanPrice, paging, equal={**named, "is_deleted": False})


def find_changed(price: PlanPrice, *, limit: int, after: UUID = FIRST) -> Sequence[Any]:
    """The first subscriptions that have the price, and by their items another plan or limits."""
    return FIND_CHANGED.all(**_key(price), limit=limit, after=after)


def set_price(
    values: Mapping[str, Json], *, dry_run: bool = False, actor: Actor
) -> dict[str, Json]:
    """Add or change what a price gives; returns it, with the subscriptions that change.

    ``subscriptions`` is their number, ``changed`` the first :data:`SHOWN`. A job changes them.
    ``dry_run`` writes nothing. Raises what :func:`put` raises.
    """
    with trial() if dry_run else nullcontext():
        _, price = put(values, actor=actor)
        changed = find_changed(price, limit=SHOWN)
        count = COUNT_CHANGED.scalar(**_key(price), after=FIRST)
    return {**price._asdict(), "subscriptions": count, "changed": changed}


def put(values: Mapping[str, Json], *, actor: Actor) -> tuple[PlanPrice | None, PlanPrice]:
    """Add or change what a price gives; returns the row before, if it existed, and the row now.

    ``values`` are :data:`FIELDS`; ``price_id`` or ``lookup_key`` is None. Raises Invalid for a plan
    without a preset, and for a limit that the preset lacks.
    """
    values = {**values, "provider": str(values["provider"])}
    _check(values["plan_name"], values["limit_key"])
    LOCK.execute(provider=values["provider"])
    known = queries.find_row(
        PlanPrice, **{name: values[name] for name in KEY if values[name] is not None}
    )
    if known is None:
        price = insert_row(PlanPrice, values)
        audit.record_creation("plan_price.created", price, actor=actor, hidden=INTERNAL)
        JOBS[FOLLOW_PRICES].push()
        return None, price
    return (None if known.is_deleted else known), _change(
        known, {**values, "is_deleted": False}, "plan_price.updated", actor
    )


def delete_price(price_id: UUID | str, *, actor: Actor) -> None:
    """Delete a price; a job gives its subscriptions the plan that they have without it."""
    price = queries.lock_row(PlanPrice, price_id)
    if price.is_deleted:
        raise NotFound.of(PlanPrice)
    LOCK.execute(provider=price.provider)
    _change(price, {"is_deleted": True}, "plan_price.deleted", actor)


def limits_of(preset: PlanPreset | None) -> set[str]:
    """The keys of the preset's flags that are limits."""
    flags: Sequence[Mapping[str, Json]] = () if preset is None else preset.flags
    return {flag["flag_key"] for flag in flags if flag["flag_type"] == FlagType.LIMIT}


def _key(price: PlanPrice) -> dict[str, Json]:
    return {name: getattr(price, name) for name in KEY}


def _change(price: PlanPrice, values: Mapping[str, Json], action: str, actor: Actor) -> PlanPrice:
    price, change = queries.update_row(PlanPrice, price, values, also={"is_pending": True})
    if change is not None:
        before = Change({name: getattr(price, name) for name in FIELDS}, {})
        shown = before if price.is_deleted else change
        audit.record(action, price, shown, actor=actor, hidden=INTERNAL)
        JOBS[FOLLOW_PRICES].push()
    return price


def _check(plan_name: str, limit_key: str | None) -> None:
    preset = find_preset(plan_name)
    if preset is None and plan_name != default_plan():
        raise Invalid(value_error(["body", "plan_name"], "no preset has this name", plan_name))
    if limit_key is not None and limit_key not in limits_of(preset):
        reason = f"the preset {plan_name!r} has no such limit"
        raise Invalid(value_error(["body", "limit_key"], reason, limit_key))

"""Plan presets and prices kept as code: apply lists of them, and export all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import select

from app.core.actors import Actor
from app.core.db.statements import Statement
from app.core.json_text import Json, differs
from app.plans import prices as plan_prices
from app.plans.models import Flags, PlanPreset, PlanPrice
from app.plans.presets import create_preset, find_preset, update_preset

FIELDS = ("name", "display_name", "flags")
LIST_ALL = Statement(
    "plan_presets.list_all", select(PlanPreset).order_by(PlanPreset.created_at, PlanPreset.id)
)


class Difference(NamedTuple):
    """A change by a list to one plan: its preset, display name, one flag or one price.

    ``before`` is None for what is added, ``after`` for what is removed.
    """

    plan: str
    item: str
    before: Json
    after: Json


def apply(
    plans: Sequence[Mapping[str, Json]],
    prices: Sequence[Mapping[str, Json]] = (),
    *,
    force: bool = False,
    actor: Actor,
) -> list[Difference]:
    """Create the presets and prices that are missing, and update the others; returns what differs.

    Presets are found by name. Those that ``plans`` lacks, and prices that ``prices`` lacks, are left
    as they are. Raises what :func:`update_preset` and :func:`app.plans.prices.put` raise.
    """
    for provider in sorted({str(values["provider"]) for values in prices}):
        plan_prices.LOCK.execute(provider=provider)  # before the presets, as events do
    found = [
        difference
        for plan in sorted(plans, key=lambda plan: str(plan["name"]))
        for difference in _apply(plan, force=force, actor=actor)
    ]
    for values in prices:
        known, new = plan_prices.put(values, actor=actor)
        before, after = None if known is None else _priced(known), _priced(new)
        if before != after:
            key = new.price_id or new.lookup_key
            found.append(Difference(new.plan_name, f"price {new.provider} {key}", before, after))
    return found


def export() -> dict[str, list[dict[str, Json]]]:
    """All presets, and all prices if there are any, oldest first, as :func:`apply` takes them."""
    plans = [{name: getattr(preset, name) for name in FIELDS} for preset in LIST_ALL.all()]
    prices = [_priced(price) for price in plan_prices.LIST_ALL.all()]
    return {"plans": plans, "prices": prices} if prices else {"plans": plans}


def _priced(price: PlanPrice) -> dict[str, Json]:
    values = {name: getattr(price, name) for name in plan_prices.FIELDS}
    return {name: value for name, value in values.items() if value is not None}


def _apply(plan: Mapping[str, Json], *, force: bool, actor: Actor) -> Iterator[Difference]:
    known = find_preset(plan["name"])
    if known is None:
        made = create_preset(**plan, actor=actor)
        yield Difference(made.name, "preset", None, made.display_name)
        yield from _of_flags(made.name, [], made.flags)
        return
    new = update_preset(known.id, plan, force=force, actor=actor)
    if known.display_name != new.display_name:
        yield Difference(new.name, "display_name", known.display_name, new.display_name)
    yield from _of_flags(new.name, known.flags, new.flags)


def _of_flags(plan: str, old: Flags, new: Flags) -> Iterator[Difference]:
    before = {flag["flag_key"]: flag for flag in old}
    after = {flag["flag_key"]: flag for flag in new}
    for key in before | after:
        if differs(before.get(key), after.get(key)):
            yield Difference(plan, f"flag {key}", before.get(key), after.get(key))

"""Plan presets kept as code: apply a list of presets, and export all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import select

from app.core.actors import Actor
from app.core.db.statements import Statement
from app.core.json_text import Json, differs
from app.plans.models import Flags, PlanPreset
from app.plans.presets import create_preset, find_preset, update_preset

FIELDS = ("name", "display_name", "flags")
LIST_ALL = Statement(
    "plan_presets.list_all", select(PlanPreset).order_by(PlanPreset.created_at, PlanPreset.id)
)


class Difference(NamedTuple):
    """What applying a list changes of one preset: the preset, its display name or one flag.

    ``before`` is None for what is added, ``after`` for what is removed.
    """

    plan: str
    item: str
    before: Json
    after: Json


def apply(
    plans: Sequence[Mapping[str, Json]], *, force: bool = False, actor: Actor
) -> list[Difference]:
    """Create the presets that are missing and update the others, by name; returns what differs.

    Presets that ``plans`` lacks are left as they are. Raises what :func:`update_preset` raises.
    """
    return [
        difference
        for plan in sorted(plans, key=lambda plan: str(plan["name"]))
        for difference in _apply(plan, force=force, actor=actor)
    ]


def export() -> list[dict[str, Json]]:
    """All presets, oldest first, as :func:`apply` takes them."""
    return [{name: getattr(preset, name) for name in FIELDS} for preset in LIST_ALL.all()]


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

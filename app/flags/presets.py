"""Plan presets: create, find, change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import bindparam, select

from app.audit import service as audit
from app.core.actors import Actor
from app.core.db.pages import DEFAULT_LIMIT, Page, paginate
from app.core.db.queries import check_precondition, flush, get_row, lock_with
from app.core.errors import Conflict, Invalid, error
from app.extensions import db
from app.flags.models import PlanPreset

READ_ONLY = ("id", "created_at", "updated_at")
"""What may be sent back with a change, as it was read, and is nothing to write."""

BY_NAME = select(PlanPreset).where(PlanPreset.name == bindparam("name"))


def get_preset(preset_id: UUID | str) -> PlanPreset:
    """The preset; raises NotFound."""
    return get_row(PlanPreset, preset_id)


def find_preset(name: str) -> PlanPreset | None:
    """The preset of the plan of that name, or None."""
    return db.session.execute(BY_NAME, {"name": name}).scalar()


def list_presets(
    *, name: str | None = None, limit: int = DEFAULT_LIMIT, cursor: str | None = None
) -> Page:
    """One page of the presets, of that name alone where it is given."""
    equal = {} if name is None else {"name": name}
    return paginate(PlanPreset, equal=equal, limit=limit, cursor=cursor)


def create_preset(name: str, flags: list[dict[str, Any]], *, actor: Actor) -> PlanPreset:
    """A new preset; raises Conflict ``preset_name_taken``."""
    preset = PlanPreset(name=name, flags=flags)
    db.session.add(preset)
    _flush()
    audit.record_creation("plan_preset.created", preset, actor=actor)
    return preset


def update_preset(preset_id: UUID | str, values: Mapping[str, Any], *, actor: Actor) -> PlanPreset:
    """Change the name or replace the flags, for every tenant of the plan at once.

    An override whose flag is gone, or now of a type it does not fit, stays without effect.
    Raises Conflict ``preset_name_taken``, and Invalid for an id or a time other than the preset's.
    """
    preset, _ = lock_with(PlanPreset, preset_id)
    _check_read_only(preset, values)
    check_precondition(preset)
    change = preset.assign({name: values[name] for name in ("name", "flags") if name in values})
    if change is not None:
        _flush()
        audit.record("plan_preset.updated", preset, change, actor=actor)
    return preset


def _check_read_only(preset: PlanPreset, values: Mapping[str, Any]) -> None:
    errors = [
        error(
            ["body", name], "extra_forbidden", "Extra inputs are not permitted", str(values[name])
        )
        for name in READ_ONLY
        if name in values and values[name] != getattr(preset, name)
    ]
    if errors:
        raise Invalid(*errors)


def _flush() -> None:
    taken = Conflict("There is a preset of this name.", code="preset_name_taken")
    flush({"uq_plan_presets_name": taken})

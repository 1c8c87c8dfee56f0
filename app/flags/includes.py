"""The keys that reads of overrides can include."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import ARRAY, any_, bindparam, select

from app.audit.models import AuditEvent
from app.core.db.statements import Statement
from app.core.http.includes import Include, by_key
from app.core.validation.fields import AwareDateTime, Bool, Nested, Str, Uuid
from app.core.validation.schemas import Schema
from app.flags.models import PlanPreset

FIND_PRESETS = Statement(
    "plan_presets.find_summaries",
    select(PlanPreset.id, PlanPreset.name).where(
        PlanPreset.id == any_(bindparam("keys", type_=ARRAY(sa.Uuid)))
    ),
)
FIND_CREATORS = Statement(
    "audit_events.find_creators",
    select(AuditEvent.target_id, AuditEvent.actor).where(
        AuditEvent.target_id == any_(bindparam("keys", type_=ARRAY(sa.Text))),
        AuditEvent.action == "override.created",
    ),
)


class PresetSummarySchema(Schema):
    """The preset that has the flag."""

    examples = {"name": "growth"}
    descriptions = {"name": "The plan's name."}

    id = Uuid(required=True)
    name = Str(required=True)


def _presets(rows: Sequence[Any]) -> list[Any]:
    found = by_key(FIND_PRESETS, [row.plan_preset_id for row in rows])
    return [found.get(row.plan_preset_id) for row in rows]


def _creators(rows: Sequence[Any]) -> list[Any]:
    found = by_key(FIND_CREATORS, [str(row.id) for row in rows])
    return [found[str(row.id)].actor if str(row.id) in found else "" for row in rows]


EXPIRES_AT = Include(
    "expires_at",
    AwareDateTime(nullable=True, metadata={"description": "Null: no expiry."}),
    lambda rows: [row.expires_at for row in rows],
)
CARRY_OVER = Include(
    "carry_over",
    Bool(metadata={"description": "Whether it goes along to the tenant's next plan."}),
    lambda rows: [row.carry_over for row in rows],
)
PRESET = Include(
    "preset",
    Nested(PresetSummarySchema, metadata={"description": "The preset that has the flag."}),
    _presets,
)
CREATED_BY = Include(
    "created_by",
    Str(metadata={"description": "The actor, as in the audit trail."}),
    _creators,
)

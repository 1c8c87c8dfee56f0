"""Announces the overrides whose time is over. Evaluation compares the time itself."""

from __future__ import annotations

from sqlalchemy import bindparam, func, select, tuple_, update

from app.audit import service as audit
from app.core.actors import Actor
from app.core.db.queries import Change
from app.core.db.statements import Statement
from app.core.db.writes import writes
from app.flags.models import FeatureOverride

BATCH = 500
SHOWN = ("flag_key", "flag_value", "expires_at")

_table = FeatureOverride.__table__
_key = tuple_(FeatureOverride.tenant_id, FeatureOverride.id)
_expired = (
    select(FeatureOverride.tenant_id, FeatureOverride.id)
    .where(
        FeatureOverride.expires_at <= func.now(),
        FeatureOverride.expires_at.is_distinct_from(FeatureOverride.announced_expiry),
    )
    .order_by(FeatureOverride.expires_at)
    .limit(bindparam("limit"))
    .with_for_update(skip_locked=True)
)
TAKE_EXPIRED = Statement(
    "feature_overrides.take_expired",
    update(_table)
    .where(_key.in_(_expired))
    .values(announced_expiry=_table.c.expires_at)
    .returning(FeatureOverride),
)
"""The row's version stays: what a reader sees of an override does not change."""


def announce(*, actor: Actor) -> bool:
    """Record ``override.expired`` for some overrides, once for each expiry.

    Returns whether there may be others. An override with a new expiry is announced again.
    """
    expired = TAKE_EXPIRED.all(limit=BATCH)
    with writes() as w:
        for override in expired:
            change = Change({name: getattr(override, name) for name in SHOWN}, {})
            audit.record("override.expired", override, change, actor=actor, into=w)
    return len(expired) == BATCH

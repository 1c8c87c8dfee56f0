"""Limits that get the quantity of a subscription's items, such as ``seats``.

Each is an override in the preset of the tenant's plan, and carries over to the next plan. It is
written only when the quantity changes, so that an operator's own change stays until then.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from sqlalchemy import bindparam, select

from app.core.actors import Actor
from app.core.db.queries import find_row
from app.core.db.statements import Statement
from app.core.errors import AppError
from app.flags import overrides
from app.flags.models import FeatureOverride
from app.plans.presets import find_preset
from app.plans.prices import limits_of
from app.subscriptions.models import Subscription

log = logging.getLogger(__name__)

FIND_OURS = Statement(
    "feature_overrides.find_of_subscription",
    select(FeatureOverride).where(
        FeatureOverride.tenant_id == bindparam("tenant_id"),
        FeatureOverride.reason == bindparam("reason"),
    ),
)


def follow(
    subscription: Subscription, wanted: Mapping[str, int] | None, *, actor: Actor
) -> dict[str, int]:
    """Set the limits that are ``wanted``, and remove the others that this subscription has set.

    Returns those that are set now: not those that the tenant's plan lacks. With None, the limits
    stay as they are.
    """
    known = subscription.limits
    if wanted is None or not (wanted or known):
        return known
    tenant_id = subscription.tenant_id
    reason = f"{subscription.bp_provider} {subscription.bp_subscription_id}"
    for one in FIND_OURS.all(tenant_id=tenant_id, reason=reason) if known.keys() - wanted else ():
        if one.flag_key not in wanted and one.flag_value == known.get(one.flag_key):
            overrides.delete_override(one.id, actor=actor)
    if not wanted:
        return {}
    preset = find_preset(overrides.LOCK_PLAN_NAME.scalar(tenant_id=tenant_id))
    possible = set(limits_of(preset))
    found = {key: known[key] for key in wanted if key in known and key in possible}
    for key, quantity in wanted.items():
        if preset is None or key not in possible or found.get(key) == quantity:
            continue
        values = {"flag_value": quantity, "expires_at": None, "carry_over": True, "reason": reason}
        place = {"tenant_id": tenant_id, "plan_preset_id": preset.id, "flag_key": key}
        override = find_row(FeatureOverride, **place)
        try:
            if override is None:
                overrides.create_override(tenant_id, {**place, **values}, actor=actor)
            else:
                overrides.update_override(override.id, values, is_superadmin=True, actor=actor)
        except AppError as refusal:  # the tenant has too many overrides
            log.warning("quantity_not_applied", extra={"limit": key, "reason": refusal.detail})
        else:
            found[key] = quantity
    return found

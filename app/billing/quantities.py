"""Limits that get the quantity of a subscription's items, such as ``seats``.

Each is an override in the preset of the tenant's plan, and carries over to the next plan. It is
written only when the quantity changes, so that an operator's own change stays until then.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from app.core.actors import Actor
from app.core.db.queries import find_row, update_where
from app.core.db.statements import Statement
from app.flags import overrides
from app.flags.models import FeatureOverride
from app.flags.overrides import TooManyOverrides
from app.plans.presets import find_preset
from app.plans.prices import limits_of
from app.subscriptions.models import Subscription

log = logging.getLogger(__name__)

FIND_OURS = Statement(
    "feature_overrides.find_of_subscription",
    "SELECT id, flag_key, flag_value FROM feature_overrides"
    " WHERE tenant_id = :tenant_id AND reason = :reason",
)
# The newest other subscription of the tenant that has set the limit: its quantity applies again.
FIND_OTHER = Statement(
    "subscriptions.find_other_with_limit",
    "SELECT concat(bp_provider, ' ', bp_subscription_id) AS reason,"
    " CAST(limits ->> :flag_key AS bigint) AS flag_value FROM subscriptions"
    " WHERE tenant_id = :tenant_id AND id <> :id AND status_class <> 'ended'"
    " AND limits ->> :flag_key IS NOT NULL ORDER BY start_date DESC, id DESC LIMIT 1",
)


def follow(subscription: Subscription, wanted: Mapping[str, int] | None, *, actor: Actor) -> None:
    """Set the limits that are ``wanted``, and remove the others that this subscription has set.

    A limit that the tenant's plan lacks is set once the plan has it. With None, all stay as they
    are.
    """
    known, tenant_id = subscription.limits, subscription.tenant_id
    if wanted is None or not (wanted or known):
        return
    reason = f"{subscription.bp_provider} {subscription.bp_subscription_id}"
    removed = known.keys() - wanted
    for one in FIND_OURS.all(tenant_id=tenant_id, reason=reason) if removed else ():
        if one.flag_key in removed and one.flag_value == known[one.flag_key]:
            place = {"tenant_id": tenant_id, "flag_key": one.flag_key}
            other = FIND_OTHER.first(**place, id=subscription.id)
            if other is None:
                overrides.delete_override(one.id, actor=actor)
            else:
                values = other._asdict()
                overrides.update_override(one.id, values, is_superadmin=True, actor=actor)
    preset = find_preset(overrides.LOCK_PLAN_NAME.scalar(tenant_id=tenant_id)) if wanted else None
    possible = wanted.keys() & limits_of(preset)
    found = {key: known[key] for key in possible & known.keys()}
    for key in possible:
        if preset is None or found.get(key) == wanted[key]:
            continue
        place = {"tenant_id": tenant_id, "plan_preset_id": preset.id, "flag_key": key}
        values = {
            "flag_value": wanted[key],
            "expires_at": None,
            "carry_over": True,
            "reason": reason,
        }
        override = find_row(FeatureOverride, **place)
        try:
            if override is None:
                overrides.create_override(tenant_id, {**place, **values}, actor=actor)
            else:
                overrides.update_override(override.id, values, is_superadmin=True, actor=actor)
            found[key] = wanted[key]
        except TooManyOverrides:
            log.warning("quantity_not_applied", extra={"tenant_id": str(tenant_id), "limit": key})
    if found != known:
        row = {"tenant_id": tenant_id, "id": subscription.id}
        update_where(Subscription, row, {"limits": found})

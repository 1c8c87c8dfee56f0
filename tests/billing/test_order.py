"""Whatever order events arrive in, the mirror shows the newest."""

import random
from dataclasses import replace
from itertools import permutations

from app.billing.snapshots import Item
from app.subscriptions.models import Subscription
from app.subscriptions.statuses import StatusClass
from tests.billing.support import at, ended, map_price, snapshot, stored
from tests.factories import create_tenant

SEVERAL = (Item("si_1", "price_growth", 3), Item("si_2", "price_addon", None))


def life(tenant):
    """Trial, paid, past due, paid with another item, cancelled, over: each with its minute."""
    named = {"tenant": str(tenant.id)}
    return [
        (snapshot(status="trialing", trial_end=at(60), **named), 1),
        (snapshot(**named), 2),
        (snapshot(status="past_due", status_class=StatusClass.PAST_DUE, **named), 3),
        (snapshot(items=SEVERAL, amount=9900, **named), 4),
        (snapshot(cancel_at_period_end=True, canceled_at=at(5), **named), 5),
        (ended(canceled_at=at(5), cancel_reason="too expensive", **named), 6),
    ]


class TestAnyOrder:
    def test_leaves_what_the_provider_said_last(self, mirror, presets):
        map_price("price_growth", "growth")
        own = {"id", "tenant_id", "bp_subscription_id", "created_at", "updated_at", "version"}
        columns = [c.name for c in Subscription.__table__.columns if c.name not in own]
        left = set()
        for order in random.Random(1).sample(list(permutations(range(6))), 90):
            tenant = create_tenant()
            events = life(tenant)
            for number in order:
                one, minute = events[number]
                mirror.apply(replace(one, subscription_id=str(tenant.id)), minute)
            row = stored(tenant_id=tenant.id)
            left.add(repr([getattr(row, name) for name in columns]))

        (only,) = left
        assert "'canceled', 'ended', 'growth'" in only

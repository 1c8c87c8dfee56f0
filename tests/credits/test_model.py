"""Random lives of a balance, compared after each step with a simple model in Python."""

from copy import deepcopy
from dataclasses import dataclass, field
from datetime import timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from app.core.actors import SYSTEM_CLI
from app.core.clock import utcnow
from app.credits import service
from app.usage import holds
from app.usage.limits import LimitReached
from app.usage.service import Request, check_all, consume
from tests import database
from tests.credits.ledger import assert_balanced, expire_holds, expire_lot, turn
from tests.database import platform_transaction
from tests.factories import create_limits, create_tenant, credits_flag, limit_flag

RATES = {"tokens": 1, "images": 3}
FEATURES = st.sampled_from(sorted(RATES))
CAP = 25
FAR = 10**9


@dataclass
class Lot:
    granted: int
    priority: int
    ends: int
    period: int | None = None
    remaining: int = 0

    @property
    def is_dead(self):
        return self.ends == 0


@dataclass
class Hold:
    feature: str
    amount: int
    parts: dict[int, int]
    is_expired: bool = False


@dataclass
class Balance:
    """The rules of credits, on lists."""

    value: int = 40
    period: int = 0
    lots: list[Lot] = field(default_factory=list)
    holds: dict[object, Hold] = field(default_factory=dict)

    def grant(self, amount, priority, ends, period=None):
        self.lots.append(Lot(amount, priority, ends, period, amount))

    def order(self, places):
        return sorted(places, key=lambda at: (self.lots[at].priority, self.lots[at].ends, at))

    def refresh(self):
        for hold in self.holds.values():
            if hold.is_expired:
                self.give_back(hold, 0)
        for lot in self.lots:
            lot.remaining = 0 if lot.is_dead else lot.remaining
        old = [lot for lot in self.lots if lot.period is not None and lot.period < self.period]
        excess = sum(lot.remaining for lot in old) - CAP
        for lot in old:
            part = max(min(excess, lot.remaining), 0)
            lot.remaining -= part
            excess -= part
        given = sum(lot.granted for lot in self.lots if lot.period == self.period)
        if self.value > given:
            self.grant(self.value - given, 100, FAR, self.period)

    @property
    def free(self):
        return sum(lot.remaining for lot in self.lots)

    def burn(self, amount):
        parts = {}
        for at in self.order(range(len(self.lots))):
            part = min(amount, self.lots[at].remaining)
            self.lots[at].remaining -= part
            amount -= part
            if part:
                parts[at] = part
        return parts

    def give_back(self, hold, amount):
        for at in self.order(hold.parts):
            used = min(amount, hold.parts[at])
            self.lots[at].remaining += hold.parts[at] - used
            if self.lots[at].is_dead:
                self.lots[at].remaining = 0
            amount -= used
        hold.parts = {}
        self.burn(amount)


class CreditsMachine(RuleBasedStateMachine):
    """The service beside the model."""

    def __init__(self, clean):
        super().__init__()
        clean()
        images = limit_flag("images", -1)
        images["metering"]["burns"] = {"credits": "tokens", "rate": RATES["images"]}
        tokens = credits_flag("tokens", 40, period="day", rollover="cap", rollover_cap=CAP)
        self.preset = create_limits("free", tokens, images)
        self.tenant = create_tenant()
        self.model = Balance()
        self.ids = []

    @rule(
        amount=st.integers(1, 50), priority=st.integers(99, 101), ends=st.sampled_from((1, 2, FAR))
    )
    def grant(self, amount, priority, ends):
        self.model.refresh()
        self.model.grant(amount, priority, ends)
        expires = {} if ends == FAR else {"expires_at": utcnow() + timedelta(days=ends)}

        with platform_transaction():
            service.grant(
                self.tenant.id,
                "tokens",
                amount,
                source="promotion",
                priority=priority,
                actor=SYSTEM_CLI,
                **expires,
            )

    @rule(feature=FEATURES, amount=st.integers(0, 30))
    def take(self, feature, amount):
        self.model.refresh()
        fits = amount * RATES[feature] <= self.model.free
        if fits:
            self.model.burn(amount * RATES[feature])

        with platform_transaction():
            try:
                consume(self.tenant.id, Request(feature=feature, amount=amount), actor=SYSTEM_CLI)
                allowed = True
            except LimitReached:
                allowed = False

        assert allowed is fits

    @rule(feature=FEATURES, amount=st.integers(1, 30))
    def hold(self, feature, amount):
        self.model.refresh()
        fits = amount * RATES[feature] <= self.model.free

        with platform_transaction():
            try:
                row = holds.hold(self.tenant.id, feature=feature, amount=amount, ttl_seconds=3600)
            except LimitReached:
                row = None

        assert (row is not None) is fits
        if row is not None:
            parts = self.model.burn(amount * RATES[feature])
            self.model.holds[row.id] = Hold(feature, amount, parts)

    @precondition(lambda self: self.model.holds)
    @rule(data=st.data(), amount=st.integers(0, 40))
    def settle(self, data, amount):
        place = data.draw(st.integers(0, len(self.model.holds) - 1))
        hold_id = list(self.model.holds)[place]
        hold = self.model.holds[hold_id]
        self.model.refresh()
        rate = RATES[hold.feature]
        affords = self.model.free // rate
        if hold.is_expired:
            counts = min(amount, affords)
        else:
            counts = amount if amount <= hold.amount + affords else hold.amount
        self.model.give_back(hold, counts * rate)
        del self.model.holds[hold_id]

        with platform_transaction():
            row = holds.settle(str(hold_id), amount, actor=SYSTEM_CLI)

        assert (row.counted, row.over_by) == (counts, amount - counts)
        assert row.is_late is hold.is_expired

    @precondition(lambda self: self.model.holds)
    @rule()
    def release(self):
        hold_id, hold = next(iter(self.model.holds.items()))
        self.model.refresh()
        self.model.give_back(hold, 0)
        del self.model.holds[hold_id]

        with platform_transaction():
            holds.release(str(hold_id), actor=SYSTEM_CLI)

    @rule()
    def holds_expire(self):
        expire_holds()
        for hold in self.model.holds.values():
            hold.is_expired = True

    @precondition(lambda self: any(0 < lot.ends < FAR for lot in self.model.lots))
    @rule()
    def a_lot_expires(self):
        at = next(at for at, lot in enumerate(self.model.lots) if 0 < lot.ends < FAR)
        expire_lot(self.stored()[at].id)
        self.model.lots[at].ends = 0

    @precondition(lambda self: self.model.lots)
    @rule(data=st.data(), amount=st.integers(1, 60) | st.none())
    def revoke(self, data, amount):
        at = data.draw(st.integers(0, len(self.model.lots) - 1))
        lot_id = self.stored()[at].id
        self.model.refresh()
        lot = self.model.lots[at]
        revoked = lot.remaining if amount is None else min(amount, lot.remaining)
        lot.remaining -= revoked

        with platform_transaction():
            answer = service.revoke(str(lot_id), amount=amount, reason="test", actor=SYSTEM_CLI)

        assert answer["revoked"] == revoked

    @rule(value=st.integers(0, 60))
    def change_plan(self, value):
        database.execute(
            "UPDATE plan_presets SET flags ="
            " jsonb_set(flags::jsonb, '{0,default_value}', to_jsonb(CAST(:value AS int)))::json",
            value=value,
        )
        self.model.value = value

    @rule()
    def turn_of_the_day(self):
        turn(1)
        self.model.period += 1

    def stored(self):
        return database.query("SELECT * FROM credit_lots ORDER BY created_at")

    @invariant()
    def lots_are_those_of_the_model(self):
        found = [(lot.granted, lot.remaining) for lot in self.stored()]

        assert found == [(lot.granted, lot.remaining) for lot in self.model.lots]

    @invariant()
    def a_check_knows_what_a_refresh_would_do(self):
        model = deepcopy(self.model)
        model.refresh()
        requests = [Request(feature=feature) for feature in sorted(RATES)]

        with platform_transaction():
            images, tokens = check_all(self.tenant.id, requests)

        assert tokens.usage.remaining == model.free
        assert images.usage.remaining == model.free // RATES["images"]

    @invariant()
    def the_ledger_is_balanced(self):
        assert_balanced()


class TestModel:
    def test_the_lots_are_those_of_the_model(self, app, clean):
        limits = settings(max_examples=12, stateful_step_count=25, deadline=None)

        run_state_machine_as_test(lambda: CreditsMachine(clean), settings=limits)

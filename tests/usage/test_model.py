"""Any order of changes leads to the counts of a simple model in Python."""

from collections import defaultdict

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
from app.usage import service
from app.usage.limits import NotCounted
from app.usage.service import Request
from tests import database
from tests.database import platform_transaction
from tests.factories import create_limits, create_tenant, limit_flag
from tests.usage.days import pass_days

PLANS = {"small": (20, "hard"), "large": (60, "hard"), "soft": (20, "soft"), "open": (-1, "hard")}
PERIODS = {"total": "none", "daily": "day"}
FEATURES = st.sampled_from(sorted(PERIODS))
AMOUNTS = st.integers(0, 30)
THRESHOLDS = {80: "limit.warning", 100: "limit.reached"}


class UsageMachine(RuleBasedStateMachine):
    """The service beside a dict of counts."""

    def __init__(self, clean):
        super().__init__()
        clean()
        for name, (most, policy) in PLANS.items():
            flags = [
                limit_flag(feature, most, period=period, policy=policy)
                for feature, period in PERIODS.items()
            ]
            create_limits(name, *flags)
        self.tenant = create_tenant(plan_name="small")
        self.plan = "small"
        self.overrides: dict[tuple[str, str], int] = {}
        self.expiring: set[tuple[str, str]] = set()
        self.used: dict[str, int] = defaultdict(int)
        self.past = 0
        self.keys: dict[tuple[str, str], int] = {}
        self.announced: dict[str, int] = defaultdict(int)
        self.announced_limit: dict[str, int] = {}
        self.events: list[tuple[str, str, int]] = []

    def most(self, feature):
        return self.overrides.get((self.plan, feature), PLANS[self.plan][0])

    def fits(self, feature, amount):
        most = self.most(feature)
        is_open = most == -1 or PLANS[self.plan][1] == "soft"
        return is_open or self.used[feature] + amount <= most

    def count(self, feature, amount):
        """Count an amount that fits, which may cross thresholds."""
        self.used[feature] += amount
        most = self.most(feature)
        if PERIODS[feature] == "none" and self.announced_limit.get(feature) != most:
            self.announced[feature] = 0
        self.announced_limit[feature] = most
        for percent, action in THRESHOLDS.items():
            is_crossed = most > -1 and 100 * self.used[feature] >= percent * most
            if amount > 0 and is_crossed and percent > self.announced[feature]:
                self.announced[feature] = percent
                self.events.append((action, feature, percent))

    def consume(self, feature, amount, key=None):
        with platform_transaction():
            try:
                request = Request(feature=feature, amount=amount, idempotency_key=key)
                return service.consume(self.tenant.id, request, actor=SYSTEM_CLI)
            except NotCounted as refusal:
                return refusal.decision

    @rule(feature=FEATURES, amount=AMOUNTS)
    def take(self, feature, amount):
        fits = self.fits(feature, amount)

        decision = self.consume(feature, amount)

        if fits:
            self.count(feature, amount)
        assert decision.allowed is fits
        assert decision.usage.used == self.used[feature]
        assert decision.usage.limit == self.most(feature)

    @rule(feature=FEATURES, amount=st.integers(1, 9), key=st.sampled_from("ab"))
    def take_once(self, feature, amount, key):
        amount = self.keys.get((feature, key), amount)
        is_repeated = (feature, key) in self.keys
        fits = is_repeated or self.fits(feature, amount)

        decision = self.consume(feature, amount, key)

        assert decision.allowed is fits
        if fits and not is_repeated:
            self.keys[feature, key] = amount
            self.count(feature, amount)

    @rule(amount=AMOUNTS)
    def give_back(self, amount):
        fits = amount <= self.used["total"] if amount else self.fits("total", 0)

        decision = self.consume("total", -amount)

        if fits:
            self.count("total", -amount)
        assert decision.allowed is fits

    @rule(parts=st.lists(st.tuples(FEATURES, AMOUNTS), min_size=1, max_size=5))
    def take_several(self, parts):
        requests = [Request(feature=feature, amount=amount) for feature, amount in parts]
        expected = [False] * len(parts)
        for place in sorted(range(len(parts)), key=lambda one: parts[one][0]):
            feature, amount = parts[place]
            expected[place] = self.fits(feature, amount)
            if expected[place]:
                self.count(feature, amount)

        with platform_transaction():
            decisions = service.consume_all(self.tenant.id, requests, actor=SYSTEM_CLI)

        assert [decision.allowed for decision in decisions] == expected

    @rule(feature=FEATURES, used=st.integers(0, 90))
    def correct(self, feature, used):
        with platform_transaction():
            service.correct(self.tenant.id, feature, used, reason="test", actor=SYSTEM_CLI)

        self.used[feature] = used

    @rule(plan=st.sampled_from(sorted(PLANS)))
    def change_plan(self, plan):
        database.execute(
            "UPDATE tenants SET plan_name = :plan WHERE id = CAST(:id AS uuid)",
            plan=plan,
            id=str(self.tenant.id),
        )
        self.plan = plan

    @rule(feature=FEATURES, most=st.integers(-1, 40), expires=st.booleans())
    def override(self, feature, most, expires):
        database.execute(
            "INSERT INTO feature_overrides (id, created_at, updated_at, version, tenant_id,"
            " plan_preset_id, flag_key, flag_value, expires_at)"
            " SELECT gen_random_uuid(), now(), now(), 1, CAST(:id AS uuid), id, :feature,"
            " to_json(:most), CASE WHEN :expires THEN now() + interval '1 hour' END"
            " FROM plan_presets WHERE name = :plan"
            " ON CONFLICT (tenant_id, plan_preset_id, flag_key) DO UPDATE"
            " SET flag_value = excluded.flag_value, expires_at = excluded.expires_at",
            id=str(self.tenant.id),
            feature=feature,
            most=most,
            plan=self.plan,
            expires=expires,
        )
        self.overrides[self.plan, feature] = most
        self.expiring.discard((self.plan, feature))
        if expires:
            self.expiring.add((self.plan, feature))

    @precondition(lambda self: self.expiring)
    @rule()
    def overrides_expire(self):
        database.execute(
            "UPDATE feature_overrides SET expires_at = now() WHERE expires_at IS NOT NULL"
        )
        for place in self.expiring:
            del self.overrides[place]
        self.expiring.clear()

    @precondition(lambda self: self.overrides)
    @rule()
    def delete_overrides(self):
        database.execute("DELETE FROM feature_overrides")
        self.overrides.clear()
        self.expiring.clear()

    @rule()
    def turn_of_the_day(self):
        pass_days()
        self.past += self.used.pop("daily", 0)
        self.announced.pop("daily", None)

    @invariant()
    def counts_are_equal_and_nothing_is_lost(self):
        with platform_transaction():
            page = service.list_usage(self.tenant.id, limit=100)
        current = {one.feature: one.used for one in page.items if one.is_current}
        past = sum(one.used for one in page.items if not one.is_current)

        assert current == {feature: self.used.get(feature, 0) for feature in PERIODS}
        assert past == self.past

    @invariant()
    def thresholds_are_recorded_once_in_a_period(self):
        found = database.query(
            "SELECT action, target_id, (after ->> 'percent')::int FROM audit_events"
            " WHERE target_type = 'limit'"
        )

        assert sorted(map(tuple, found)) == sorted(self.events)


class TestModel:
    def test_the_counts_are_those_of_the_model(self, app, clean):
        limits = settings(max_examples=12, stateful_step_count=25, deadline=None)

        run_state_machine_as_test(lambda: UsageMachine(clean), settings=limits)

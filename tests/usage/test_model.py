"""Any order of changes, holds and leases leads to the state of a simple model in Python."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from app.core.actors import SYSTEM_CLI
from app.core.errors import AppError
from app.usage import holds, service
from app.usage.models import HoldKind, UsageHold
from app.usage.service import Request
from tests import database
from tests.database import platform_transaction
from tests.factories import create_limits, create_tenant, limit_flag
from tests.usage.days import pass_days

PLANS = {"small": (20, "hard"), "large": (60, "hard"), "soft": (20, "soft"), "open": (-1, "hard")}
PERIODS = {"total": "none", "daily": "day"}
FEATURES = st.sampled_from(sorted(PERIODS))
AMOUNTS = st.integers(0, 25)
SOME = st.integers(1, 15)
THRESHOLDS = {80: "limit.warning", 100: "limit.reached"}


@dataclass
class Held:
    """A hold or lease of the model; ``amount`` is what it still has."""

    id: Any
    place: tuple[str, int]
    kind: str
    amount: int
    state: str = "open"
    counted: int = 0
    over_by: int = 0
    is_late: bool = False
    is_old: bool = False  # it expired a day ago

    @property
    def live(self) -> int:
        return self.amount if self.state == "open" else 0


class UsageMachine(RuleBasedStateMachine):
    """The service beside dicts of counts and holds."""

    made = Bundle("made")

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
        self.keys: dict[tuple[str, str], int] = {}
        self.announced: dict[tuple[str, int], int] = defaultdict(int)
        self.announced_limit: dict[str, int] = {}
        self.events: list[tuple[str, str, int]] = []
        self.day = 0
        self.used: dict[tuple[str, int], int] = defaultdict(int)
        self.holds: list[Held] = []
        self.overruns: list[int] = []

    def place(self, feature):
        """The current counter of a feature."""
        return feature, self.day if feature == "daily" else 0

    def most(self, feature):
        return self.overrides.get((self.plan, feature), PLANS[self.plan][0])

    def is_open(self, feature):
        return self.most(feature) == -1 or PLANS[self.plan][1] == "soft"

    def free(self, place, *, without=None):
        """What a hard limit has left, beside a hold's own amount; negative if it was lowered."""
        live = sum(one.live for one in self.holds if one.place == place and one is not without)
        return self.most(place[0]) - self.used[place] - live

    def fits(self, place, amount):
        if amount < 0:
            return -amount <= self.used[place]
        return self.is_open(place[0]) or amount <= self.free(place)

    def count(self, place, amount):
        """Count an amount that fits, which may cross thresholds of the current period."""
        self.used[place] += amount
        feature, most = place[0], self.most(place[0])
        if place != self.place(feature):
            return
        if PERIODS[feature] == "none" and self.announced_limit.get(feature) != most:
            self.announced[place] = 0
        self.announced_limit[feature] = most
        for percent, action in THRESHOLDS.items():
            is_crossed = most > -1 and 100 * self.used[place] >= percent * most
            if amount > 0 and is_crossed and percent > self.announced[place]:
                self.announced[place] = percent
                self.events.append((action, feature, percent))

    def run(self, function, *args, **values):
        """The answer, or the code of the error, as a request would get it."""
        try:
            with platform_transaction():
                return function(*args, **values)
        except AppError as error:
            return error.code or error.status

    @rule(feature=FEATURES, amount=AMOUNTS, key=st.none() | st.sampled_from("ab"))
    def consume(self, feature, amount, key):
        place = self.place(feature)
        is_repeated = (feature, key) in self.keys
        amount = self.keys.get((feature, key), amount)
        fits = is_repeated or self.fits(place, amount)

        request = Request(feature=feature, amount=amount, idempotency_key=key)
        answer = self.run(service.consume, self.tenant.id, request, actor=SYSTEM_CLI)

        if not fits:
            assert answer == "limit_reached"
            return
        if not is_repeated:
            self.count(place, amount)
        if key is not None:
            self.keys[feature, key] = amount
        assert answer.usage.used == self.used[place]
        assert answer.usage.limit == self.most(feature)
        if not self.is_open(feature):
            assert answer.usage.remaining == max(self.free(place), 0)

    @rule(amount=SOME)
    def give_back(self, amount):
        place = self.place("total")
        fits = self.fits(place, -amount)

        request = Request(feature="total", amount=-amount)
        answer = self.run(service.consume, self.tenant.id, request, actor=SYSTEM_CLI)

        if fits:
            self.count(place, -amount)
        assert (answer == "usage_below_zero") is not fits

    @rule(parts=st.lists(st.tuples(FEATURES, AMOUNTS), min_size=1, max_size=5))
    def consume_several(self, parts):
        requests = [Request(feature=feature, amount=amount) for feature, amount in parts]
        expected = [False] * len(parts)
        for number in sorted(range(len(parts)), key=lambda one: parts[one][0]):
            feature, amount = parts[number]
            expected[number] = self.fits(self.place(feature), amount)
            if expected[number]:
                self.count(self.place(feature), amount)

        decisions = self.run(service.consume_all, self.tenant.id, requests, actor=SYSTEM_CLI)

        assert [decision.allowed for decision in decisions] == expected

    @rule(target=made, feature=FEATURES, amount=SOME, kind=st.sampled_from(list(HoldKind)))
    def take(self, feature, amount, kind):
        place = self.place(feature)
        taken = amount
        if kind == HoldKind.LEASE and not self.is_open(feature):
            taken = min(amount, self.free(place))
        fits = self.is_open(feature) or 0 < taken <= self.free(place)
        if kind == HoldKind.LEASE and PLANS[self.plan][1] == "soft":
            fits, refusal = False, 422
        else:
            refusal = "limit_reached"

        answer = self.run(
            holds.hold, self.tenant.id, feature=feature, amount=amount, ttl_seconds=300, kind=kind
        )

        if not fits:
            assert answer == refusal
            return None
        assert answer.amount == taken
        held = Held(answer.id, place, kind.value, taken)
        self.holds.append(held)
        assert self.is_open(feature) or answer.remaining == self.free(place) >= 0
        return held

    def report(self, held, total, rest, answer, *, state="settled"):
        """Compare the answer of a settlement, a release or a report with the model."""
        added = total - held.counted - held.over_by
        if held.state in ("settled", "released"):
            is_same = added == 0 and held.state == state
            assert (answer == "hold_ended") is not is_same
            return
        if held.is_old:
            assert answer == "hold_ended"
            return
        if added < 0:
            assert answer == 422
            return
        free, is_open = self.free(held.place, without=held), self.is_open(held.place[0])
        if is_open or added <= free:
            counts = added
        elif held.state == "open" and held.kind == "hold":
            counts = min(added, held.amount)
        else:
            counts = min(added, max(free, held.live))
        over_by = added - counts
        keeps = max(held.live - counts, 0)
        self.count(held.place, counts)
        held.counted += counts
        held.over_by += over_by
        self.overruns += [over_by] if over_by else []
        is_over = held.place != self.place(held.place[0])
        if held.state == "expired" or over_by or rest == 0 or is_over:
            held.is_late, held.state, held.amount = held.state == "expired", state, 0
        elif rest is None:
            held.amount = keeps
        else:
            held.amount = rest if is_open else min(rest, max(keeps, free - counts))
        assert (answer.state, answer.is_late) == (held.state, held.is_late)
        assert (answer.counted, answer.over_by) == (held.counted, held.over_by)
        if held.kind == "lease":
            assert answer.amount == held.amount

    @rule(held=made, amount=AMOUNTS)
    def settle(self, held, amount):
        if held is not None:
            answer = self.run(holds.settle, str(held.id), amount, actor=SYSTEM_CLI)
            if held.kind == "lease":
                assert answer == "hold_not_found"
            else:
                self.report(held, amount, 0, answer)

    @rule(held=made)
    def release(self, held):
        if held is not None and held.kind == "hold":
            was = held.state
            answer = self.run(holds.release, str(held.id), actor=SYSTEM_CLI)
            if answer is None:
                answer = database.row(UsageHold, id=held.id)
            assert was != "settled" or answer == "hold_ended"
            self.report(held, 0, 0, answer, state="released")

    @rule(held=made, used=AMOUNTS, rest=st.none() | AMOUNTS)
    def renew(self, held, used, rest):
        if held is not None:
            used += held.counted if used % 2 else 0
            answer = self.run(holds.renew, str(held.id), used, amount=rest, actor=SYSTEM_CLI)
            if held.kind == "hold":
                assert answer == "lease_not_found"
            else:
                self.report(held, used, rest, answer)

    @rule(held=made)
    def extend(self, held):
        if held is not None and held.kind == "hold":
            answer = self.run(holds.extend, str(held.id), 86_400)
            assert (answer == "hold_ended") is (held.state != "open")

    @rule(held=made, hours=st.sampled_from([0, 1, 24]))
    def expire(self, held, hours):
        if held is not None and held.state == "open":
            database.execute(
                "UPDATE usage_holds SET expires_at = now() - :hours * interval '1 hour'"
                " WHERE id = :id",
                hours=hours,
                id=held.id,
            )
            held.state, held.is_old = "expired", hours == 24

    @rule(held=made, amount=AMOUNTS)
    def settle_late(self, held, amount):
        self.expire(held, 1)
        self.settle(held, amount)

    @rule()
    def sweep(self):
        with platform_transaction():
            holds.sweep(100)
        assert database.rows(UsageHold, state="open") == [] or any(
            one.state == "open" for one in self.holds
        )

    @rule(feature=FEATURES, used=AMOUNTS)
    def correct(self, feature, used):
        self.run(service.correct, self.tenant.id, feature, used, reason="test", actor=SYSTEM_CLI)
        self.used[self.place(feature)] = used

    @rule(plan=st.sampled_from(["small", "large", *PLANS]))
    def change_plan(self, plan):
        database.execute(
            "UPDATE tenants SET plan_name = :plan WHERE id = :id", plan=plan, id=self.tenant.id
        )
        self.plan = plan

    @rule(feature=FEATURES, most=st.integers(-1, 40), expires=st.booleans())
    def override(self, feature, most, expires):
        database.execute(
            "INSERT INTO feature_overrides (id, created_at, updated_at, version, tenant_id,"
            " plan_preset_id, flag_key, flag_value, expires_at)"
            " SELECT gen_random_uuid(), now(), now(), 1, :id, id, :feature, to_json(:most),"
            " CASE WHEN :expires THEN now() + interval '1 hour' END"
            " FROM plan_presets WHERE name = :plan"
            " ON CONFLICT (tenant_id, plan_preset_id, flag_key) DO UPDATE"
            " SET flag_value = excluded.flag_value, expires_at = excluded.expires_at",
            id=self.tenant.id,
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

    @rule()
    def turn_of_the_day(self):
        pass_days()
        self.day += 1

    @invariant()
    def shown_are_the_counts_and_what_is_free(self):
        with platform_transaction():
            page = service.list_usage(self.tenant.id, limit=100)
        current = {one.feature: one for one in page.items if one.is_current}
        for feature in PERIODS:
            place = self.place(feature)
            assert current[feature].used == self.used[place]
            if self.most(feature) > -1:
                assert current[feature].remaining == max(self.free(place), 0)
        past = sum(one.used for one in page.items if not one.is_current)
        now = {self.place(feature) for feature in PERIODS}
        assert past == sum(used for place, used in self.used.items() if place not in now)

    @invariant()
    def counters_hold_what_their_open_holds_have(self):
        wrong = database.query(
            "SELECT * FROM usage_counters c WHERE held <> (SELECT coalesce(sum(amount), 0)"
            " FROM usage_holds h WHERE (h.tenant_id, h.feature, h.period_start)"
            " = (c.tenant_id, c.feature, c.period_start) AND h.state = 'open')"
        )
        lost = database.query(
            "SELECT FROM usage_holds h WHERE NOT EXISTS (SELECT FROM usage_counters c"
            " WHERE (h.tenant_id, h.feature, h.period_start)"
            " = (c.tenant_id, c.feature, c.period_start))"
        )

        assert (wrong, lost) == ([], [])

    @invariant()
    def every_overrun_is_told_once(self):
        found = database.query(
            "SELECT (after ->> 'over_by')::int AS over_by FROM audit_events"
            " WHERE action = 'limit.overrun' ORDER BY id"
        )

        assert sorted(row.over_by for row in found) == sorted(self.overruns)

    @invariant()
    def thresholds_are_recorded_once_in_a_period(self):
        found = database.query(
            "SELECT action, target_id, (after ->> 'percent')::int FROM audit_events"
            " WHERE action IN ('limit.warning', 'limit.reached')"
        )

        assert sorted(map(tuple, found)) == sorted(self.events)


class TestModel:
    def test_the_state_is_that_of_the_model(self, app, clean):
        limits = settings(max_examples=18, stateful_step_count=35, deadline=None)

        run_state_machine_as_test(lambda: UsageMachine(clean), settings=limits)

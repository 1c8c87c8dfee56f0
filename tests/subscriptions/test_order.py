"""The mirror shows the newest state, in whatever order and however often updates arrive."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.core import json_text
from app.core.actors import SYSTEM_CLI
from app.subscriptions import service
from app.subscriptions.schemas import CYCLES, SubscriptionSchema
from app.subscriptions.statuses import VOCABULARY, StatusClass, class_of
from tests.database import platform_transaction, wait_for_lock
from tests.factories import create_subscription, create_tenant, platform_token
from tests.subscriptions.support import audit_events, plan_of, stored

pytestmark = pytest.mark.usefixtures("presets")

START = datetime(2026, 5, 1, tzinfo=UTC)

snapshots = st.fixed_dictionaries(
    {
        "bp_customer_id": st.sampled_from(["cus_1", "cus_2"]),
        "bp_plan_id": st.sampled_from(["price_1", "price_2"]),
        "bp_status": st.sampled_from([*VOCABULARY, "unheard-of"]),
        "plan_name": st.sampled_from(["growth", "scale"]),
        "is_free_trial": st.booleans(),
        "start_date": st.sampled_from(["2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"]),
        "auto_renew": st.booleans(),
        "billing_cycle": st.sampled_from(CYCLES),
        "per_cycle_billing_amount": st.integers(0, 3),
        "billing_city": st.sampled_from(["", "Springfield"]),
        "billing_email": st.sampled_from(["a@acme.com", "b@acme.com"]),
        "send_paper_receipts": st.booleans(),
    }
)


@st.composite
def deliveries(draw):
    """A history of whole snapshots, and the senders' shares of its deliveries."""
    history = draw(st.lists(snapshots, min_size=2, max_size=6))
    all_once = list(range(len(history)))
    again = draw(st.lists(st.sampled_from(all_once), max_size=4))
    order = draw(st.permutations(all_once + again))
    senders = draw(st.integers(1, 3))
    return history, [order[sender::senders] for sender in range(senders)]


class Senders:
    """Threads that each send their share of the deliveries, all at once."""

    def __init__(self, api, row, history):
        self._api, self._row, self._history = api, row, history
        self._token = platform_token()
        self.answers = []

    def run(self, shares):
        threads = [threading.Thread(target=self._send, args=(share,)) for share in shares]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _send(self, share):
        for number in share:
            moment = START + timedelta(seconds=number)
            answer = self._api.patch(
                f"/v1/billing/subscriptions/{self._row.id}",
                token=self._token,
                json=self._history[number],
                headers={"X-Source-Timestamp": moment.isoformat()},
            )
            self.answers.append(answer)


class TestDeliveriesInAnyOrder:
    @settings(
        max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(deliveries())
    def test_leave_the_newest_snapshot(self, api, delivered):
        history, shares = delivered
        tenant = create_tenant()
        row = create_subscription(tenant)
        senders = Senders(api, row, history)

        senders.run(shares)

        newest, now = history[-1], stored(row)
        shown = json_text.loads(json_text.dumps_text(SubscriptionSchema().dump(now)))
        assert {name: shown[name] for name in newest} == newest
        assert now.source_timestamp == START + timedelta(seconds=len(history) - 1)
        assert plan_of(tenant) == _plan_after(newest)
        assert {answer.status_code for answer in senders.answers} == {200}
        applied = [a for a in senders.answers if "X-Update-Ignored" not in a.headers]
        updates = [e for e in audit_events(tenant) if e.action == "subscription.updated"]
        assert len(updates) == now.version - 1 <= len(applied) <= len(history)


class TestPlanUnderConcurrency:
    def test_two_cancellations_at_once_leave_the_default_plan(self, api):
        token = platform_token()
        for _ in range(10):
            tenant = create_tenant(plan_name="growth")
            rows = [create_subscription(tenant) for _ in range(2)]
            barrier = threading.Barrier(len(rows))

            def cancel(row, barrier=barrier):
                barrier.wait()
                path = f"/v1/billing/subscriptions/{row.id}/cancel"
                assert api.post(path, token=token, json={}).status_code == 200

            threads = [threading.Thread(target=cancel, args=(row,)) for row in rows]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

            assert plan_of(tenant) == "free"

    def test_an_update_that_waited_follows_what_the_other_one_wrote(self, api):
        token = platform_token()
        tenant = create_tenant(plan_name="free")
        early = create_subscription(tenant, start_date=START)
        tomorrow = START + timedelta(days=1)
        late = create_subscription(tenant, start_date=tomorrow, bp_status="terminated")

        def update_late() -> int:
            path = f"/v1/billing/subscriptions/{late.id}"
            return api.patch(path, token=token, json={"bp_status": "active"}).status_code

        with ThreadPoolExecutor() as threads:
            with platform_transaction():
                service.update_subscription(early.id, {"plan_name": "scale"}, actor=SYSTEM_CLI)
                waiting = threads.submit(update_late)
                wait_for_lock(waiting)
            assert waiting.result() == 200

        changes = [e for e in audit_events(tenant) if e.action == "tenant.plan_changed"]
        plans = [(each.before["plan_name"], each.after["plan_name"]) for each in changes]
        assert plans == [("free", "scale"), ("scale", "free")]
        assert plan_of(tenant) == "free"


def _plan_after(snapshot):
    if class_of(snapshot["bp_status"]) is StatusClass.ENDED:
        return "free"
    return snapshot["plan_name"]

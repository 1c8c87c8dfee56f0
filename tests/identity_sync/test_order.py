"""Whatever order a history is delivered in, and however often, the rows are the same.

``python -m tests.faults order`` is the long form: two hundred orders for each provider.
"""

import threading

import pytest

from app.core.db import tenancy
from app.core.db.transactions import transaction
from tests.identity_sync.histories import SIMULATED, history
from tests.identity_sync.orders import check_truth, deliver, shuffled, snapshot
from tests.inbox.sending import Sender, all_events, work_off

NAMES = sorted(SIMULATED)


class TestEveryProvider:
    @pytest.mark.parametrize("seed", range(2))
    @pytest.mark.parametrize("provider", NAMES)
    def test_in_order_shows_what_the_provider_holds(self, app, provider, seed):
        world = history(provider, seed=seed)

        found = deliver(app, provider, world.events)

        assert len(world.events) >= 30
        check_truth(world, found)

    @pytest.mark.parametrize("provider", NAMES)
    def test_in_any_order_shows_the_same(self, app, provider):
        world = history(provider, seed=1)
        expected = deliver(app, provider, world.events)

        for seed in range(3):
            assert deliver(app, provider, shuffled(world.events, seed)) == expected, seed

    @pytest.mark.parametrize("provider", NAMES)
    def test_through_the_receiver_shows_the_same(self, app, sender: Sender, provider):
        world = history(provider, seed=3)
        expected = deliver(app, provider, world.events)
        for body in shuffled(world.events, 3):
            number = world.events.index(body)

            sender.deliver(SIMULATED[provider].preset, body, message_id=f"msg_{number}")

        with app.app_context(), transaction():
            tenancy.enter(tenancy.PLATFORM)
            assert snapshot() == expected

    @pytest.mark.parametrize("provider", ["auth0", "workos"])
    def test_by_workers_side_by_side_shows_the_same(self, app, sender: Sender, provider):
        world = history(provider, seed=4)
        expected = deliver(app, provider, world.events)
        for body in shuffled(world.events, 4):
            assert sender.post(SIMULATED[provider].preset, body).status_code == 200
        threads = [threading.Thread(target=work_off, args=(app,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert {row.status for row in all_events()} <= {"succeeded", "ignored"}
        with app.app_context(), transaction():
            tenancy.enter(tenancy.PLATFORM)
            assert snapshot() == expected

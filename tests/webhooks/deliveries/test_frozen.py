"""Sequencers and senders that are frozen (SIGSTOP) while others run, and continue later."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg2
import pytest

from app.webhooks.deliveries import statements, work
from app.webhooks.deliveries.models import WebhookDelivery
from tests import database
from tests.factories import create_tenant, create_user, platform_token
from tests.faults import _worker
from tests.webhooks.deliveries.receiving import receiver, wait_until
from tests.webhooks.endpoints.support import create_endpoint

LEASE = 2  # seconds


@contextmanager
def running(start, environment):
    process = start(environment)
    try:
        yield process
    finally:
        process.kill()
        process.join()


def start_sender(environment):
    return _worker.start_sender(environment, lease=LEASE)


def change(api, number: int) -> None:
    user = create_user(create_tenant())
    api.patch(f"/v1/users/{user.id}", token=platform_token(), json={"first_name": f"N {number}"})


def succeeded() -> int:
    return sum(row.status == "succeeded" for row in database.rows(WebhookDelivery))


@pytest.mark.parametrize("frozen", ["sequencer", "sender"])
def test_another_process_does_the_work_of_a_frozen_one(api, environment, frozen):
    starts = {"sequencer": _worker.start_sequencer, "sender": start_sender}
    with (
        receiver(delay=0.05) as hook,
        running(_worker.start_sequencer, environment),
        running(start_sender, environment),
        running(starts[frozen], environment) as victim,
    ):
        create_endpoint(api, url=hook.url, types=["user.*"])
        change(api, 0)
        wait_until(lambda: succeeded() == 1)

        for number in range(20):
            change(api, number)
            if number == 5:
                os.kill(victim.pid, signal.SIGSTOP)
        wait_until(lambda: len(set(hook.ids)) == 21, seconds=25)
        os.kill(victim.pid, signal.SIGCONT)
        wait_until(lambda: succeeded() == 21)
        time.sleep(0.5)

        assert succeeded() == 21
        assert len(hook.received) <= 21 + 5


def test_deliveries_are_added_while_a_sender_is_frozen_that_began_to(api, app, monkeypatch):
    create_endpoint(api, url="https://example.com/hook", types=["user.*"])
    with app.app_context():
        work.prepare()
    monkeypatch.setattr(work, "FROZEN", "2s")
    change(api, 0)
    api.sequence()

    has_begun = threading.Event()

    def begin_and_freeze() -> None:
        with database.platform_transaction():
            statements.ADD_DELIVERIES.scalar(batch=work.BATCH, frozen=work.FROZEN)
            has_begun.set()
            time.sleep(3)

    with app.app_context(), ThreadPoolExecutor(1) as another:
        frozen = another.submit(begin_and_freeze)
        has_begun.wait()
        assert work.add_deliveries() == 0
        wait_until(lambda: work.add_deliveries() > 0)
        with pytest.raises(psycopg2.OperationalError, match="idle-in-transaction"):
            frozen.result()
    assert [row.status for row in database.rows(WebhookDelivery)] == ["pending"]

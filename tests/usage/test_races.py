"""Counting is exact: with threads, killed connections, retries and keys that are sent twice."""

import random
import threading
from collections import Counter
from contextlib import suppress
from functools import partial
from itertools import chain
from uuid import uuid4

import pytest
from psycopg2 import OperationalError

from app.usage.models import UsageCounter
from tests import database
from tests.concurrency import at_once
from tests.factories import (
    create_api_key,
    create_limits,
    create_override,
    create_subscription,
    create_tenant,
    limit_flag,
    platform_token,
)

THREADS = 16
LIMIT = 280
PER_THREAD = 25  # 400 units of which the limit allows 280
MOST_TRIES = 200  # whoever was never answered counts as 503


@pytest.fixture
def tenant(app):
    create_limits("free", limit_flag("calls", LIMIT, period="month"), limit_flag("other", LIMIT))
    return create_tenant()


@pytest.fixture
def consume(api, tenant):
    key = create_api_key(tenant, ["usage:write"])
    return lambda **body: api.post("/v1/usage/consume", token=key, json=body)


def used(feature="calls"):
    return database.row(UsageCounter, feature=feature).used


class TestThreads:
    def test_get_exactly_what_the_limit_allows(self, consume):
        def take():
            return [consume(feature="calls").status_code for _ in range(PER_THREAD)]

        answers = Counter(chain(*at_once([take] * THREADS)))

        assert answers == {200: LIMIT, 409: THREADS * PER_THREAD - LIMIT}
        assert used() == LIMIT

    def test_create_one_counter(self, consume, tenant):
        starts = [f"2026-01-{day:02}T00:00:00Z" for day in range(1, 9)]
        actions = [partial(consume, feature="calls") for _ in range(8)]
        actions += [partial(create_subscription, tenant, start_date=start) for start in starts]

        at_once(actions)

        assert used() == 8

    def test_that_send_each_key_twice_get_exactly_what_the_limit_allows(self, consume):
        """Both sendings of a key get the same answer, at the same moment or one after the other."""
        keys = [str(number) for number in range(200)] * 2
        random.shuffle(keys)

        def take(part):
            return [
                (key, consume(feature="calls", amount=2, idempotency_key=key).status_code)
                for key in part
            ]

        answers = set(chain(*at_once([partial(take, keys[place::8]) for place in range(8)])))

        assert Counter(status for _, status in answers) == {200: LIMIT // 2, 409: 200 - LIMIT // 2}
        assert used() == LIMIT

    def test_with_entries_in_any_order_do_not_stop_one_another(self, consume):
        entries = [
            {"feature": feature, "idempotency_key": key}
            for feature in ("calls", "other")
            for key in "abcd"
        ]
        shuffled = [random.sample(entries, len(entries)) for _ in range(8)]

        answers = at_once([partial(consume, entries=one) for one in shuffled])

        assert {answer.status_code for answer in answers} == {200}
        assert used("calls") == used("other") == 4

    def test_count_against_the_limit_that_changes_meanwhile(self, consume, tenant):
        preset = database.query("SELECT id FROM plan_presets")[0]
        override = create_override(tenant, preset, "calls", 50)
        change = "UPDATE feature_overrides SET flag_value = '{}' WHERE id = CAST(:id AS uuid)"

        def toggle():
            for _ in range(20):
                for most in (30, 50):
                    database.execute(change.format(most), id=str(override.id))
            return []

        def take():
            return [consume(feature="calls").status_code for _ in range(20)]

        answers = Counter(chain(*at_once([*[take] * 7, toggle])))

        assert used() == answers[200] == 50

    def test_count_against_the_plan_that_changes_meanwhile(self, api, consume, tenant):
        """No answer is an error, and the count passes no limit that a yes was given against."""
        create_limits("large", limit_flag("calls", LIMIT + 100, period="month"))
        path, token = f"/v1/tenants/{tenant.id}/plan", platform_token()
        body = {"plan_name": "large", "until": None, "reason": "race"}

        def change():
            for _ in range(10):
                assert api.put(path, token=token, json=body).status_code == 200
                assert api.delete(path, token=token).status_code == 204
            return []

        def take():
            answers = [consume(feature="calls", amount=7) for _ in range(25)]
            for answer in answers:
                state = answer.json["data"]
                assert (answer.status_code == 200) is state["allowed"]
                assert not state["allowed"] or state["used"] <= state["limit"]
            return [answer.status_code for answer in answers]

        answers = Counter(chain(*at_once([*[take] * 7, change])))

        assert set(answers) == {200, 409}
        assert LIMIT <= used() == 7 * answers[200] <= LIMIT + 100


class TestKills:
    """Connections are killed; clients send again, with the same key, until they know."""

    @pytest.fixture
    def killer(self):
        stopped = threading.Event()

        def kill():
            while not stopped.wait(0.05):
                with suppress(OperationalError):  # those that are killed still take their places
                    database.query(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                        " WHERE usename = current_user AND pid <> pg_backend_pid()"
                        " AND query LIKE '%consume%' ORDER BY random() LIMIT 2"
                    )

        killer = threading.Thread(target=kill)
        killer.start()
        yield
        stopped.set()
        killer.join()

    def test_lose_and_double_nothing(self, consume, killer):
        lost = Counter()

        def take():
            return [take_one() for _ in range(PER_THREAD)]

        def take_one():
            key = str(uuid4())
            for _ in range(MOST_TRIES):
                if (status := consume(feature="calls", idempotency_key=key).status_code) != 503:
                    break
                lost[status] += 1
            return status

        answers = Counter(chain(*at_once([take] * THREADS)))

        assert lost
        assert answers == {200: LIMIT, 409: THREADS * PER_THREAD - LIMIT}
        assert used() == LIMIT

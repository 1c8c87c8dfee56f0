"""Through a real gunicorn: engines that restart, freeze, are full or away, then every operation as
every kind of caller, tenants beside one another, and the largest bodies. ``tests.soak`` does some of it
for longer.
"""

import http.client
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import redis as redis_client

from app.dev.engines.instance import APPLICATION_ROLE
from tests.hostile import isolation, sizes
from tests.hostile.document import Document
from tests.hostile.fuzzing import fuzz
from tests.hostile.installation import (
    REDIS_TIMEOUT,
    STATEMENT_TIMEOUT,
    THREADS,
    WORKERS,
    Installation,
    bound,
)
from tests.hostile.load import Kind, Outcomes, load, seeded
from tests.hostile.world import create_world

CUT_AFTER = STATEMENT_TIMEOUT + 2 + 0.5  # the limit, its grace, and the watchdog's round
CONNECT = 2
SLACK = 2.0  # for a machine that is busy
UNLIKE = ("owner", "tenant key", "platform key", "superadmin")
"""The callers whose answers differ most; ``tests.soak`` asks as all of them."""


@pytest.fixture(scope="module")
def kinds(app, service: Installation) -> list[Kind]:
    with bound(service.app):
        return seeded()


@pytest.fixture
def amid(service: Installation, kinds: list[Kind]) -> Callable:
    """``with amid() as outcomes``: requests run while the block does, and none is answered oddly."""

    @contextmanager
    def under_load() -> Iterator[Outcomes]:
        with load(service.port, kinds) as outcomes:
            time.sleep(0.5)
            yield outcomes
        assert outcomes.strange == []

    return under_load


def readiness(service: Installation) -> dict[str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
    connection.request("GET", "/readyz")
    return json.loads(connection.getresponse().read())["checks"]


def assert_recovered(outcomes: Outcomes, moment: float) -> None:
    """From then on everything is answered well, by the same processes."""
    later = outcomes.since(moment)
    assert len(later) > 10
    assert set(later.statuses) == {200}, later.statuses


class TestPostgres:
    def test_restarted(self, service, amid):
        with amid() as outcomes:
            with service.stopped(service.postgres):
                time.sleep(1)
            back = time.monotonic()
            time.sleep(1.5)

        assert outcomes.statuses[503] > 0
        assert_recovered(outcomes, back + 0.5)

    def test_restarted_in_a_quiet_moment(self, service, kinds, amid):
        """Connections that have died in the pool cost nobody an answer."""
        with load(service.port, kinds):
            time.sleep(0.5)
        with service.stopped(service.postgres):
            pass

        with load(service.port, kinds) as outcomes:
            time.sleep(1)

        assert set(outcomes.statuses) == {200}, outcomes.statuses

    def test_frozen(self, service, amid):
        with amid() as outcomes:
            with service.frozen(service.postgres):
                time.sleep(CUT_AFTER + CONNECT + 1)
            back = time.monotonic()
            time.sleep(2.5)

        assert outcomes.statuses[503] > 0
        assert outcomes.slowest < CUT_AFTER + CONNECT + SLACK
        assert_recovered(outcomes, back + 1.5)

    def test_frozen_for_a_moment(self, service, amid):
        with amid() as outcomes:
            with service.frozen(service.postgres):
                time.sleep(0.7)
            time.sleep(1)

        assert outcomes.slowest > 0.5
        assert set(outcomes.statuses) == {200}, outcomes.statuses

    def test_out_of_connections(self, service, amid):
        with amid() as outcomes, service.superuser() as cursor:
            cursor.execute(f"ALTER ROLE {APPLICATION_ROLE} CONNECTION LIMIT 0")
            terminate_all(cursor)
            time.sleep(1)
            cursor.execute(f"ALTER ROLE {APPLICATION_ROLE} CONNECTION LIMIT -1")
            back = time.monotonic()
            time.sleep(1.5)

        assert outcomes.statuses[503] > 0
        assert_recovered(outcomes, back + 0.5)

    def test_with_connections_terminated_all_the_time(self, service, amid):
        with amid() as outcomes, service.superuser() as cursor:
            for _ in range(20):
                terminate_all(cursor)
                time.sleep(0.05)
            back = time.monotonic()
            time.sleep(1)

        assert outcomes.statuses[200] > 0
        assert_recovered(outcomes, back + 0.5)

    def test_with_every_row_locked(self, service, amid):
        """A lock that is not given up in time ends as 503 as well."""
        with amid() as outcomes, service.superuser() as cursor:
            cursor.execute("BEGIN; LOCK TABLE users IN ACCESS EXCLUSIVE MODE")
            time.sleep(STATEMENT_TIMEOUT + 1)
            cursor.execute("ROLLBACK")
            back = time.monotonic()
            time.sleep(1)

        assert outcomes.of("read").statuses[503] > 0
        assert outcomes.slowest < STATEMENT_TIMEOUT + SLACK
        assert_recovered(outcomes, back + 0.5)


class TestRedis:
    def test_stopped(self, service, amid):
        with amid() as outcomes:
            with service.stopped(service.redis):
                time.sleep(1.5)
                assert readiness(service)["redis"] == "degraded"
            time.sleep(0.5)

        assert set(outcomes.statuses) == {200}, outcomes.statuses
        assert len(outcomes.slower_than(REDIS_TIMEOUT * 0.9)) <= WORKERS * THREADS

    def test_frozen(self, service, amid):
        """One time-out for those who found out, then one for a single thread every five seconds."""
        with amid() as outcomes:
            with service.frozen(service.redis):
                time.sleep(REDIS_TIMEOUT + 3)
            time.sleep(0.5)

        assert set(outcomes.statuses) == {200}, outcomes.statuses
        assert outcomes.slowest < REDIS_TIMEOUT * 2 + SLACK
        assert len(outcomes.slower_than(REDIS_TIMEOUT * 0.9)) <= WORKERS * (THREADS + 1)
        assert len(outcomes) > 100

    def test_flushed(self, service, amid):
        client = redis_client.Redis.from_url(service.instance.redis_url)
        with amid() as outcomes:
            for _ in range(10):
                client.flushall()
                client.script_flush()
                time.sleep(0.1)

        assert set(outcomes.statuses) == {200}, outcomes.statuses

    def test_is_used_again_when_it_is_back(self, service, amid):
        client = redis_client.Redis.from_url(service.instance.redis_url)
        deadline = time.monotonic() + 20
        with amid() as outcomes:
            client.flushall()
            while not client.exists("rq:queue:webhooks") or not client.keys(
                "controlplane:ratelimit:*"
            ):
                assert time.monotonic() < deadline, client.keys("*")
                time.sleep(0.1)

        assert set(outcomes.statuses) == {200}, outcomes.statuses
        while readiness(service)["redis"] != "ok":  # its client tries again after a pause
            assert time.monotonic() < deadline
            time.sleep(0.1)


class TestBoth:
    def test_away(self, service, amid):
        with amid() as outcomes:
            with service.stopped(service.redis), service.stopped(service.postgres):
                time.sleep(0.5)
            back = time.monotonic()
            time.sleep(1.5)

        assert outcomes.statuses[503] > 0
        assert_recovered(outcomes, back + 0.5)

    def test_the_processes_are_still_the_first_ones(self, service):
        booted = service.events("Booting worker with pid: %s") or [
            line for line in service.logged() if "Booting worker" in line
        ]

        assert len(booted) == WORKERS
        assert service.gunicorn.poll() is None


def terminate_all(cursor) -> None:
    cursor.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s",
        [APPLICATION_ROLE],
    )


class TestEveryOperation:
    @pytest.fixture
    def fuzzed(self, app, service, document):
        with bound(service.app):
            return create_world(service.app, document)

    @pytest.mark.parametrize("caller", UNLIKE)
    def test_answers_as_documented(self, service, document, fuzzed, caller):
        findings = fuzz(
            service.port,
            document,
            fuzzed.credentials[caller],
            fuzzed.ids,
            examples=1,
            seed=7,
            phases=("examples", "fuzzing"),
            operation_ids=share(document, caller),
        )

        assert findings.faults == {}
        assert findings.errors == []
        assert findings.cases > 50
        assert findings.statuses[401] < findings.cases / 2
        assert not any(status >= 500 for status in findings.statuses)


def share(document: Document, caller: str) -> list[str]:
    """A part of the operations; the other callers have the others."""
    names = [one.about["operationId"] for one in document.operations if not one.is_stream]
    return names[UNLIKE.index(caller) :: len(UNLIKE)]


class TestIsolation:
    def test_holds_amid_errors_time_outs_and_aborts(self, app, service):
        with bound(service.app):
            report = isolation.prove(service, requests=1000, tenants=12)

        assert report.foreign == []
        assert report.strange == []
        assert report.requests >= 1000
        assert report.marks_seen > 1000
        assert report.answers[503] > 0
        assert report.aborted > 20


class TestSizes:
    def test_of_answers_and_memory_stay_small_whatever_is_sent(self, service, document):
        with bound(service.app):
            sent = sizes.send_wrong_bodies(service, document)

        assert sent.faults == []
        assert sent.requests >= 40
        assert sent.growth < sizes.MAX_GROWTH

"""/metrics: what Prometheus collects."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing

import psycopg2
import pytest
from flask.testing import FlaskClient
from prometheus_client.parser import text_string_to_metric_families
from redis import Redis

from app import create_app
from app.billing.reader import run_reader
from app.core.jobs.queues import JOBS, Queue
from app.core.jobs.worker import make_worker
from app.core.observability.metrics import JOB_RESULTS
from app.dev.engines.instance import APPLICATION_ROLE, DATABASE
from app.events.sequencer import run_sequencer
from app.extensions import db
from app.operations.background import LAST_SEEN, run_parts
from app.operations.scheduler import run_scheduler
from app.webhooks.deliveries.sender import run_sender
from tests.database import query
from tests.factories import (
    create_member,
    create_tenant,
)
from tests.running.serving import wait_until


def samples(page: str) -> dict[tuple, float]:
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


def connections(api) -> dict[str, float]:
    found = samples(api.get("/metrics").text)
    return {name: found["db_pool_connections", ("state", name)] for name in ("open", "in_use")}


class TestMetrics:
    def test_counts_requests_by_route_and_status(self, api):
        _, _, token = create_member(create_tenant())
        labels = (("method", "GET"), ("route", "/v1/users"), ("status", "200"))
        before = samples(api.get("/metrics").text).get(("http_requests_total", *labels), 0)

        api.get("/v1/users", token=token)
        after = samples(api.get("/metrics").text)

        assert after["http_requests_total", *labels] == before + 1
        assert ("http_request_duration_seconds_count", *labels[:2]) in after

    def test_tells_how_many_connections_postgresql_allows(self, api):
        found = samples(api.get("/metrics").text)

        most = query("SHOW max_connections")[0].max_connections
        reserved = query("SHOW superuser_reserved_connections")[0].superuser_reserved_connections
        assert found["db_connections_allowed",] == int(most) - int(reserved)

    def test_counts_the_results_of_jobs(self, app, api):
        name = next(iter(JOBS))
        with app.app_context():
            JOB_RESULTS.add({f"{name} succeeded": 1, f"{name} failed": 1})
            counted = JOB_RESULTS.read()

        found = samples(api.get("/metrics").text)

        assert counted == {f"{name} succeeded": 1, f"{name} failed": 1}
        assert found["jobs_total", ("job", name), ("result", "failed")] == 1
        assert found["jobs_waiting", ("queue", "webhooks")] == 0

    def test_tells_the_connections_that_postgresql_has(self, instance, api):
        options = {"host": str(instance.sockets), "user": APPLICATION_ROLE, "dbname": DATABASE}
        with closing(psycopg2.connect(**options)) as session, session.cursor() as cursor:
            cursor.execute("SELECT 1")  # begins a transaction
            while_used = connections(api)

        assert while_used["open"] >= while_used["in_use"] == 1
        wait_until(lambda: connections(api)["in_use"] == 0)
        wait_until(lambda: connections(api)["open"] < while_used["open"])

    def test_tells_the_workers_alive(self, app, api):
        worker = make_worker(app, [Queue.WEBHOOKS])

        before = samples(api.get("/metrics").text)["workers_alive",]
        worker.register_birth()
        found = samples(api.get("/metrics").text)
        while_alive = found["workers_alive",]
        worker.register_death()

        assert (before, while_alive, found["redis_up",]) == (0, 1, 1)
        assert samples(api.get("/metrics").text)["workers_alive",] == 0

    @pytest.mark.parametrize(
        ("process", "run"),
        [
            ("scheduler", run_scheduler),
            ("sequencer", run_sequencer),
            ("sender", run_sender),
            ("billing", run_reader),
        ],
    )
    def test_tells_when_a_process_was_last_seen(self, app, environment, api, process, run):
        metric = "process_last_seen", ("process", process)
        before = samples(api.get("/metrics").text)[metric]
        started, redis = time.time(), Redis.from_url(environment["REDIS_URL"])

        class Seen(threading.Event):
            def is_set(self) -> bool:
                return bool(redis.hexists(LAST_SEEN.key, process))

        run_parts(app, {process: run}, stopped=Seen())

        assert before == 0
        assert started <= samples(api.get("/metrics").text)[metric] <= time.time()


class TestWithoutRedis:
    def test_the_metrics_of_jobs_and_processes_keep_their_last_values(
        self, app, api, without_redis
    ):
        name = next(iter(JOBS))
        with app.app_context():
            JOB_RESULTS.add({f"{name} succeeded": 1})
            LAST_SEEN.put({"scheduler": time.time()})
        before = samples(api.get("/metrics").text)

        started = time.monotonic()
        found = samples(without_redis.test_client().get("/metrics").text)

        assert time.monotonic() - started < 10
        for metric in (
            ("jobs_total", ("job", name), ("result", "succeeded")),
            ("jobs_waiting", ("queue", "webhooks")),
            ("process_last_seen", ("process", "scheduler")),
        ):
            assert found[metric] == before[metric]

    def test_no_worker_is_alive(self, app, without_redis):
        found = samples(without_redis.test_client().get("/metrics").text)

        assert found["redis_up",] == 0
        assert found["workers_alive",] == 0
        assert found["tenants_on_unknown_plan",] == 0


class TestToken:
    @pytest.fixture
    def protected(self, environment) -> Iterator[FlaskClient]:
        app = create_app({**environment, "METRICS_TOKEN": "collector-1"})
        yield app.test_client()
        with app.app_context():
            db.engine.dispose()

    def test_is_asked_for_where_it_is_set(self, app, protected):
        answer = protected.get("/metrics", headers={"Authorization": "Bearer collector-1"})

        assert answer.status_code == 200
        assert "http_requests_total" in answer.text

    @pytest.mark.parametrize("given", [None, "Bearer", "Basic collector-1", "Bearer collecté"])
    def test_that_is_wrong_is_refused(self, app, protected, given):
        headers = {} if given is None else {"Authorization": given}

        answer = protected.get("/metrics", headers=headers)

        assert (answer.status_code, answer.json) == (401, {"detail": "Not authenticated"})
        assert answer.headers["WWW-Authenticate"] == "Bearer"

    def test_may_have_letters_beyond_ascii(self, app, environment):
        protected = create_app({**environment, "METRICS_TOKEN": "collecté"})
        sent = "Bearer collecté".encode().decode("latin-1")  # so WSGI shows the bytes of UTF-8

        answer = protected.test_client().get("/metrics", headers={"Authorization": sent})

        assert answer.status_code == 200
        with protected.app_context():
            db.engine.dispose()

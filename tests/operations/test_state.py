"""/v1/operations: queues, workers, and what the checks find."""

import json
from datetime import timedelta

import pytest

from app.core.clock import utcnow
from app.core.jobs.queues import JOBS, Queue, connection, queue_named
from app.core.jobs.worker import make_worker
from app.operations.checks import database as checks
from app.plans import health
from tests.factories import create_tenant, platform_token
from tests.messages import sent_messages

QUEUES, FINDINGS = "/v1/operations/queues", "/v1/operations/findings"
JOB = "app.inbox.jobs.sweep"


@pytest.fixture
def token(app):
    return platform_token()


@pytest.fixture
def worker(app):
    worker = make_worker(app, [Queue.WEBHOOKS])
    worker.register_birth()
    yield worker
    worker.register_death()


def findings(client, token):
    answer = client.get(FINDINGS, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200, answer.text
    return {one["check"]: one for one in answer.get_json()["data"]}


class TestQueues:
    def test_show_what_waits_and_who_works(self, app, api, token, worker):
        with app.app_context():
            JOBS[JOB].push()
            JOBS[JOB].push(delay=60)
            (job,) = queue_named(Queue.WEBHOOKS, connection()).get_jobs()
            job.enqueued_at = utcnow() - timedelta(seconds=90)
            job.save()

        data = api.get(QUEUES, token=token).get_json()["data"]

        assert [one["name"] for one in data["queues"]] == [queue.value for queue in Queue]
        webhooks, indexes = data["queues"][:2]
        assert 90 <= webhooks.pop("waiting_seconds") < 300
        assert webhooks == {
            "name": "webhooks",
            "workers": 1,
            "waiting": 1,
            "delayed": 1,
            "running": 0,
            "failed": 0,
        }
        assert (indexes["workers"], indexes["waiting"], indexes["waiting_seconds"]) == (0, 0, 0)
        (shown,) = data["workers"]
        assert (shown["name"], shown["queues"], shown["job"]) == (worker.name, ["webhooks"], None)
        assert shown["started_at"] <= shown["last_seen_at"]

    def test_show_a_worker_again_after_redis_was_emptied(self, app, api, token, worker):
        worker.connection.flushdb()

        worker.heartbeat()

        (shown,) = api.get(QUEUES, token=token).get_json()["data"]["workers"]
        assert shown["name"] == worker.name

    def test_count_failed_jobs(self, app, api, token):
        with app.app_context():
            JOBS["app.privacy.jobs.delete_tenant"].push("no id")
        make_worker(app, [Queue.MAINTENANCE]).work(burst=True, logging_level="CRITICAL")

        data = api.get(QUEUES, token=token).get_json()["data"]

        assert data["queues"][-1]["failed"] == 1

    def test_are_unknown_without_redis(self, without_redis, token):
        answer = without_redis.test_client().get(
            QUEUES, headers={"Authorization": f"Bearer {token}"}
        )

        assert (answer.status_code, answer.get_json()["code"]) == (503, "queues_unavailable")
        assert answer.headers["Retry-After"] == "5"


class TestFindings:
    def test_are_those_of_the_doctor(self, app, api, token):
        command = app.test_cli_runner().invoke(args=["doctor", "--json"])

        found = findings(app.test_client(), token)

        assert list(found) == [one["check"] for one in json.loads(command.stdout)]
        assert found["migrations"]["ok"]
        assert found["queue webhooks"]["fix"] == "Run flask jobs worker."

    def test_tell_a_hint_from_what_is_well_and_from_a_fault(self, app, api, token):
        create_tenant(plan_name="gone")

        found = findings(app.test_client(), token)

        levels = {name: found[name]["level"] for name in ("plans", "migrations", "queue webhooks")}
        assert levels == {"plans": "hint", "migrations": "ok", "queue webhooks": "fault"}

    def test_say_that_redis_is_away(self, without_redis, token):
        assert findings(without_redis.test_client(), token)["redis"]["ok"] is False

    def test_leave_out_a_check_that_takes_too_long(self, app, api, token, monkeypatch):
        def sleep():
            checks.Statement("test.sleep", "SELECT pg_sleep(30)").first()

        monkeypatch.setattr(checks, "QUICKLY", "1s")
        monkeypatch.setitem(health.CHECKS, "plans", sleep)

        found = findings(app.test_client(), token)

        assert found["plans"] == {
            "check": "plans",
            "ok": True,
            "level": "hint",
            "found": "not checked within 1s",
            "fix": "Run flask doctor.",
        }
        assert found["trials"]["ok"]
        assert "15s" in found["time-outs"]["found"]

    def test_ask_postgresql_a_bounded_number_of_times(self, api, token):
        for _ in range(20):
            create_tenant(plan_name="gone")

        with sent_messages() as messages:
            api.get(FINDINGS, token=token)

        assert len(messages) < 50

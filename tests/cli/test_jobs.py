"""``flask jobs``: what is queued, and by what."""

import json
from collections import Counter

from app import create_app
from app.core.jobs import queues
from app.core.jobs.queues import JOBS, Queue, connection, queue_named
from app.extensions import db
from app.operations.scheduler import run_scheduler

BUILD = "app.custom_fields.jobs.sync_search_index"


class TestStats:
    def test_counts_the_jobs_of_each_queue(self, app):
        runner = app.test_cli_runner()
        with app.app_context():
            JOBS[BUILD].push("a", "b")
            JOBS[BUILD].push("a", "b", delay=60)

        rows = json.loads(runner.invoke(args=["jobs", "stats", "--json"]).stdout)["queues"]

        assert [row["name"] for row in rows] == list(Queue)
        indexes = rows[list(Queue).index(Queue.INDEXES)]
        assert (indexes["waiting"], indexes["delayed"]) == (1, 1)

    def test_counts_what_a_worker_has_failed_with(self, app, caplog):
        caplog.set_level("INFO", logger="app.cli.jobs")
        runner = app.test_cli_runner()
        with app.app_context():
            JOBS[BUILD].push("no id", "b")

        worked = runner.invoke(args=["jobs", "worker", "--queue", "indexes", "--burst"])
        rows = json.loads(runner.invoke(args=["jobs", "stats", "--json"]).stdout)["queues"]

        assert worked.exit_code == 0
        assert [one.getMessage() for one in caplog.records] == ["worker_started"]
        assert {row["name"]: row["failed"] for row in rows}["indexes"] == 1


class TestPeriodicJobs:
    def test_are_queued_once_by_processes_that_start_together(self, app, monkeypatch):
        monkeypatch.setattr(queues, "PAUSE", 3600)  # however slow this machine is
        for _ in range(2):
            run_scheduler(app, stop=iter([False, True]).__next__)

        with app.app_context():
            waiting = {name: queue_named(name, connection()).count for name in Queue}
        assert waiting == Counter(job.queue for job in JOBS.values() if job.every)

    def test_that_cannot_be_queued_are_tried_again_soon(self, app, environment):
        broken = create_app({**environment, "REDIS_URL": "unix:///nowhere/redis.sock"})
        with broken.app_context():
            assert not any(job.push_periodically() for job in JOBS.values() if job.every)
            db.engine.dispose()
        with app.app_context():
            assert all(job.push_periodically() for job in JOBS.values() if job.every)


class TestList:
    def test_has_every_job_with_its_queue_and_period(self, app):
        listed = app.test_cli_runner().invoke(args=["jobs", "list", "--json"])

        rows = {row["job"]: row for row in json.loads(listed.stdout)}
        assert rows.keys() == JOBS.keys()
        assert rows[BUILD] == {"job": BUILD, "queue": "indexes", "every_seconds": None}
        assert any(row["every_seconds"] for row in rows.values())

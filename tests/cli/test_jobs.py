"""``flask jobs``: what is queued, and by what."""

import json
from collections import Counter

from app.core.jobs import queues
from app.core.jobs.queues import JOBS, Queue, connection, queue_named
from app.operations.scheduler import run_scheduler

BUILD = "app.custom_fields.jobs.sync_search_index"


class TestPeriodicJobs:
    def test_are_queued_once_by_processes_that_start_together(self, app, monkeypatch):
        monkeypatch.setattr(queues, "PAUSE", 3600)  # however slow this machine is
        for _ in range(2):
            run_scheduler(app, stop=iter([False, True]).__next__)

        with app.app_context():
            waiting = {name: queue_named(name, connection()).count for name in Queue}
        assert waiting == Counter(job.queue for job in JOBS.values() if job.every)

    def test_that_cannot_be_queued_are_tried_again_soon(self, app, without_redis):
        with without_redis.app_context():
            assert not any(job.push_periodically() for job in JOBS.values() if job.every)
        with app.app_context():
            assert all(job.push_periodically() for job in JOBS.values() if job.every)


class TestList:
    def test_has_every_job_with_its_queue_and_period(self, app):
        listed = app.test_cli_runner().invoke(args=["jobs", "list", "--json"])

        rows = {row["job"]: row for row in json.loads(listed.stdout)}
        assert rows.keys() == JOBS.keys()
        assert rows[BUILD] == {"job": BUILD, "queue": "indexes", "every_seconds": None}
        assert any(row["every_seconds"] for row in rows.values())

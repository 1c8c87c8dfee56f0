"""/metrics of several servers and a worker that have the same PROMETHEUS_MULTIPROC_DIR."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import httpx
import psutil
import pytest

from app.core.jobs.queues import JOBS
from tests.database import query
from tests.operations.test_metrics import samples
from tests.running.serving import HOST, PROJECT, answers, wait_until, web_server

OPEN = ("db_pool_connections", ("state", "open"))
COUNTED = ("http_requests_total", ("method", "GET"), ("route", "/v1/users"), ("status", "401"))
CONNECTIONS = """
SELECT count(*) FROM pg_stat_activity
WHERE usename = current_user AND datname = current_database()
"""


@pytest.fixture
def shared(environment, tmp_path: Path) -> dict[str, str]:
    return {**environment, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path / "metrics")}


def scrape(port: int) -> dict[tuple, float]:
    return samples(httpx.get(f"http://{HOST}:{port}/metrics").text)


def run_jobs(app, environ: Mapping[str, str], number: int) -> None:
    """Run so many jobs, each in a process that RQ forks and that does not close its connection."""
    with app.app_context():
        for _ in range(number):
            JOBS["app.operations.jobs.forget_idempotency_keys"].push()
    command = [sys.executable, "-m", "flask", "--app", "wsgi", "jobs", "worker", "--burst"]
    subprocess.run(command, cwd=PROJECT, env=environ, check=True, capture_output=True, timeout=60)


class TestSharedFolder:
    def test_counts_no_connection_of_a_job_or_a_process_that_has_ended(self, app, shared, tmp_path):
        with web_server(shared, tmp_path) as (port, process):
            run_jobs(app, shared, 2)
            process.kill()
        with web_server(shared, tmp_path) as (port, _):
            run_jobs(app, shared, 2)
            # PostgreSQL may take a moment to notice that a job's process has ended.
            wait_until(lambda: 0 < scrape(port)[OPEN] == query(CONNECTIONS)[0].count)

    def test_keeps_the_counters_of_a_server_when_another_one_starts_and_ends(
        self, app, shared, tmp_path
    ):
        with web_server(shared, tmp_path, workers=1) as (port, _):
            for _ in range(3):
                httpx.get(f"http://{HOST}:{port}/v1/users")
            with web_server(shared, tmp_path, workers=1) as (other, _):
                assert COUNTED not in scrape(other)
            httpx.get(f"http://{HOST}:{port}/v1/users")

            assert scrape(port)[COUNTED] == 4

    def test_keeps_the_counters_of_processes_that_were_killed(self, app, shared, tmp_path):
        with web_server(shared, tmp_path, workers=1) as (port, process):
            for _ in range(2):
                httpx.get(f"http://{HOST}:{port}/v1/users")
                (worker,) = psutil.Process(process.pid).children()
                worker.kill()
                wait_until(
                    lambda worker=worker: (
                        not worker.is_running() and answers(port, "/healthz") == 200
                    )
                )

            assert scrape(port)[COUNTED] == 2
            (folder,) = (tmp_path / "metrics").iterdir()
            assert len(list(folder.glob("counter_*.db"))) == 2  # of the ended ones, its own

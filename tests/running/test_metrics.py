"""/metrics of several servers that have the same PROMETHEUS_MULTIPROC_DIR."""

from pathlib import Path

import httpx
import psutil
import pytest

from tests.operations.test_metrics import samples
from tests.running.serving import HOST, answers, wait_until, web_server

COUNTED = ("http_requests_total", ("method", "GET"), ("route", "/v1/users"), ("status", "401"))


@pytest.fixture
def shared(environment, tmp_path: Path) -> dict[str, str]:
    return {**environment, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path / "metrics")}


def scrape(port: int) -> dict[tuple, float]:
    return samples(httpx.get(f"http://{HOST}:{port}/metrics").text)


class TestSharedFolder:
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

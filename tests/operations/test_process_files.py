"""The metrics of web processes that have ended."""

import time
from fcntl import LOCK_SH, flock
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.mmap_dict import MmapedDict, mmap_key

from app.operations.process_files import merge_ended, metrics_in
from tests.operations.test_metrics import samples

GAUGE, COUNTER, HISTOGRAM = "gauge_mostrecent", "counter", "histogram"
BUCKETS = {"0.5": 1, "+Inf": 2}  # not cumulated, as in the files


def key(metric: str, name: str, **labels: str) -> str:
    return mmap_key(metric, name, list(labels), list(labels.values()), "help")


def leave_files(folder: Path, process_id: int, *, at: float = 1.0) -> None:
    """What a process leaves that has counted two requests."""
    found = {
        COUNTER: {key("requests", "requests_total", route="/"): (2, 0)},
        HISTOGRAM: {
            key("seconds", "seconds_bucket", le=le): (count, 0) for le, count in BUCKETS.items()
        }
        | {key("seconds", "seconds_sum"): (0.75, 0)},
        GAUGE: {key("waiting", "waiting", queue="jobs"): (process_id, at)},
    }
    for kind, values in found.items():
        file = MmapedDict(str(folder / f"{kind}_{process_id}.db"))
        for name, (value, moment) in values.items():
            file.write_value(name, value, moment)
        file.close()


def shown(folder: Path) -> dict[tuple, float]:
    registry = CollectorRegistry()
    registry.collect = lambda: metrics_in(folder)
    return samples(generate_latest(registry).decode())


@pytest.mark.parametrize("content", [b"", bytes(65536)], ids=["empty", "zeros"])
def test_of_a_process_that_was_killed_as_it_began_are_none(tmp_path, content):
    leave_files(tmp_path, 1)
    for kind in (COUNTER, HISTOGRAM, GAUGE):
        (tmp_path / f"{kind}_2.db").write_bytes(content)

    before = shown(tmp_path)
    merge_ended(tmp_path, 2)

    assert before == shown(tmp_path)
    assert before["requests_total", ("route", "/")] == 2


def test_stay_when_they_are_merged(tmp_path):
    for process_id, at in ((1, 5.0), (2, 9.0), (3, 7.0), (4, 8.0)):
        leave_files(tmp_path, process_id, at=at)
    before = shown(tmp_path)

    for process_id in (1, 2, 3):
        merge_ended(tmp_path, process_id)

    assert shown(tmp_path) == before
    assert before["requests_total", ("route", "/")] == 8
    assert before["seconds_bucket", ("le", "+Inf")] == 12
    assert before["waiting", ("queue", "jobs")] == 2
    assert len(list(tmp_path.glob("*.db"))) == 6


def test_of_a_process_with_a_longer_number_are_left_alone(tmp_path):
    leave_files(tmp_path, 1)
    leave_files(tmp_path, 11)

    merge_ended(tmp_path, 1)

    assert (tmp_path / "counter_11.db").exists()


def test_are_read_as_fast_after_500_processes(tmp_path):
    for process_id in range(500):
        leave_files(tmp_path, process_id)
        merge_ended(tmp_path, process_id)

    began = time.thread_time()
    found = shown(tmp_path)

    assert found["requests_total", ("route", "/")] == 1_000
    assert time.thread_time() - began < 4


def test_stay_as_they_are_while_another_process_reads(tmp_path):
    leave_files(tmp_path, 1)
    with (tmp_path / "lock").open("w") as file:
        flock(file, LOCK_SH)
        merge_ended(tmp_path, 1)

    assert shown(tmp_path)["requests_total", ("route", "/")] == 2
    assert (tmp_path / "counter_1.db").exists()

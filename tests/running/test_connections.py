"""Which worker of the web server takes a new connection."""

from __future__ import annotations

import logging
import runpy
import time

import pytest
from gunicorn.config import Config

from tests.running.serving import PROJECT

MOST = 50


@pytest.fixture
def settings(monkeypatch, tmp_path):
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    return runpy.run_path(str(PROJECT / "gunicorn.conf.py"))


@pytest.fixture
def worker(settings):
    """A worker of two threads, one of which has just begun with a connection.

    Its clock of connections is ahead, so that "just" lasts as long as the test.
    """
    config = Config()
    config.set("threads", 2)
    config.set("worker_connections", MOST)
    worker = settings["Worker"](1, 1, [], None, 30, config, logging.getLogger())
    worker.nr_conns, worker.last_taken = 1, time.monotonic() + 3600
    yield worker
    worker.tmp.close()


class TestWorker:
    def test_takes_connections_while_it_has_a_thread(self, worker):
        assert worker.worker_connections == MOST

    def test_leaves_them_to_others_for_a_moment_when_it_has_none(self, settings, worker):
        worker.nr_conns = 2

        assert worker.worker_connections == 0
        worker.last_taken = time.monotonic() - settings["PAUSE"]
        assert worker.worker_connections == MOST

    def test_does_not_count_those_that_only_stay_open(self, worker):
        worker.nr_conns = 4
        worker.keepalived_conns.append(object())
        worker.pending_conns.extend([object(), object()])

        assert worker.worker_connections == MOST

"""The threads of the background process."""

import threading

import pytest

from app.operations import background
from app.operations.background import run_parts
from tests.running.serving import wait_until


@pytest.fixture
def run(app, monkeypatch):
    """Run parts in a thread, until the end of the test; returns what stops them."""
    monkeypatch.setattr(background, "SHORTEST_PAUSE", 0.01)
    stopped, threads = threading.Event(), []

    def start(**parts) -> threading.Thread:
        thread = threading.Thread(target=run_parts, args=(app, parts), kwargs={"stopped": stopped})
        threads.append(thread)
        thread.start()
        return thread

    start.stop = stopped.set
    yield start
    stopped.set()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


def wait(app, *, stop) -> None:
    wait_until(stop)


class TestParts:
    def test_end_together(self, run):
        thread = run(one=wait, other=wait)
        assert thread.is_alive()

        run.stop()

        thread.join(10)
        assert not thread.is_alive()

    def test_that_fail_start_again_while_others_continue(self, run, caplog):
        starts = []

        def fail(app, *, stop) -> None:
            starts.append("broken")
            raise LookupError

        def work(app, *, stop) -> None:
            starts.append("sound")
            wait_until(stop)

        run(broken=fail, sound=work)

        wait_until(lambda: starts.count("broken") >= 4)
        assert starts.count("sound") == 1
        failed = [one for one in caplog.records if one.getMessage() == "background_failed"]
        assert {one.part for one in failed} == {"broken"}

    def test_that_fail_wait_longer_each_time(self, app, monkeypatch):
        waits = []

        class Stopped(threading.Event):
            def wait(self, timeout: float | None = None) -> bool:
                waits.append(timeout)
                if len(waits) == 8:
                    self.set()
                return self.is_set()

        def fail(app, *, stop) -> None:
            raise LookupError

        run_parts(app, {"broken": fail}, stopped=Stopped())

        assert waits == [1, 2, 4, 8, 16, 32, 60, 60]

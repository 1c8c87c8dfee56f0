"""Signals between processes: after the commit, seldom, and best effort."""

import logging
import threading

import pytest
from redis.exceptions import ConnectionError as Unreachable

from app.core.db.transactions import savepoint, transaction
from app.core.jobs import signals
from app.core.jobs.queues import connection
from app.core.jobs.signals import Signal, listening
from tests.running.serving import wait_until


@pytest.fixture
def sent() -> list[str]:
    return []


@pytest.fixture
def signal(sent) -> Signal:
    return Signal("test", lambda: sent.append("signal"))


class TestNotify:
    def test_sends_once_after_the_commit(self, app, signal, sent):
        with app.app_context(), transaction():
            signal.notify()
            signal.notify()
            assert sent == []

        assert sent == ["signal"]

    def test_sends_at_once_outside_a_transaction(self, app, signal, sent):
        with app.app_context():
            signal.notify()

        assert sent == ["signal"]

    def test_sends_nothing_for_what_is_rolled_back(self, app, signal, sent):
        def fail() -> None:
            with savepoint():
                signal.notify()
                raise LookupError

        with app.app_context(), transaction(), pytest.raises(LookupError):
            fail()

        assert sent == []

    def test_sends_no_second_signal_within_the_pause(self, app, signal, sent, monkeypatch):
        monkeypatch.setattr(signals, "PAUSE", 30)

        with app.app_context():
            for _ in range(3):
                signal.notify()
            other = Signal("other", lambda: sent.append("other"))
            other.notify()

        assert sent == ["signal", "other"]

    def test_logs_a_failure_once_until_it_works_again(self, app, caplog):
        faults = iter([True, True, False, True])

        def send() -> None:
            if next(faults):
                raise Unreachable("no Redis")

        signal = Signal("test", send)

        with app.app_context(), caplog.at_level(logging.WARNING):
            for _ in range(4):
                signal.notify()

        assert [record.getMessage() for record in caplog.records] == ["signal_not_sent"] * 2


class TestListening:
    def test_hears_its_own_signal(self, app):
        heard, own, other = threading.Event(), Signal("own"), Signal("other")

        with app.app_context(), listening(app, own, heard.set):
            wait_until(lambda: connection().pubsub_numsub(own.channel)[0][1])
            other.notify()
            assert not heard.wait(0.1)
            own.notify()
            assert heard.wait(10)

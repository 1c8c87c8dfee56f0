"""Positions: given after the commit, without gaps, by one process at a time."""

import threading
from functools import partial

import pytest

from app.audit.service import OUTBOX, record
from app.core.actors import SYSTEM_CLI
from app.core.db.queries import Change
from app.core.db.writes import writes
from app.core.jobs import signals
from app.core.jobs.queues import connection
from app.events import positions, sequencer
from tests import database
from tests.concurrency import at_once
from tests.database import platform_transaction
from tests.factories import create_tenant, create_user
from tests.messages import sent_messages
from tests.running.serving import wait_until


@pytest.fixture
def user(app):
    return create_user(create_tenant())


def change(user, name, *, into=None):
    """Record a change of the user in the current transaction."""
    row, changed = user._replace(first_name=name), Change({"first_name": ""}, {"first_name": name})
    record("user.updated", row, changed, actor=SYSTEM_CLI, into=into)


def meanwhile(api):
    """Give positions while this thread has a transaction; their number."""
    (moved,) = at_once([api.sequence])
    return moved


def given():
    """The names of the changes with a position, in its order."""
    found = database.query(
        "SELECT position, data ->> 'first_name' AS name FROM events ORDER BY position"
    )
    assert [row.position - found[0].position for row in found] == list(range(len(found)))
    return [row.name for row in found]


class TestSequence:
    def test_waits_for_the_commit(self, app, api, user):
        with platform_transaction():
            change(user, "late")
            with platform_transaction():
                change(user, "early")
            assert meanwhile(api) == 1
        assert api.sequence() == 1

        assert given() == ["early", "late"]

    def test_keeps_the_order_of_changes_over_several_batches(self, app, api, user, monkeypatch):
        monkeypatch.setattr(positions, "BATCH", 3)
        names = [str(number) for number in range(10)]
        for name in names:
            with platform_transaction():
                change(user, name)

        assert api.sequence() == 10

        assert given() == names
        assert database.query("SELECT FROM event_outbox") == []

    def test_gives_none_while_another_process_does(self, app, api, user):
        with platform_transaction():
            change(user, "a")
        with platform_transaction():
            assert positions.TRY_LOCK.first().is_mine
            assert meanwhile(api) == 0

        assert api.sequence() == 1

    def test_works_on_many_changes_of_one_statement(self, app, api, user):
        names = [str(number) for number in range(5)]
        with sent_messages() as messages, platform_transaction(), writes() as w:
            for name in names:
                change(user, name, into=w)

        api.sequence()

        assert messages[1:] == ["audit_events_event_outbox.insert_many", "COMMIT"]
        assert given() == names


class TestRecording:
    def test_sends_one_statement_and_at_most_one_signal(self, app, user, monkeypatch):
        sent = []
        monkeypatch.setattr(OUTBOX, "_send", lambda: sent.append("signal"))

        with sent_messages() as messages, platform_transaction():
            change(user, "a")
            change(user, "b")
            assert sent == []

        assert messages[1:] == ["audit_events.insert", "audit_events.insert", "COMMIT"]
        assert sent == ["signal"]

    def test_needs_no_redis(self, app, user, api, monkeypatch):
        def fail():
            raise ConnectionError

        monkeypatch.setattr(signals, "connection", fail)

        with platform_transaction():
            change(user, "a")

        assert api.sequence() == 1


class TestSequencer:
    @pytest.fixture
    def running(self, app):
        """A sequencer in a thread, until the end of the test."""
        stopped = threading.Event()
        thread = threading.Thread(
            target=partial(sequencer.run_sequencer, app, stop=stopped.is_set), daemon=True
        )
        thread.start()
        yield thread
        stopped.set()
        thread.join(timeout=30)
        assert not thread.is_alive()

    def test_gives_positions_by_itself(self, app, user, running):
        for name in ("a", "b"):
            with platform_transaction():
                change(user, name)
            wait_until(lambda name=name: given()[-1:] == [name])

        assert given() == ["a", "b"]

    def test_is_woken_by_a_message(self, app, user, running, monkeypatch):
        monkeypatch.setattr(sequencer, "INTERVAL", 0.4)  # below the time-out of Redis
        with app.app_context():
            wait_until(lambda: connection().publish(OUTBOX.channel, b"") == 1)

    def test_goes_on_after_a_fault_of_postgresql(self, app, user, running, monkeypatch):
        monkeypatch.setattr(sequencer, "PAUSE", 0.01)
        database.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%sequence%'"
            " AND usename = current_user AND pid <> pg_backend_pid()"
        )
        with platform_transaction():
            change(user, "a")

        wait_until(lambda: given() == ["a"])

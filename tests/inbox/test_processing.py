"""Applying the inbox: each event once, with retries, and no event stops the others."""

import threading
import time
from datetime import timedelta

import pytest

from app.core.actors import SYSTEM_CLI
from app.core.clock import utcnow
from app.core.db.transactions import current_transaction, transaction
from app.core.jobs import queues, signals
from app.core.jobs.queues import Queue, connection, queue_named
from app.core.jobs.worker import make_worker
from app.core.redis_clients import request_client
from app.emails import service as emails
from app.emails import suppressions
from app.emails.models import EmailEventRecord, EmailMessage
from app.identity_sync.models import IdentityObject
from app.inbox import jobs, processing, receiving, service
from app.inbox.providers import EMAIL
from tests import database
from tests.concurrency import at_once
from tests.faults import _worker
from tests.inbox.sending import Sender, all_events, all_rows, event_row, work_off
from tests.running.serving import wait_until

SENT = {
    "type": "email.opened",
    "timestamp": "2026-01-05T09:45:05Z",
    "data": {"message_id": "m1", "recipient": "a@b.example"},
}


def post_opened(sender: Sender, number: int = 1) -> str:
    answer = sender.post("standard_webhooks", SENT, receiver=EMAIL, message_id=f"msg_{number}")
    return answer.get_json()["event_id"]


@pytest.fixture
def event_id(sender: Sender) -> str:
    """Of an event that waits."""
    return post_opened(sender)


def change_event(event_id: str, **values: object) -> None:
    """Set columns of the event."""
    chosen = ", ".join(f"{name} = :{name}" for name in values)
    database.execute(
        f"UPDATE webhook_events SET {chosen} WHERE id = :id", id=str(event_id), **values
    )


def queued(app) -> int:
    """The number of jobs that are waiting."""
    with app.app_context():
        jobs_waiting = queue_named(Queue.WEBHOOKS, connection()).jobs
    assert {job.func_name for job in jobs_waiting} <= {receiving.PROCESS_EVENTS}
    return len(jobs_waiting)


def forget_queue(app) -> None:
    """Lose what Redis holds."""
    with app.app_context():
        connection().flushdb()


class TestNotification:
    """One waiting job is enough for all events that come before it starts."""

    def test_queues_one_job_for_many_events(self, app, sender):
        for number in range(3):
            post_opened(sender, number)

        assert queued(app) == 1

    def test_queues_another_job_once_one_has_started(self, app, sender):
        post_opened(sender, 1)
        with app.app_context():
            jobs.process_events()

        post_opened(sender, 2)

        assert queued(app) == 2

    def test_looks_again_for_what_came_so_soon_that_it_queued_none(self, app, sender, monkeypatch):
        """The second event is stored after the first look that finds none."""
        process_next, came = processing.process_next, iter([2])

        def look():
            result = process_next()
            if result is None:
                for number in came:
                    post_opened(sender, number)
            return result

        monkeypatch.setattr(processing, "process_next", look)
        monkeypatch.setattr(signals, "PAUSE", 3.0)
        monkeypatch.setattr(receiving.INBOX, "_sent_at", float("-inf"))
        post_opened(sender, 1)
        with app.app_context():
            jobs.process_events()

        assert [row.status for row in all_events()] == ["succeeded", "succeeded"]
        assert queued(app) == 1

    def test_queues_none_for_a_duplicate(self, app, sender):
        post_opened(sender)
        with app.app_context():
            jobs.process_events()
        before = queued(app)

        post_opened(sender)

        assert queued(app) == before

    def test_queues_another_job_by_itself_if_one_was_lost(self, app, sender):
        post_opened(sender, 1)
        with app.app_context():
            left = connection().ttl(f"jobs:pushed:{receiving.PROCESS_EVENTS}")

        assert 0 < left <= receiving.JOB_LASTS


class TestWorkersSideBySide:
    def test_apply_each_event_once(self, app, sender):
        for number in range(10):
            post_opened(sender, number)

        def work() -> None:
            with app.app_context():
                jobs.process_events()

        at_once([work] * 4)
        work_off(app)

        assert all_rows(EmailMessage)[0].opens == 10
        assert len(all_rows(EmailEventRecord)) == 10


class TestFailures:
    @pytest.fixture
    def broken(self, monkeypatch):
        """Storing an e-mail event goes wrong."""

        def fail(*_: object, **__: object) -> None:
            raise RuntimeError("out of paper\x00")

        monkeypatch.setattr(emails, "record", fail)

    def test_are_tried_again_later_and_later_and_then_no_more(self, app, broken, event_id):
        waits = []

        while event_row(event_id).status == "pending":
            change_event(event_id, next_attempt_at=utcnow())
            waits += [result.retry_in for result in work_off(app)]

        row = event_row(event_id)
        assert waits == [10, 60, 300, 1800, None]
        assert (row.status, row.attempts) == ("failed", 5)
        assert row.detail == "RuntimeError: out of paper\ufffd"

    def test_leave_nothing_half_done(self, app, sender, monkeypatch):
        body = {**SENT, "data": {**SENT["data"], "recipient": ["a@b.example", "c@d.example"]}}
        event_id = sender.post(
            "standard_webhooks", body, receiver=EMAIL, message_id="msg"
        ).get_json()["event_id"]
        record = emails.record

        def fail_at_the_end(*args: object, **options: object) -> None:
            assert record(*args, **options) == 2
            raise RuntimeError("at the end")

        monkeypatch.setattr(emails, "record", fail_at_the_end)
        work_off(app)

        assert all_rows(EmailEventRecord) == []
        assert event_row(event_id).attempts == 1

        monkeypatch.setattr(emails, "record", record)
        change_event(event_id, next_attempt_at=utcnow())
        work_off(app)

        assert len(all_rows(EmailEventRecord)) == 2

    def test_queue_the_next_attempt_which_is_not_made_before(self, app, broken, event_id):
        with app.app_context():
            jobs.process_events()
            queue = queue_named(Queue.WEBHOOKS, connection())
            (delayed,) = queue.scheduled_job_registry.get_job_ids()
            assert queue.fetch_job(delayed).func_name == receiving.PROCESS_EVENTS
        row = event_row(event_id)
        assert timedelta(seconds=8) < row.next_attempt_at - utcnow() <= timedelta(seconds=10)
        work_off(app)
        assert event_row(event_id).attempts == 1

    def test_do_not_stop_the_others(self, app, sender, monkeypatch):
        record = emails.record

        def fail_first(events, **options):
            if events[0].message_id == "poison":
                raise RuntimeError("poison")
            return record(events, **options)

        monkeypatch.setattr(emails, "record", fail_first)
        poison = {**SENT, "data": {**SENT["data"], "message_id": "poison"}}
        sender.post("standard_webhooks", poison, receiver=EMAIL, message_id="poison")
        event_id = post_opened(sender)

        with app.app_context():
            jobs.process_events()

        assert event_row(event_id).status == "succeeded"

    def test_of_the_database_are_not_held_against_the_event(self, app, monkeypatch, event_id):
        end = "SELECT pg_terminate_backend(pg_backend_pid())"
        monkeypatch.setattr(emails, "record", lambda *_, **__: current_transaction().execute(end))

        (result,) = work_off(app)

        row = event_row(event_id)
        assert (result.retry_in, row.status, row.attempts) == (10, "pending", 0)

    def test_an_unreadable_event_fails_at_once(self, sender):
        row = sender.deliver("standard_webhooks", {"type": "user.created", "data": {"id": "u"}})

        assert (row.status, row.attempts) == ("failed", 1)
        assert "timestamp" in row.detail

    @pytest.mark.parametrize("part", ["(", "<", "<>", '"', "[", "\\", "(a", "@", '"a" <'])
    def test_an_address_of_brackets_fails_at_once(self, sender, part):
        body = {**SENT, "data": {**SENT["data"], "recipient": part * (200_000 // len(part))}}
        started = time.thread_time()

        row = sender.deliver("standard_webhooks", body, receiver=EMAIL)

        assert (row.status, row.attempts) == ("failed", 1)
        assert "recipient" in row.detail
        assert time.thread_time() - started < 4


class TestLargeEvents:
    """They are applied in slices: each is one transaction, and other events go between them."""

    @staticmethod
    def post(sender: Sender, recipients: int, **shared: object) -> str:
        addresses = [f"user{number}@b.example" for number in range(recipients)]
        data = {"message_id": "large", "recipient": addresses, **shared}
        body = {**SENT, "type": "email.bounced", "data": data}
        answer = sender.post("standard_webhooks", body, receiver=EMAIL)
        return answer.get_json()["event_id"]

    @staticmethod
    def effects() -> tuple[int, int, int, int]:
        """Facts, messages, suppressions and audit rows, at one moment."""
        (row,) = database.query(
            "SELECT (SELECT count(*) FROM email_events WHERE message_id = 'large'),"
            " (SELECT count(*) FROM email_messages WHERE message_id = 'large' AND version = 1),"
            " (SELECT count(*) FROM suppressions WHERE is_active),"
            " (SELECT count(*) FROM audit_events WHERE action = 'suppression.added')"
        )
        return tuple(row)

    def test_whose_recipients_share_too_much_text_fail_before_anything_is_written(
        self, app, sender
    ):
        large = self.post(sender, 500, metadata={"campaign": "x" * 2**20})

        work_off(app)

        row = event_row(large)
        assert (row.status, row.detail) == ("failed", "its 500 parts share too much text")
        assert self.effects() == (0, 0, 0, 0)

    def test_do_not_delay_others_and_are_applied_in_the_end(self, app, sender):
        large = self.post(sender, 3_000)
        worker = threading.Thread(target=work_off, args=(app,))
        waits = []

        worker.start()
        while worker.is_alive():
            posted, event_id = time.monotonic(), post_opened(sender, len(waits))
            while worker.is_alive() and event_row(event_id).status == "pending":
                time.sleep(0.05)
            waits.append(time.monotonic() - posted)
        work_off(app)

        assert len(waits) > 1
        assert max(waits) < 5
        assert {row.status for row in all_events()} == {"succeeded"}
        assert event_row(large).attempts == 1
        assert self.effects() == (3_000,) * 4
        assert all_rows(EmailMessage, message_id="m1")[0].opens == len(waits)

    def test_go_behind_the_others(self, app, sender):
        large = self.post(sender, 1200)
        others = [post_opened(sender, number) for number in range(2)]

        order = [str(result.event_id) for result in work_off(app)]

        assert order == [large, *others, large, large]

    def test_lose_and_repeat_nothing_if_the_worker_is_killed(self, app, environment, sender):
        event_id = self.post(sender, 2_000)
        worker = _worker.start(environment, [Queue.WEBHOOKS])
        wait_until(lambda: event_row(event_id).applied_parts > 0, seconds=30)

        _worker.kill(worker)

        killed_at = self.effects()

        def is_applied() -> bool:
            work_off(app)
            return event_row(event_id).status == "succeeded"

        # PostgreSQL keeps the row locked until it notices that the worker is gone.
        wait_until(is_applied, seconds=60)
        assert killed_at == (killed_at[0],) * 4
        assert 0 < killed_at[0] < 2_000
        assert killed_at[0] % processing.SLICE == 0
        assert self.effects() == (2_000,) * 4

    def test_go_on_after_a_failure_where_they_were(self, app, sender, monkeypatch):
        event_id = self.post(sender, 1200)
        with app.app_context():
            processing.process_next()
        monkeypatch.setattr(suppressions, "record_changes", None)
        work_off(app)
        monkeypatch.undo()

        failed = event_row(event_id)
        change_event(event_id, next_attempt_at=utcnow())
        work_off(app)

        assert (failed.status, failed.attempts, failed.applied_parts) == ("pending", 1, 500)
        assert event_row(event_id).status == "succeeded"
        assert self.effects() == (1200,) * 4

    def test_that_are_replayed_are_applied_from_the_start(self, app, sender):
        event_id = self.post(sender, 700)
        work_off(app)
        with database.platform_transaction():
            service.replay(event_id, actor=SYSTEM_CLI)

        attempts = work_off(app)

        assert len(attempts) == 2
        assert self.effects() == (700,) * 4

    def test_with_an_unreadable_part_are_not_applied_at_all(self, app, sender):
        body = {**SENT, "data": {"message_id": "large", "recipient": ["a@b.example"] * 700 + [" "]}}

        row = sender.deliver("standard_webhooks", body, receiver=EMAIL)

        assert (row.status, row.applied_parts) == ("failed", 0)
        assert all_rows(EmailEventRecord) == []

    def test_of_memberships_are_applied_in_slices_too(self, app, sender):
        body = {
            "event": "Organization.Membership.Updated",
            "hookId": "hook",
            "createdAt": "2026-01-05T09:45:05Z",
            "organizationId": "o1",
            "addedUserIds": [f"u{number}" for number in range(1200)],
        }

        row = sender.deliver("logto", body)

        assert (row.status, row.attempts, row.applied_parts) == ("succeeded", 1, 1000)
        assert len(all_rows(IdentityObject, is_waiting=True)) == 1200


class TestTheSweeper:
    def test_leaves_alone_what_is_fresh_or_done_or_waits(self, app, sender):
        fresh = post_opened(sender, 1)
        done = post_opened(sender, 2)
        waits = post_opened(sender, 3)
        long_ago = utcnow() - timedelta(hours=1)
        change_event(done, status="failed", next_attempt_at=long_ago)
        change_event(waits, next_attempt_at=utcnow() + timedelta(hours=1))
        with app.app_context():
            connection().flushdb()

            jobs.sweep()

        assert fresh
        assert queued(app) == 0

    def test_is_needed_after_redis_was_away(self, app, sender, monkeypatch):
        monkeypatch.setattr(
            queues, "connection", lambda: request_client("unix:///nowhere/redis.sock", 0.2)
        )
        event_id = post_opened(sender)
        monkeypatch.undo()
        change_event(event_id, next_attempt_at=utcnow() - timedelta(hours=1))

        with app.app_context():
            jobs.sweep()
        make_worker(app, [Queue.WEBHOOKS]).work(burst=True)

        assert event_row(event_id).status == "succeeded"


class TestPayloads:
    @pytest.mark.parametrize("status", ["succeeded", "ignored", "failed"])
    def test_of_what_was_processed_long_ago_are_reduced_to_their_digest(self, app, sender, status):
        old, recent = (post_opened(sender, number) for number in range(2))
        work_off(app)
        change_event(old, processed_at=utcnow() - timedelta(days=31), status=status)

        with app.app_context():
            jobs.remove_payloads()

        assert (event_row(old).body, event_row(old).headers) == (None, {})
        assert len(event_row(old).digest) == 64
        assert event_row(recent).body is not None

    def test_of_pending_events_stay(self, app, event_id):
        long_ago = utcnow() - timedelta(days=31)
        change_event(event_id, created_at=long_ago, next_attempt_at=utcnow() + timedelta(days=1))

        with app.app_context():
            jobs.remove_payloads()

        assert event_row(event_id).body is not None

    @pytest.mark.parametrize("status", ["succeeded", "ignored", "failed"])
    def test_go_with_their_events_when_these_are_old(self, app, sender, status):
        old, recent, pending = (post_opened(sender, number) for number in range(3))
        work_off(app)
        long_ago = utcnow() - timedelta(days=401)
        change_event(old, created_at=long_ago, status=status)
        change_event(pending, created_at=long_ago, status="pending")

        with app.app_context():
            jobs.remove_old_webhook_events()

        left = {str(row.id) for row in database.query("SELECT id FROM webhook_events")}
        assert left == {recent, pending}

    def test_that_are_gone_still_tell_duplicates(self, app, sender, event_id):
        work_off(app)
        change_event(event_id, processed_at=utcnow() - timedelta(days=31))
        with app.app_context(), transaction():
            processing.remove_payloads(10)

        answer = sender.post("standard_webhooks", SENT, receiver=EMAIL, message_id="msg_1")

        assert answer.get_json() == {"status": "accepted", "event_id": event_id, "duplicate": True}

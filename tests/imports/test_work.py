"""Imports that are interrupted, that compete, that fail, and that are old."""

from datetime import timedelta
from functools import partial
from uuid import UUID

import psycopg2
import pytest

from app.audit.models import AuditEvent
from app.core.clock import utcnow
from app.core.jobs import slices
from app.core.jobs.queues import Queue, connection, queue_named
from app.core.jobs.worker import make_worker
from app.imports import apply, jobs, work
from app.imports.models import Import, ImportFault, ImportPiece
from app.memberships.models import Membership
from app.tenants.models import Tenant
from app.users.models import User
from tests.concurrency import at_once
from tests.database import execute, row, rows
from tests.factories import create_tenant, save
from tests.imports.files import as_file, finish, member_line, post, resume, tenant_line, user_line
from tests.messages import sent_messages


def people(count, **values):
    names = [f"user_{number}" for number in range(count)]
    return [
        tenant_line(),
        *(line for name in names for line in (user_line(name, **values), member_line(name))),
    ]


def start(api, *lines):
    return post(api, as_file(*lines)).get_json()["data"]["id"]


class TestInterrupted:
    def test_continues_after_the_last_set(self, app, api):
        import_id = start(api, *people(600), b"x")
        with app.app_context():
            next(work.work(UUID(import_id)))
        assert (row(Import).state, row(Import).lines_done) == ("running", 500)

        last = finish(app, import_id)

        assert (last.state, last.lines_done, last.lines_failed) == ("completed", 1202, 1)
        assert last.counts["user"]["created"] == last.counts["membership"]["created"] == 600
        assert len(rows(User)) == 600

    def test_is_queued_again_where_its_job_was_lost(self, app, api):
        import_id = start(api, *people(3))
        with app.app_context():
            queue_named(Queue.IMPORTS, connection()).empty()
            jobs.resume_imports()
            early = queue_named(Queue.IMPORTS, connection()).count
            execute("UPDATE imports SET updated_at = :at", at=utcnow() - timedelta(minutes=1))
            jobs.resume_imports()
            jobs.resume_imports()
            make_worker(app, [Queue.IMPORTS]).work(burst=True, logging_level="WARNING")

        assert early == 0
        assert row(Import, id=UUID(import_id)).state == "completed"

    def test_lets_other_jobs_have_their_turn(self, app, api, monkeypatch):
        import_id = start(api, *people(600))
        monkeypatch.setattr(slices, "TURN", 0)

        with app.app_context():
            jobs.apply_import(import_id)
            queued = queue_named(Queue.IMPORTS, connection()).count

        assert (row(Import).lines_done, queued) == (500, 2)


class TestCompeting:
    def test_workers_of_one_import_apply_each_line_once(self, app, api):
        import_id = start(api, *people(300), *people(300, first_name="Changed"))

        at_once([partial(finish, app, import_id)] * 4)

        assert row(Import).counts["user"] == {
            "created": 300, "updated": 300, "unchanged": 0, "failed": 0,
        }  # fmt: skip
        assert {one.version for one in rows(User)} == {2}

    def test_imports_of_one_file_double_nothing(self, app, api):
        ids = [start(api, *people(300)) for _ in range(4)]

        ended = at_once([partial(finish, app, import_id) for import_id in ids])

        total = sum(one.counts["user"]["created"] for one in ended)
        assert [one.lines_failed for one in ended] == [0, 0, 0, 0]
        assert total == len(rows(User)) == len(rows(Membership)) == 300
        assert len(rows(AuditEvent, action="user.created")) == 300
        assert len(rows(Tenant)) == 1

    def test_a_change_meanwhile_is_not_overwritten_by_older_values(self, app, api, monkeypatch):
        tenant = create_tenant(idp_org_id="org")
        finish(app, start(api, user_line("ada")))
        import_id = start(api, user_line("ada", last_name="New"))
        read, changes = apply.Rows, iter([{"first_name": "Meanwhile"}])

        def read_and_change(lines):
            found = read(lines)
            for change in changes:
                execute(
                    "UPDATE users SET first_name = :first_name, version = version + 1", **change
                )
            return found

        monkeypatch.setattr(apply, "Rows", read_and_change)

        finish(app, import_id)

        ada = row(User, tenant_id=tenant.id)
        assert (ada.first_name, ada.last_name, ada.version) == ("Meanwhile", "New", 3)


class TestFailed:
    @pytest.fixture
    def failed(self, app, api, monkeypatch):
        """An import that has failed at its second set."""
        import_id = start(api, *people(600))
        with app.app_context():
            next(work.work(UUID(import_id)))
            with monkeypatch.context() as patched:
                patched.setattr(work, "apply_set", lambda *_, **__: 1 / 0)
                with pytest.raises(ZeroDivisionError):
                    list(work.work(UUID(import_id)))
        return import_id

    def test_says_so_and_keeps_its_file(self, failed):
        found = row(Import)

        assert (found.state, found.lines_done) == ("failed", 500)
        assert found.error == "It ended with an unexpected error (ZeroDivisionError)."
        assert len(rows(ImportPiece)) == 1
        assert len(rows(AuditEvent, action="import.failed")) == 1

    def test_can_be_resumed(self, app, failed):
        resume(UUID(failed))

        last = finish(app, failed)

        assert (last.state, last.error, last.lines_done) == ("completed", "", 1201)

    def test_stays_pending_while_the_database_is_away(self, app, api, monkeypatch):
        import_id = start(api, *people(3))

        def away(*_, **__):
            raise psycopg2.OperationalError("away")

        with app.app_context(), monkeypatch.context() as patched:
            patched.setattr(work, "apply_set", away)
            with pytest.raises(psycopg2.OperationalError):
                list(work.work(UUID(import_id)))

        assert row(Import).state == "pending"
        assert finish(app, import_id).state == "completed"

    def test_without_its_file_fails(self, app, api):
        import_id = start(api, *people(3))
        execute("DELETE FROM import_pieces")

        last = finish(app, import_id)

        assert (last.state, last.error) == ("failed", "Its file was removed.")


class TestOld:
    def test_files_and_faults_are_removed_after_seven_days(self, app, api):
        done = start(api, tenant_line(), b"x")
        finish(app, done)
        waiting = start(api, *people(3))
        fresh = save(Import, created_by_user_id="cli:root")
        save(ImportPiece, import_id=fresh.id, number=0, body=b"{}")
        execute(
            "UPDATE imports SET created_at = :at WHERE id <> :fresh",
            at=utcnow() - timedelta(days=8),
            fresh=fresh.id,
        )

        with app.app_context():
            jobs.remove_old_imports()

        assert [one.import_id for one in rows(ImportPiece)] == [fresh.id]
        assert rows(ImportFault) == []
        assert row(Import, id=UUID(done)).state == "completed"
        assert row(Import, id=UUID(waiting)).error == "It was not completed within 7 days."


class TestLargeSets:
    def test_need_no_more_statements_than_small_ones(self, app, api):
        finish(app, start(api, tenant_line()))
        few = start(api, user_line("ada"), member_line("ada"))
        many = start(api, *people(200)[1:])

        with sent_messages() as first:
            finish(app, few)
        with sent_messages() as second:
            finish(app, many)

        assert len(rows(User)) == 201
        assert len(second) == len(first)
        assert len(first) < 20

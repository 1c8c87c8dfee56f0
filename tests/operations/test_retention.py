"""The partitions of the audit trail: made from a table in use, added ahead, dropped when they are old."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from uuid import UUID

import flask_migrate
import psycopg2
import pytest
from flask import Flask
from psycopg2.errors import InsufficientPrivilege, InvalidParameterValue, UndefinedTable

from app import create_app
from app.core.clock import utcnow
from app.core.db import batches, tenancy
from app.core.db.transactions import transaction
from app.dev.engines.instance import OWNER_ROLE
from app.extensions import db
from app.operations import retention
from app.operations.jobs import keep_partitions, remove_old_email_events
from tests import database
from tests.running import documented
from tests.running.serving import wait_until

NAME = "months"
INSERT = """
INSERT INTO audit_events (tenant_id, id, created_at, actor, action, target_type, target_id, before,
    after, request_id)
VALUES ('00000000-0000-0000-0000-000000000000', $1, $2, 'system:job', 'user.updated', 'user', 'x',
    '{}', '{}', '')
"""
PLACES = "SELECT tableoid::regclass::text, count(*) FROM audit_events GROUP BY 1 ORDER BY 1"
PARTITIONS = """
SELECT relname FROM pg_class WHERE relispartition AND relkind = 'r' ORDER BY relname
"""


def first_id(moment: datetime) -> UUID:
    return UUID(int=int(moment.timestamp() * 1000) << 80)


class Trail:
    """A database of its own, the application on it, and a session that sees every row."""

    def __init__(self, instance, app, session):
        self.instance, self.app, self.session = instance, app, session

    def rows(self, sql: str, *values):
        with self.session.cursor() as cursor:
            cursor.execute(sql, values)
            return cursor.fetchall() if cursor.description else []

    def add(self, moment: datetime) -> None:
        """An audit row of that moment."""
        sql = INSERT.replace("$1", "%s").replace("$2", "%s")
        self.rows(sql, str(first_id(moment)), moment)

    def partitions(self) -> list[str]:
        return [name for (name,) in self.rows(PARTITIONS)]

    def last_month(self) -> str:
        return max(name for name in self.partitions() if name[-1].isdigit())

    def connect(self):
        """A session of the application's role, with no transaction around its statements."""
        url = self.instance.database_url(database=NAME)
        session = psycopg2.connect(url.replace("+psycopg2", ""))
        session.autocommit = True
        with session.cursor() as cursor:
            cursor.execute("SELECT set_config('app.platform', 'on', false)")
        return session

    @contextmanager
    def writing(self, now: datetime) -> Iterator[list[int]]:
        """Another session that adds rows by one prepared statement, before and after the block."""
        written: list[int] = []
        stopped = threading.Event()

        def write() -> None:
            with closing(self.connect()) as session, session.cursor() as cursor:
                cursor.execute(f"PREPARE add (uuid, timestamptz) AS {INSERT}")
                while not stopped.is_set():
                    moment = now + timedelta(milliseconds=len(written) + 1)
                    cursor.execute("EXECUTE add (%s, %s)", [str(first_id(moment)), moment])
                    written.append(1)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            wait_until(lambda: len(written) > 10)
            yield written
            before = len(written)
            wait_until(lambda: len(written) > before + 10)
        finally:
            stopped.set()
            writer.join()

    def keep(self) -> None:
        with self.app.app_context():
            keep_partitions()

    def end_first(self, moment: datetime) -> None:
        """Let the first partition end at ``moment``, as if it was made long ago."""
        self.rows("ALTER TABLE audit_events DETACH PARTITION partitions.audit_events_first")
        self.rows(
            "ALTER TABLE audit_events ATTACH PARTITION partitions.audit_events_first"
            " FOR VALUES FROM (MINVALUE) TO (%s)",
            str(first_id(moment)),
        )


@pytest.fixture(scope="module")
def own_app(instance, environment) -> Flask:
    """The application on a database of its own, which each test makes."""
    settings = {
        **environment,
        "AUDIT_DAYS": "40",
        "DATABASE_URL": instance.database_url(database=NAME),
        "MIGRATION_DATABASE_URL": instance.database_url(OWNER_ROLE, NAME),
    }
    return create_app(settings)


@pytest.fixture(scope="module")
def template(instance, own_app) -> Iterator[str]:
    """The name of a migrated database that nobody uses."""
    name = f"{NAME}_template"
    documented.execute(instance, f"CREATE DATABASE {NAME} OWNER {OWNER_ROLE}")
    with own_app.app_context():
        flask_migrate.upgrade()
        db.engine.dispose()
    documented.execute(instance, f"ALTER DATABASE {NAME} RENAME TO {name}")
    yield name
    documented.execute(instance, f"DROP DATABASE {name}")


@pytest.fixture
def trail(instance, own_app, template) -> Iterator[Trail]:
    copy = f"CREATE DATABASE {NAME} TEMPLATE {template} OWNER {OWNER_ROLE}"
    documented.execute(instance, copy)
    with closing(documented.superuser(instance, NAME)) as session:
        yield Trail(instance, own_app, session)
    with own_app.app_context():
        db.engine.dispose()
    documented.execute(instance, f"DROP DATABASE {NAME} WITH (FORCE)")


class TestMigration:
    def test_keeps_the_rows_of_a_table_in_use_there_and_back(self, trail):
        now = utcnow()
        with trail.app.app_context():
            flask_migrate.downgrade(revision="0026-1")
        for days in (0, 10, 1000):
            trail.add(now - timedelta(days=days))
        with trail.writing(now) as written, trail.app.app_context():
            flask_migrate.upgrade()

        expected = len(written) + 3
        assert trail.rows(PLACES) == [("partitions.audit_events_first", expected)]
        with trail.app.app_context():
            flask_migrate.downgrade(revision="0026-1")
            assert trail.rows(PLACES) == [("audit_events", expected)]
            flask_migrate.upgrade()
        assert trail.rows(PLACES) == [("partitions.audit_events_first", expected)]

    def test_leaves_no_row_to_the_default_partition(self, trail):
        now = utcnow()

        for days in range(0, 90, 15):
            trail.add(now + timedelta(days=days))

        assert "partitions.audit_events_default" not in dict(trail.rows(PLACES))

    def test_secures_each_partition(self, trail):
        found = trail.rows(
            "SELECT DISTINCT relrowsecurity AND relforcerowsecurity, (SELECT count(*) FROM pg_policy"
            " WHERE polrelid = pg_class.oid) FROM pg_class WHERE relispartition AND relkind = 'r'"
        )

        assert found == [(True, 1)]
        with closing(trail.connect()) as session, session.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM audit_events")
            with pytest.raises(InsufficientPrivilege):
                cursor.execute("SELECT count(*) FROM partitions.audit_events_first")


class TestAdding:
    def test_is_done_once(self, trail):
        before = trail.partitions()

        trail.keep()

        assert trail.partitions() == before
        assert len(before) >= 4

    def test_comes_before_the_month(self, trail):
        last = trail.last_month()
        trail.rows(f"DROP TABLE partitions.{last}")

        trail.keep()

        assert last in trail.partitions()

    def test_leaves_a_month_to_the_default_partition_that_has_rows_of_it(self, trail):
        last = trail.last_month()
        trail.rows(f"DROP TABLE partitions.{last}")
        month = datetime.strptime(last, "audit_events_%Y_%m").replace(tzinfo=UTC)
        trail.add(month + timedelta(days=1))

        trail.keep()

        assert last not in trail.partitions()
        assert trail.rows(PLACES) == [("partitions.audit_events_default", 1)]


class TestDropping:
    def test_drops_what_is_older_than_the_setting_and_records_it(self, trail):
        now = utcnow()
        trail.add(now - timedelta(days=60))
        trail.add(now - timedelta(days=30))
        trail.end_first(now - timedelta(days=29))
        trail.keep()
        assert "audit_events_first" in trail.partitions()
        trail.rows("DELETE FROM audit_events WHERE created_at > now() - interval '40 days'")
        trail.end_first(now - timedelta(days=41))

        trail.keep()

        assert "audit_events_first" not in trail.partitions()
        kept = trail.rows("SELECT actor, action, target_id, after FROM audit_events")
        dropped = ("system:job", "audit_events.dropped", "audit_events_first", {"audit_days": 40})
        assert kept == [dropped]

    def test_loses_no_row_that_is_added_meanwhile(self, trail):
        now = utcnow()
        trail.end_first(now - timedelta(days=41))
        trail.rows(f"DROP TABLE partitions.{trail.last_month()}")
        before = trail.partitions()

        with trail.writing(now) as written:
            wait_until(lambda: trail.keep() or "audit_events_first" not in trail.partitions())

        assert len(trail.partitions()) >= len(before)  # one is gone, others were added
        changed = trail.rows("SELECT count(*) FROM audit_events WHERE action = 'user.updated'")
        assert changed == [(len(written),)]

    def test_deletes_old_rows_of_the_partitions_that_are_no_months(self, trail, monkeypatch):
        monkeypatch.setattr(batches, "BATCH", 2)  # so that one batch is not enough
        now = utcnow()
        trail.end_first(now - timedelta(days=70))
        for days in (80, 81, 82, 50, 51, 52, 39):
            trail.add(now - timedelta(days=days))

        with trail.app.app_context():
            assert retention.delete_old_rows("audit_events", 40) == 6

        assert trail.rows(PLACES) == [("partitions.audit_events_default", 1)]

    def test_drops_nothing_where_no_row_can_be_so_old(self, app):
        assert database.query("SELECT drop_audit_partition(36500) AS name") == [(None,)]

    def test_waits_a_moment_for_a_lock_and_then_for_the_next_run(self, trail):
        trail.end_first(utcnow() - timedelta(days=41))
        with closing(trail.connect()) as reader, reader.cursor() as cursor:
            cursor.execute("BEGIN; SELECT count(*) FROM audit_events")
            started = time.monotonic()
            trail.keep()
            assert time.monotonic() - started < 15
            assert "audit_events_first" in trail.partitions()

        trail.keep()

        assert "audit_events_first" not in trail.partitions()

    @pytest.mark.parametrize("days", [30, 0, -1, None, 36_501])
    def test_refuses_to_remove_what_is_young(self, app, days):
        for call in (
            f"drop_audit_partition({days or 'NULL'})",
            f"delete_old_rows('audit_events', {days or 'NULL'}, 10)",
        ):
            with pytest.raises(InvalidParameterValue):
                database.query(f"SELECT {call}")

    @pytest.mark.parametrize("table", ["users", "events", "pg_class", "users; --", None])
    def test_knows_only_its_tables(self, app, table):
        with pytest.raises(UndefinedTable):
            database.query("SELECT delete_old_rows(CAST(:table AS text), 100, 10)", table=table)

    @pytest.mark.parametrize(
        "call",
        [
            "add_audit_partitions()",
            "drop_audit_partition(100)",
            "delete_old_rows('audit_events', 100, 10)",
        ],
    )
    def test_refuses_tenants(self, app, call):
        with app.app_context(), transaction() as opened:
            tenancy.enter(tenancy.Scope(UUID(int=1)))
            with pytest.raises(InsufficientPrivilege):
                opened.execute(f"SELECT {call}")
            opened.close()


class TestEmailEvents:
    def test_are_deleted_after_the_setting(self, app):
        for days in (399, 401, 500):
            database.execute(
                "INSERT INTO email_events (id, created_at, webhook_event_id, ordinal, source,"
                " message_id, recipient, address, kind, occurred_at, reason, response, url, tags,"
                " metadata) VALUES (gen_random_uuid(), now() - :days * interval '1 day',"
                " gen_random_uuid(), 0, 'generic', :id, '', '', 'sent', now(), '', '', '', '[]', '{}')",
                days=days,
                id=str(days),
            )

        with app.app_context():
            remove_old_email_events()

        assert database.query("SELECT message_id FROM email_events") == [("399",)]

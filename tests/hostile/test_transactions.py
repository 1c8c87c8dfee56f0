"""Deadlocks, serialization failures and lost connections: run again, but not for ever."""

import threading
import time

import psycopg2
import pytest
from flask import Blueprint, Flask

from app import create_app
from app.auth.guard import public
from app.core.db import tenancy
from app.core.db.retries import ATTEMPTS, run
from app.core.db.transactions import Transaction, current_transaction, on_commit
from app.core.db.writes import insert_row
from app.extensions import db
from app.tenants.models import Tenant
from tests import factories
from tests.concurrency import at_once
from tests.database import query

FAIL = "DO $$ BEGIN RAISE EXCEPTION 'on purpose' USING ERRCODE = '40001'; END $$"
END_ME = "SELECT pg_terminate_backend(pg_backend_pid())"
RENAME = "UPDATE tenants SET name = %(name)s WHERE id = %(id)s"


class Work:
    """Counts its runs; ``first`` happens in the first ones."""

    def __init__(self, first=None, *, times: int = 1) -> None:
        self.runs = 0
        self._first = first
        self._times = times

    def __call__(self) -> str:
        self.runs += 1
        if self._first is not None and self.runs <= self._times:
            current_transaction().execute(self._first)
        return "done"


def end_server(current: Transaction) -> None:
    current.is_committing = True
    current.execute(END_ME)


@pytest.fixture(autouse=True)
def _context(app: Flask):
    with app.app_context():
        yield


class TestRunAgain:
    def test_after_a_deadlock_both_changes_are_there(self, app):
        tenants = [factories.create_tenant(), factories.create_tenant()]
        both_hold_one = threading.Barrier(2)
        runs = []

        def change(name: str, order: list) -> None:
            def work() -> None:
                runs.append(name)
                tenancy.enter(tenancy.PLATFORM)
                for number, tenant in enumerate(order):
                    current_transaction().execute(RENAME, {"name": name, "id": tenant.id})
                    if number == 0 and len(runs) <= 2:
                        both_hold_one.wait(10)

            with app.app_context():
                run(work)

        at_once(
            [lambda: change("first", tenants), lambda: change("second", list(reversed(tenants)))]
        )

        names = set(query("SELECT name FROM tenants"))
        assert 3 <= len(runs) <= ATTEMPTS + 1  # the victim ran again, at most three times
        assert len(names) == 1

    def test_after_serialization_failures(self):
        work = Work(FAIL, times=ATTEMPTS - 1)

        assert run(work) == "done"
        assert work.runs == ATTEMPTS

    def test_only_a_few_times(self):
        work = Work(FAIL, times=100)
        started = time.monotonic()

        with pytest.raises(psycopg2.Error):
            run(work)

        assert work.runs == ATTEMPTS
        assert time.monotonic() - started < 10

    def test_once_after_a_lost_connection(self):
        work = Work(END_ME)

        assert run(work) == "done"
        assert work.runs == 2

    def test_only_once_after_lost_connections(self):
        work = Work(END_ME, times=100)

        with pytest.raises(psycopg2.Error):
            run(work)

        assert work.runs == 2

    def test_after_a_conflict_that_only_the_commit_finds(self, app):
        """Each of two serializable transactions reads what the other one writes."""
        mine, other = factories.create_tenant(), factories.create_tenant()
        runs = []

        def change(tenant, name: str) -> None:
            current = current_transaction()
            current.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
            tenancy.enter(tenancy.PLATFORM)
            current.execute("SELECT name FROM tenants")
            current.execute(RENAME, {"name": name, "id": tenant.id})

        def change_other() -> None:
            with app.app_context():
                run(lambda: change(other, "other"))

        def work() -> str:
            runs.append(1)
            change(mine, f"run {len(runs)}")
            if len(runs) == 1:
                at_once([change_other])
            return "done"

        assert run(work) == "done"
        assert len(runs) == 2
        assert query("SELECT name FROM tenants WHERE id = :id", id=mine.id) == [("run 2",)]

    def test_never_after_a_connection_lost_at_the_commit(self, monkeypatch):
        """It may have happened: only who asked can tell whether to ask again."""
        work = Work("SELECT 1")
        monkeypatch.setattr(Transaction, "commit", end_server)

        with pytest.raises(psycopg2.Error):
            run(work)

        assert work.runs == 1

    def test_never_after_another_error(self):
        work = Work("SELECT 1/0")

        with pytest.raises(psycopg2.Error):
            run(work)

        assert work.runs == 1

    def test_leaves_nothing_of_the_failed_attempts(self):
        tenant = factories.create_tenant()
        pushed = []
        work = Work(FAIL)

        def change() -> str:
            tenancy.enter(tenancy.PLATFORM)
            assert "seen" not in current_transaction().known
            current_transaction().known["seen"] = True
            on_commit(lambda: pushed.append(work.runs))
            current_transaction().execute(RENAME, {"name": f"run {work.runs + 1}", "id": tenant.id})
            return work()

        run(change)

        assert pushed == [2]
        assert query("SELECT name FROM tenants") == [("run 2",)]


class TestCleanUp:
    def test_gives_a_clean_connection_back_after_a_commit_that_failed(self):
        tenant = factories.create_tenant()
        with pytest.raises(psycopg2.Error), factories.platform_transaction():
            insert_row(Tenant, {**tenant._asdict(), "slug": "other"})

        for _ in range(db.engine.pool.size()):
            assert run(Work("SELECT 1", times=1)) == "done"


class TestAnswers:
    def test_are_503_where_running_again_does_not_help(self, environment):
        app = create_app(environment)
        probes = Blueprint("probes", __name__)

        @probes.get("/probe")
        def probe() -> str:
            return run(Work(FAIL, times=100))

        app.register_blueprint(probes)
        app.view_functions["probes.probe"] = public(app.view_functions["probes.probe"])

        answer = app.test_client().get("/probe")

        assert answer.status_code == 503
        assert int(answer.headers["Retry-After"]) > 0
        assert answer.get_json()["code"] == "database_unavailable"
        assert "purpose" not in answer.get_data(as_text=True)

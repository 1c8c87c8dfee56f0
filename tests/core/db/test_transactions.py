"""What a transaction refuses, and what it does not stop for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from threading import Barrier

import psycopg2
import pytest
from flask import current_app
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app import create_app
from app.auth.guard import current_principal
from app.core.db import statements, tenancy, transactions
from app.core.db.transactions import on_commit, transaction
from app.dev.engines.instance import DATABASE
from app.dev.engines.postgres import SUPERUSER
from app.extensions import db


class TestTransaction:
    @pytest.fixture(autouse=True)
    def _context(self, app):
        with app.app_context():
            yield

    def test_does_not_nest(self):
        with transaction(), pytest.raises(RuntimeError, match="does not nest"), transaction():
            pass

    def test_is_needed_to_wait_for_its_commit(self):
        with pytest.raises(RuntimeError, match="open transaction"):
            on_commit(print)

    def test_has_no_scope_and_nobody_until_they_are_entered(self):
        with transaction():
            with pytest.raises(RuntimeError, match="no tenant scope"):
                tenancy.current_scope()
            with pytest.raises(RuntimeError, match="no principal"):
                current_principal()

    def test_goes_on_after_a_callback_that_fails(self, caplog):
        called = []

        with transaction():
            on_commit(lambda: called.append(1))
            on_commit(lambda: called[1])
            on_commit(lambda: called.append(2))

        assert called == [1, 2]
        assert [record.message for record in caplog.records] == ["on_commit_failed"]


class TestKeptConnections:
    """What each thread of a server keeps between its transactions."""

    @pytest.fixture(autouse=True)
    def _keep(self, app, environment, monkeypatch):
        monkeypatch.setattr(transactions._Kept, "is_wanted", False)
        transactions.keep_connections()
        with create_app(environment).app_context():  # nobody listens to what its engine does
            yield
            db.engine.dispose()
        transactions._kept.pooled = None

    def ask(self, question="SELECT pg_backend_pid()", *, whole=True):
        with transaction():
            return statements.scalar(text(question), whole=whole)

    def test_are_used_again(self):
        first = self.ask()

        assert {self.ask(), self.ask(whole=False), self.ask()} == {first}
        assert db.engine.pool.checkedout() == 1

    def test_know_nothing_of_the_transaction_before(self):
        with transaction():
            tenancy.enter(tenancy.PLATFORM)
            assert statements.scalar(text("SELECT current_setting('app.platform')"), whole=True)

        setting = "SELECT current_setting('app.platform', true)"
        assert not self.ask(setting)
        assert not self.ask(setting, whole=False)

    def test_are_not_kept_with_something_open_on_them(self):
        with suppress(ZeroDivisionError), transaction():
            statements.scalar(text("SELECT 1"))
            raise ZeroDivisionError

        assert db.engine.pool.checkedout() == 0
        assert self.ask() == self.ask()

    def test_that_are_lost_are_replaced(self, instance):
        lost = self.ask()
        place = {"host": str(instance.sockets), "user": SUPERUSER, "dbname": DATABASE}
        with closing(psycopg2.connect(**place)) as session, session.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [lost])

        assert transactions.run(lambda: statements.scalar(text("SELECT 1"), whole=True)) == 1
        assert self.ask() == self.ask() != lost

    def test_are_lost_together(self):
        """As the pool has it: who finds one lost has all that are older replaced."""
        app = current_app._get_current_object()
        barrier = Barrier(2, timeout=60)

        def lost_by_another(finds_it: bool) -> bool:
            with app.app_context():
                first = self.ask()
                barrier.wait()
                if finds_it:
                    with suppress(DBAPIError):
                        self.ask("SELECT pg_terminate_backend(pg_backend_pid())")
                barrier.wait()
                return self.ask() != first

        with ThreadPoolExecutor(2) as threads:
            assert list(threads.map(lost_by_another, [True, False])) == [True, True]

    def test_hold_nothing_large(self):
        with transaction():
            statements.scalar(text("SELECT length(:a)"), {"a": "a" * 100_000}, whole=True)
            cursor = transactions.flushed().driver().shared
            assert len(cursor.query) > 100_000
        assert cursor.closed

        with transaction():
            assert len(statements.rows(text("SELECT generate_series(1, 200)"), whole=True)) == 200
            cursor = transactions.flushed().driver().shared
        assert cursor.closed
        assert self.ask() == self.ask()

    def test_are_of_their_engine(self, environment):
        here = self.ask()
        with create_app(environment).app_context():
            assert self.ask() != here
            db.engine.dispose()

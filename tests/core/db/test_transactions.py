"""What a transaction refuses, and what it does not stop for."""

from contextlib import suppress

import psycopg2.errors
import pytest

from app.auth.guard import current_principal
from app.core.db import retries, tenancy, transactions
from app.core.db.queries import get_row
from app.core.db.transactions import on_commit, savepoint, transaction
from app.core.db.writes import insert_row
from app.core.errors import NotFound
from app.extensions import db
from app.tenants.models import Tenant, TenantDeletion
from tests.database import execute
from tests.factories import create_tenant


class TestTransaction:
    @pytest.fixture(autouse=True)
    def _context(self, app):
        with app.app_context():
            yield

    def test_does_not_nest(self):
        with transaction(), pytest.raises(RuntimeError, match="does not nest"), transaction():
            pass

    def test_has_no_scope_and_nobody_until_they_are_entered(self):
        with transaction():
            with pytest.raises(RuntimeError, match="no tenant scope"):
                tenancy.current_scope()
            with pytest.raises(RuntimeError, match="outside of request context"):
                current_principal()

    def test_goes_on_after_a_callback_that_fails(self, caplog):
        called = []

        with transaction():
            on_commit(lambda: called.append(1))
            on_commit(lambda: called[1])
            on_commit(lambda: called.append(2))

        assert called == [1, 2]
        assert [record.message for record in caplog.records] == ["on_commit_failed"]

    def test_takes_a_connection_at_its_first_statement(self):
        with transaction() as opened:
            taken = db.engine.pool.checkedout()
            opened.execute("SELECT 1")

            assert db.engine.pool.checkedout() == taken + 1
        assert db.engine.pool.checkedout() == taken

    def test_does_not_commit_after_an_error_that_was_swallowed(self):
        def swallow():
            with suppress(psycopg2.errors.DivisionByZero):
                transactions.current_transaction().execute("SELECT 1 / 0")

        with pytest.raises(RuntimeError, match="cannot commit"):
            retries.run(swallow)

    def test_leaves_no_setting_behind(self):
        db.engine.dispose()
        with transaction():
            tenancy.enter(tenancy.PLATFORM)
        with transaction() as opened:
            cursor = opened.execute("SELECT current_setting('app.platform', true)")

            assert not cursor.fetchone()[0]


class TestSavepoint:
    def test_undoes_its_own_block_alone(self, app):
        with app.app_context(), transaction() as opened:
            opened.execute("CREATE TEMP TABLE kept (a int) ON COMMIT DROP")
            opened.execute("INSERT INTO kept VALUES (1)")
            with suppress(psycopg2.errors.DivisionByZero), savepoint():
                opened.execute("INSERT INTO kept VALUES (2)")
                opened.execute("SELECT 1 / 0")

            cursor = opened.execute("SELECT a FROM kept")
            assert cursor.fetchall() == [(1,)]

    def test_undoes_its_own_block_after_one_inside_it_has_failed(self, app):
        with app.app_context(), transaction() as opened:
            opened.execute("CREATE TEMP TABLE kept (a int) ON COMMIT DROP")
            with suppress(KeyError), savepoint():
                opened.execute("INSERT INTO kept VALUES (1)")
                with suppress(ZeroDivisionError), savepoint():
                    raise ZeroDivisionError
                raise KeyError

            assert opened.execute("SELECT a FROM kept").fetchall() == []

    def test_restores_the_scope_of_before_a_block_that_failed(self, app):
        tenant, other = tenancy.Scope(create_tenant().id), tenancy.Scope(create_tenant().id)
        with app.app_context(), transaction() as opened:
            tenancy.enter(tenant)
            with suppress(ZeroDivisionError), savepoint():
                tenancy.enter(other)
                raise ZeroDivisionError

            cursor = opened.execute("SELECT current_setting('app.tenant_id')")
            assert cursor.fetchone() == (str(tenant.tenant_id),)
            assert tenancy.current_scope() == tenant

    def test_forgets_the_callbacks_and_reads_of_a_block_that_failed(self, app):
        called = []
        with app.app_context(), transaction():
            on_commit(lambda: called.append("before"))
            with suppress(ZeroDivisionError), savepoint():
                on_commit(lambda: called.append("inside"))
                transactions.current_transaction().known["read"] = 1
                raise ZeroDivisionError
            assert "read" not in transactions.current_transaction().known

        assert called == ["before"]


class TestConnections:
    def test_are_in_utc_whatever_the_role_says(self, app):
        with app.app_context(), transaction() as opened:
            cursor = opened.execute("SELECT '2026-01-01 00:00+01'::timestamptz")

            assert cursor.fetchone()[0].isoformat() == "2025-12-31T23:00:00+00:00"


class TestRun:
    def test_tries_again_when_a_row_it_refers_to_was_deleted_meanwhile(self, app):
        tenant = create_tenant()
        attempts = []

        def work():
            attempts.append(1)
            tenancy.enter(tenancy.PLATFORM)
            found = get_row(Tenant, tenant.id)
            execute("DELETE FROM tenants WHERE id = :id", id=tenant.id)
            values = {"tenant_id": found.id, "requested_by": "x"}
            insert_row(TenantDeletion, values)

        with app.app_context(), pytest.raises(NotFound):
            retries.run(work)

        assert len(attempts) == 2

    def test_tries_again_elsewhere_if_its_server_is_not_the_primary_any_more(self, app):
        tenant = create_tenant()
        servers = []

        def work():
            tenancy.enter(tenancy.PLATFORM)
            servers.append(transactions.current_transaction().cursor.connection)
            if len(servers) == 1:
                transactions.current_transaction().execute("SET transaction_read_only = on")
            insert_row(TenantDeletion, {"tenant_id": tenant.id, "requested_by": "x"})

        with app.app_context():
            retries.run(work)

        assert [bool(server.closed) for server in servers] == [True, False]

    def test_is_unavailable_if_it_finds_no_primary(self, app):
        def work():
            current = transactions.current_transaction()
            current.execute("SET transaction_read_only = on")
            current.execute("DELETE FROM tenants")

        with app.app_context(), pytest.raises(psycopg2.OperationalError, match="not the primary"):
            retries.run(work)

"""Prepared statements: when, how many, and what happens where the server has lost them."""

import pytest
from sqlalchemy import bindparam, select, text

from app.core.db import prepared, tenancy, transactions
from app.core.db.retries import run
from app.core.db.statements import Statement
from app.core.db.transactions import transaction
from app.extensions import db
from app.tenants.models import Tenant
from tests.factories import create_tenant

NAMES = Statement("tests.names", text("SELECT name FROM pg_prepared_statements"), prepare=False)


@pytest.fixture(autouse=True)
def _one_connection(app):
    """Each test has a new connection, which is the only one of the pool."""
    with app.app_context():
        db.engine.dispose()
        yield
        db.engine.dispose()


def names(prefix: str = "tests_") -> list[str]:
    def read() -> list[str]:
        tenancy.enter(tenancy.PLATFORM)
        return [name for name in NAMES.scalars() if name.startswith(prefix)]

    return run(read)


def ask(statement: Statement, **values):
    def work():
        tenancy.enter(tenancy.PLATFORM)
        return statement.first(**values)

    return run(work)


def execute(statement: str) -> None:
    with transaction() as current:
        current.execute(statement)


class TestPreparing:
    def test_begins_with_the_use_that_reaches_the_threshold(self):
        tenant = create_tenant()
        find = Statement("tests.find", select(Tenant).where(Tenant.id == bindparam("id")))

        found = []
        for use in range(1, prepared.THRESHOLD + 3):
            found.append(ask(find, id=tenant.id))
            assert len(names()) == (use >= prepared.THRESHOLD)

        assert found == [tenant] * len(found)

    def test_leaves_out_what_has_the_best_plan_by_its_values(self):
        create_tenant()
        find = Statement("tests.find", select(Tenant), prepare=False)

        for _ in range(prepared.THRESHOLD + 2):
            ask(find)

        assert names() == []

    def test_keeps_statements_with_one_long_name_apart(self):
        asked = [Statement(f"tests.{'long' * 20}", text(f"SELECT {n} + :a")) for n in range(2)]

        found = [ask(one, a=1)[0] for one in asked for _ in range(prepared.THRESHOLD + 1)]

        assert found == [1] * (prepared.THRESHOLD + 1) + [2] * (prepared.THRESHOLD + 1)
        assert len(names()) == 2

    def test_deallocates_the_least_recently_used(self, monkeypatch):
        monkeypatch.setattr(prepared, "MAX_PREPARED", 4)
        asked = [Statement(f"tests.s{n}", text(f"SELECT {n} + :a")) for n in range(8)]

        for statement in asked:
            for _ in range(prepared.THRESHOLD + 1):
                ask(statement, a=1)

        assert [int(ask(one, a=1)[0]) for one in asked] == list(range(1, 9))
        assert len(names("")) <= 4

    def test_outlives_a_statement_that_fails_with_it(self):
        divide = Statement("tests.divide", text("SELECT 1 / CAST(:by AS integer)"))
        for _ in range(prepared.THRESHOLD - 1):
            ask(divide, by=1)

        with pytest.raises(transactions.psycopg2.errors.DivisionByZero):
            ask(divide, by=0)

        assert ask(divide, by=1)[0] == 1

    def test_that_fails_begins_again_on_a_new_connection(self):
        find = Statement("tests.find", text("SELECT slug FROM tenants WHERE slug = :a"))
        for _ in range(prepared.THRESHOLD - 1):
            ask(find, a="")

        execute("CREATE TEMP TABLE tenants AS SELECT 1 AS other")
        with pytest.raises(transactions.psycopg2.errors.UndefinedColumn):
            ask(find, a="")

        for use in range(1, prepared.THRESHOLD + 3):
            assert ask(find, a="") is None
            assert len(names()) == (use >= prepared.THRESHOLD)

    def test_is_off_by_the_setting(self, environment):
        from app import create_app

        find = Statement("tests.find", select(Tenant))
        with create_app({**environment, "DB_PREPARE": "0"}).app_context():
            for _ in range(prepared.THRESHOLD + 2):
                ask(find)
            assert names("") == []
            db.engine.dispose()


class TestLostStatements:
    @pytest.mark.parametrize(
        "change", ["DEALLOCATE ALL", "ALTER TABLE changing ALTER a TYPE bigint"]
    )
    def test_are_sent_in_full_again(self, change):
        asked = Statement("tests.asked", text("SELECT a FROM changing WHERE a = :a"))
        make = text("CREATE TEMP TABLE IF NOT EXISTS changing AS SELECT 1 AS a")

        def work():
            tenancy.enter(tenancy.PLATFORM)
            Statement("tests.make", make, prepare=False).execute()
            return asked.first(a=1)[0]

        before = [run(work) for _ in range(3)]
        execute(change)
        after = [run(work) for _ in range(3)]

        assert before == after == [1, 1, 1]

"""Statements beside the ORM's session: one connection, one order, SQLAlchemy's errors."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from itertools import combinations, islice

import psycopg2
import pytest
from sqlalchemy import bindparam, event, literal, select, text, update
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError
from uuid_utils.compat import uuid7

from app.audit.models import AuditEvent
from app.auth.models import ApiKey
from app.core.db import connections, models, preparing, queries, statements, tenancy, transactions
from app.core.http.pagination import Kept, paginate
from app.dev.engines.instance import DATABASE
from app.dev.engines.postgres import SUPERUSER
from app.extensions import db
from app.subscriptions.models import Subscription
from app.tenants.models import Tenant
from app.users.models import User
from app.webhooks.models import WebhookEvent
from tests import factories

NAME = statements.prepare(select(Tenant.name).where(Tenant.id == bindparam("id")))
RENAME = statements.prepare(
    update(Tenant.__table__).where(Tenant.id == bindparam("of")).values(name=bindparam("to"))
)

FAIL = text("DO $$ BEGIN RAISE EXCEPTION 'on purpose' USING ERRCODE = '40001'; END $$")
AGAIN = statements.prepare(RENAME.where(Tenant.slug != "again"))


def new_tenant(slug: str = "new") -> Tenant:
    return Tenant(idp_org_id=f"org_{slug}", name="New", slug=slug, plan_name="free")


@pytest.fixture
def tenant(app) -> Tenant:
    return factories.create_tenant(name="Before")


@pytest.fixture
def unit(tenant):
    with factories.platform_transaction():
        yield


class TestAnswers:
    def test_are_named_and_typed(self, unit, tenant):
        found = statements.first(select(Tenant.id, Tenant.name, Tenant.created_at))

        assert (found.id, found.name) == (tenant.id, "Before")
        assert found.created_at == tenant.created_at

    def test_are_rows_of_models_with_values_beside(self, unit, tenant):
        user = factories.create_user(tenant, meta_data={"a": [1.0, {"b": None}]})

        found = statements.first(
            select(User, Tenant.name).join(Tenant, Tenant.id == User.tenant_id)
        )

        row, name = found
        assert (row.id, row.meta_data, row.version, name) == (user.id, user.meta_data, 1, "Before")

    def test_are_in_the_types_of_their_columns(self, unit, tenant):
        factories.create_api_key(tenant, ["users:read", "users:write"])

        assert statements.scalar(select(ApiKey.permissions)) == ["users:read", "users:write"]
        assert statements.scalar(select(ApiKey)).permissions == ["users:read", "users:write"]
        assert statements.scalars(select(WebhookEvent)) == []

    def test_of_no_row_are_none(self, unit):
        nothing = select(User)

        assert statements.first(nothing) is None
        assert statements.scalar(nothing) is None
        assert statements.rows(nothing) == statements.scalars(nothing) == []

    def test_of_statements_that_differ_in_values_only_differ(self, unit, tenant):
        other = factories.create_tenant(name="Other")
        asked = [select(Tenant.name).where(Tenant.id == one.id) for one in (tenant, other, tenant)]

        assert [statements.scalar(one) for one in asked] == ["Before", "Other", "Before"]

    def test_cannot_be_set(self, unit, tenant):
        row = queries.get_row(Tenant, tenant.id)

        with pytest.raises(AttributeError):
            row.name = "After"

    def test_are_none_of_a_list_of_values(self, unit, tenant):
        with pytest.raises(NotImplementedError):
            statements.scalars(select(Tenant).where(Tenant.id.in_([tenant.id])))


class TestOrder:
    def test_what_was_written_is_read(self, unit, tenant):
        statements.write(RENAME, {"of": tenant.id, "to": "After"}, changes_one=True)

        assert statements.scalar(NAME, {"id": tenant.id}) == "After"
        assert db.session.execute(NAME, {"id": tenant.id}).scalar() == "After"

    def test_what_the_session_has_pending_goes_first(self, unit):
        made = new_tenant()
        db.session.add(made)

        assert statements.scalar(select(Tenant.name).where(Tenant.slug == "new")) == "New"
        assert made.version == 1

    def test_a_row_just_added_can_be_changed_at_once(self, unit):
        made = new_tenant()
        db.session.add(made)

        made.assign({"name": "Newer"})

        assert (made.name, made.version) == ("Newer", 2)
        assert statements.scalar(NAME, {"id": made.id}) == "Newer"
        assert db.session.execute(NAME, {"id": made.id}).scalar() == "Newer"

    def test_a_row_of_the_sessions_follows_its_own_changes(self, unit, tenant):
        row = db.session.get_one(Tenant, tenant.id)

        row.assign({"name": "After"})
        row.assign({"name": "Later"})

        db.session.refresh(row)
        assert (row.name, row.version) == ("Later", 3)

    def test_a_removed_row_is_gone(self, unit, tenant):
        user = factories.create_user(tenant)

        queries.remove(queries.lock_row(User, user.id))

        assert statements.scalars(select(User)) == []

    def test_nothing_is_left_of_what_was_rolled_back(self, tenant):
        def change() -> None:
            with factories.platform_transaction():
                queries.lock_row(Tenant, tenant.id).assign({"name": "After"})
                db.session.add(new_tenant())
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            change()

        with factories.platform_transaction():
            assert statements.scalars(select(Tenant.name)) == ["Before"]

    def test_nothing_is_left_of_what_was_discarded(self, unit, tenant):
        queries.lock_row(Tenant, tenant.id).assign({"name": "After"})
        db.session.add(new_tenant())

        transactions.discard()

        assert statements.scalars(select(Tenant.name)) == ["Before"]
        assert db.session.execute(select(Tenant.name)).scalars().all() == ["Before"]


class TestSavepoints:
    def test_a_fault_undoes_what_was_written_in_them_alone(self, unit, tenant):
        statements.write(RENAME, {"of": tenant.id, "to": "Kept"})

        with pytest.raises(IntegrityError):
            _take_slug(tenant, factories.create_tenant().slug)

        assert queries.get_row(Tenant, tenant.id).name == "Kept"
        assert queries.get_row(Tenant, tenant.id).slug == tenant.slug


def _take_slug(tenant: Tenant, slug: str) -> None:
    with transactions.savepoint():
        queries.lock_row(Tenant, tenant.id).assign({"name": "Undone"})
        queries.lock_row(Tenant, tenant.id).assign({"slug": slug})
        statements.settle()


class TestFaults:
    def test_are_those_of_sqlalchemy(self, unit, tenant):
        db.session.add(new_tenant(tenant.slug))

        with pytest.raises(IntegrityError):
            statements.settle()

    def test_of_a_read_are_those_of_sqlalchemy(self, unit):
        with pytest.raises(DBAPIError) as caught:
            statements.first(text("SELECT 1/0"))

        assert transactions.sqlstate(caught.value) == "22012"
        assert not caught.value.connection_invalidated

    def test_of_a_lost_connection_say_so(self, unit):
        with pytest.raises(OperationalError) as caught:
            statements.first(text("SELECT pg_terminate_backend(pg_backend_pid())"))

        assert caught.value.connection_invalidated
        transactions.discard()
        assert statements.scalar(text("SELECT 1")) == 1

    def test_a_change_that_would_be_lost_fails(self, tenant):
        def change() -> None:
            with factories.platform_transaction():
                row = queries.get_row(Tenant, tenant.id)
                with factories.platform_transaction():
                    queries.lock_row(Tenant, tenant.id).assign({"name": "Theirs"})
                row.assign({"name": "Mine"})

        with pytest.raises(DBAPIError) as caught:
            change()

        assert transactions.sqlstate(caught.value) in transactions.RETRIED
        with factories.platform_transaction():
            assert statements.scalar(NAME, {"id": tenant.id}) == "Theirs"


class TestPlans:
    def test_of_every_set_of_columns_that_changes_are_not_all_kept(self, unit):
        dialect = transactions.flushed().engine.dialect
        columns = [name for name in Subscription.__table__.columns.keys() if name != "version"]  # noqa: SIM118 - columns
        sets = islice(combinations(columns, 5), 2000)
        kept = len(statements._plans)

        for names in sets:
            statements._plan(models._update(Subscription, names), dialect)

        assert len(statements._plans) == kept
        assert len(statements._recent) < 1000


@pytest.fixture
def open_table(instance):
    """A table for whom it may concern."""
    with owner(instance) as cursor:
        cursor.execute("CREATE TABLE noted (name text)")
        cursor.execute("GRANT ALL ON noted TO PUBLIC")
        yield
        cursor.execute("DROP TABLE noted")


class TestWhole:
    """A statement that is all of its transaction."""

    ADD = text("INSERT INTO noted VALUES (:name) RETURNING name")

    def names(self) -> list[str]:
        with transactions.transaction():
            return statements.scalars(text("SELECT name FROM noted"))

    def fail(self, *before: str) -> None:
        with suppress(LookupError), transactions.transaction():
            for name in before:
                statements.scalars(self.ADD, {"name": name})
            statements.scalars(self.ADD, {"name": "whole"}, whole=True)
            statements.scalars(self.ADD, {"name": "after"})
            raise LookupError

    @pytest.fixture(autouse=True)
    def _context(self, app, open_table):
        with app.app_context():
            yield

    def test_is_durable_when_it_is_the_first(self):
        self.fail()

        assert self.names() == ["whole"]

    def test_is_undone_with_what_came_before(self):
        self.fail("before")

        assert self.names() == []

    def test_takes_one_message(self, monkeypatch):
        sent = []
        send = connections.Cursor.send

        def note(cursor, *further):
            sent.append(further)
            send(cursor, *further)

        with transactions.transaction():
            statements.scalars(self.ADD, {"name": "first"}, whole=True)
        monkeypatch.setattr(connections.Cursor, "send", note)
        with transactions.transaction():
            statements.scalars(self.ADD, {"name": "second"}, whole=True)

        assert len(sent) == 1
        assert self.names() == ["first", "second"]

    def test_is_run_again_when_nobody_knows_whether_it_happened(self):
        end_me = text("SELECT pg_terminate_backend(pg_backend_pid())")
        runs = []

        def work() -> None:
            runs.append(1)
            statements.scalars(end_me if len(runs) == 1 else text("SELECT 1"), whole=True)

        transactions.run(work)

        assert len(runs) == 2

    def test_is_run_again_when_it_did_not_happen(self):
        runs = []

        def work() -> None:
            runs.append(1)
            if len(runs) == 1:
                statements.scalars(FAIL, whole=True)

        transactions.run(work)

        assert len(runs) == 2


class TestScope:
    """Which rows are seen, before a transaction has begun in the database and after."""

    NAMES = select(User.first_name).order_by(User.first_name)

    @pytest.fixture(autouse=True)
    def scopes(self, app, tenant):
        other = factories.create_tenant()
        factories.create_user(tenant, first_name="ours")
        factories.create_user(other, first_name="theirs")
        with app.app_context(), transactions.transaction():
            yield [tenancy.Scope(tenant.id), tenancy.Scope(other.id), tenancy.PLATFORM]

    @pytest.mark.parametrize("whole", [True, False])
    def test_is_nobodys_where_none_was_entered(self, whole):
        assert statements.scalars(self.NAMES, whole=whole) == []

    @pytest.mark.parametrize("whole", [True, False])
    def test_holds_from_where_it_was_entered(self, scopes, whole):
        seen = []
        for scope in scopes:
            tenancy.enter(scope)
            seen += [statements.scalars(self.NAMES, whole=whole) for _ in range(2)]

        assert seen == [["ours"]] * 2 + [["theirs"]] * 2 + [["ours", "theirs"]] * 2

    def test_holds_beyond_where_the_transaction_begins(self, scopes):
        tenancy.enter(scopes[0])
        seen = [statements.scalars(self.NAMES, whole=True), statements.scalars(self.NAMES)]
        with transactions.savepoint():
            seen += [statements.scalars(self.NAMES), list(db.session.scalars(self.NAMES))]

        assert seen == [["ours"]] * 4

    def test_ends_with_the_transaction(self, app, scopes):
        connection = transactions.flushed().driver()
        for scope, whole in zip(scopes, (True, False, True), strict=True):
            tenancy.enter(scope)
            statements.scalars(self.NAMES, whole=whole)
            connection.commit()

            assert statements.scalars(self.NAMES, whole=True) == []


class TestPrepared:
    """What a connection is asked for again, it prepares."""

    def ask_often(self, tenant, times=preparing.PREPARED_AT):
        return [statements.scalar(NAME, {"id": tenant.id}) for _ in range(times)]

    def test_answers_as_before(self, unit, tenant):
        other = factories.create_tenant(name="Other")

        assert self.ask_often(tenant) == ["Before"] * preparing.PREPARED_AT
        assert "FROM tenants" in str(prepared())
        assert self.ask_often(other, 2) == ["Other"] * 2

    def test_is_not_before_it_is_asked_for_again(self, unit, tenant):
        before = prepared()

        self.ask_often(tenant, preparing.PREPARED_AT - 1)

        assert [one for one in prepared() if one not in before and "tenants.name" in one] == []

    def test_holds_a_write_to_one_row(self, tenant):
        for name in "abc":
            with factories.platform_transaction():
                statements.write(RENAME, {"of": tenant.id, "to": name}, changes_one=True)
        assert self.renames() == ["c"]

        with pytest.raises(DBAPIError) as caught, factories.platform_transaction():
            statements.write(RENAME, {"of": uuid7(), "to": "d"}, changes_one=True)

        assert transactions.sqlstate(caught.value) in transactions.RETRIED
        with factories.platform_transaction():  # as any other write, it may change none
            statements.write(RENAME, {"of": uuid7(), "to": "e"})
        assert self.renames() == ["c"]

    def renames(self):
        with factories.platform_transaction():
            return db.session.execute(select(Tenant.name)).scalars().all()

    def test_keeps_the_values_of_the_statement_itself(self, unit, tenant):
        kept = statements.prepare(
            select(text("json_build_object('a', 1)"), bindparam("b", 2), Tenant.name).where(
                Tenant.name.in_(select(literal("Before"))), Tenant.id == bindparam("id")
            )
        )

        found = [tuple(statements.first(kept, {"id": tenant.id})) for _ in range(4)]
        another = statements.first(kept, {"id": tenant.id, "b": 3})

        assert found == [({"a": 1}, 2, "Before")] * 4
        assert tuple(another) == ({"a": 1}, 3, "Before")

    @pytest.mark.parametrize(
        "change", ["DEALLOCATE ALL", "ALTER TABLE changing ALTER a TYPE bigint"]
    )
    def test_is_run_again_in_full_where_the_server_cannot_use_it_any_more(self, app, change):
        asked = statements.prepare(text("SELECT a FROM changing WHERE a = :a"))
        once = lambda: statements.first(asked, {"a": 1})  # noqa: E731

        with app.app_context():
            db.engine.dispose()  # from here on there is one connection
            with transactions.transaction():
                db.session.execute(text("CREATE TEMP TABLE changing (a int)"))
                db.session.execute(text("INSERT INTO changing VALUES (1)"))
            before = [transactions.run(once)[0] for _ in range(3)]
            with transactions.transaction():
                db.session.execute(text(change))
            after = [transactions.run(once)[0] for _ in range(3)]
            names = transactions.run(prepared)
            db.engine.dispose()

        assert before == after == [1, 1, 1]
        assert change != "DEALLOCATE ALL" or names == []

    def test_is_run_again_whichever_connection_is_met(self, app, instance):
        clean_up = "DROP TABLE IF EXISTS changing"
        asked = statements.prepare(text("SELECT a FROM changing WHERE a = :a"))
        together = threading.Barrier(6)

        def warm() -> None:
            with app.app_context():
                for _ in range(preparing.PREPARED_AT):
                    with transactions.transaction():
                        statements.first(asked, {"a": 1})
                        together.wait(20)  # so that each thread has a connection of its own

        with owner(instance) as session:
            session.execute(f"{clean_up}; CREATE TABLE changing (a int)")
            session.execute("INSERT INTO changing VALUES (1); GRANT SELECT ON changing TO PUBLIC")
            try:
                with ThreadPoolExecutor(6) as threads:
                    for job in [threads.submit(warm) for _ in range(6)]:
                        job.result()
                session.execute("ALTER TABLE changing ALTER a TYPE bigint")
                with app.app_context():
                    once = lambda: statements.first(asked, {"a": 1})  # noqa: E731
                    found = [transactions.run(once)[0] for _ in range(12)]
            finally:
                session.execute(clean_up)

        assert found == [1] * 12

    def test_is_not_what_has_the_best_plan_by_its_values(self, unit, tenant):
        for _ in range(preparing.PREPARED_AT + 1):
            assert paginate(User, equal={"email": "a@example.com"}, tenant_id=tenant.id).items == []

        assert [one for one in prepared() if "users.email =" in one] == []

    @pytest.mark.parametrize(
        ("column", "is_one_of_many"), [(User.first_name, False), (User.last_name, True)]
    )
    def test_is_what_a_list_is_narrowed_by_unless_there_are_too_many(
        self, app, column, is_one_of_many
    ):
        with app.app_context():
            db.engine.dispose()  # a new connection, whose server has refused nothing
        with factories.platform_transaction():
            among = Kept(column == bindparam("wanted"), {"wanted": "nobody"}, is_one_of_many)
            for _ in range(preparing.PREPARED_AT + 1):
                assert paginate(User, among=among).items == []

            found = [one for one in prepared() if f"WHERE users.{column.key} =" in one]

        assert len(found) == (0 if is_one_of_many else 1)

    def test_is_nothing_passing_where_that_would_take_the_place_of_the_rest(self):
        known = preparing.Prepared()
        for number in range(preparing.MOST_PASSING):
            known.give(f"statement_{number}", passing=True)
        known.note_sent()
        for _ in range(preparing.PREPARED_AT):
            passing = known.is_due("passing", passing=True)
            lasting = known.is_due("lasting", passing=False)

        assert (passing, lasting) == (False, True)

    def test_leaves_a_write_that_waits_where_its_fault_is_looked_for(self, app, tenant):
        with app.app_context():
            db.engine.dispose()  # from here on there is one connection
        with factories.platform_transaction():
            self.ask_often(tenant)  # so it may prepare
        of_nobody = {"of": uuid7(), "to": "x"}
        for _ in range(preparing.PREPARED_AT - 1):
            with factories.platform_transaction():
                statements.write(AGAIN, of_nobody)

        with factories.platform_transaction():
            db.session.add(new_tenant(tenant.slug))
            statements.write(AGAIN, of_nobody)  # due to be prepared, in the message of the insert
            with pytest.raises(IntegrityError):
                statements.settle()

        for _ in range(2):  # in full for good: nobody knows whether it was prepared
            with factories.platform_transaction():
                statements.write(AGAIN, of_nobody)
                assert not any("again" in one for one in prepared())

    def test_are_not_without_end(self, unit, tenant, monkeypatch):
        monkeypatch.setattr(preparing, "MOST_PREPARED", len(prepared()))
        new = statements.prepare(select(Tenant.slug).where(Tenant.id == bindparam("id")))

        assert [statements.scalar(new, {"id": tenant.id}) for _ in range(3)] == [tenant.slug] * 3
        assert [one for one in prepared() if "tenants.slug" in one.partition("WHERE")[0]] == []


@contextmanager
def owner(instance):
    """The database's owner, with no transaction around statements."""
    place = {"host": str(instance.sockets), "user": SUPERUSER, "dbname": DATABASE}
    with closing(psycopg2.connect(**place)) as session, session.cursor() as cursor:
        session.autocommit = True
        yield cursor


def prepared() -> list[str]:
    """What this transaction's connection has prepared; PostgreSQL shows the whole messages."""
    found = db.session.execute(text("SELECT name, statement FROM pg_prepared_statements"))
    return [message.split(f"PREPARE {name} AS ")[1].split(";")[0] for name, message in found]


class TestListeners:
    def test_hear_of_reads_and_writes(self, unit, tenant):
        heard = []
        note = lambda _connection, _cursor, statement, *_: heard.append(statement)  # noqa: E731
        event.listen(db.engine, "before_cursor_execute", note)
        try:
            queries.lock_row(Tenant, tenant.id).assign({"name": "After"})
        finally:
            event.remove(db.engine, "before_cursor_execute", note)

        assert [statement.split()[0] for statement in heard] == ["SELECT", "UPDATE"]


class TestConnections:
    def test_are_in_utc_whatever_the_role_or_a_pooler_says(self, instance):
        place = f"host={instance.sockets} user={SUPERUSER} dbname={DATABASE}"
        opened = connections.bounded_by(5)(f"{place} options='-c timezone=Europe/Oslo'")
        with closing(opened), opened.cursor() as cursor:
            cursor.execute("SELECT '2026-01-01 00:00+00'::timestamptz")
            (moment,) = cursor.fetchone()

        assert moment.isoformat() == "2026-01-01T00:00:00+00:00"

    def test_are_taken_by_who_asks_something(self, app):
        with app.app_context(), transactions.transaction():
            taken = db.engine.pool.checkedout()
            statements.first(text("SELECT 1"))

            assert db.engine.pool.checkedout() == taken + 1

    def test_read_ids_that_are_none(self, unit, tenant):
        assert statements.first(text("SELECT NULL::uuid AS a, id FROM tenants")) == (
            None,
            tenant.id,
        )
        assert statements.scalars(select(AuditEvent)) == []

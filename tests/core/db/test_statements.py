"""Statements: their rows, their values, their names, and who may watch them."""

import psycopg2.errors
import pytest
from sqlalchemy import ARRAY, Uuid, any_, bindparam, func, literal, select, text

from app.core.db import tenancy
from app.core.db.queries import get_row
from app.core.db.retries import run
from app.core.db.statements import Statement
from app.core.db.transactions import transaction
from app.extensions import Model
from app.memberships.models import Membership
from app.tenants.models import Tenant
from app.users.models import User
from tests.factories import create_member, create_tenant

FIND = Statement("tests.find", select(Tenant).where(Tenant.id == bindparam("id")))


@pytest.fixture
def tenant(app):
    return create_tenant(name="Before")


@pytest.fixture
def unit(app):
    """A transaction that sees every tenant."""
    with app.app_context(), transaction() as opened:
        tenancy.enter(tenancy.PLATFORM)
        yield opened


class TestRows:
    def test_of_a_model_have_its_columns(self, unit, tenant):
        found = FIND.first(id=tenant.id)

        assert found == tenant
        assert isinstance(found, Tenant)
        assert type(found) is type(tenant) is type(get_row(Tenant, tenant.id)) is Tenant.row_class
        assert repr(found).startswith("Tenant(idp_org_id=")
        assert found._fields == tuple(Tenant.__table__.columns.keys())

    def test_of_each_model_have_the_columns_in_the_order_of_a_select(self, app):
        for mapper in Model.registry.mappers:
            model = mapper.class_
            selected = [column.name for column in select(model).exported_columns]
            assert selected == list(model.row_class._fields), model

    def test_of_several_models_are_nested(self, app):
        tenant = create_tenant()
        user, membership, _ = create_member(tenant)
        both = Statement(
            "tests.both",
            select(Membership, User, func.length(User.email).label("size"))
            .join(User, User.id == Membership.user_id)
            .where(Membership.tenant_id == bindparam("tenant_id")),
        )

        with app.app_context(), transaction():
            tenancy.enter(tenancy.PLATFORM)
            (row,) = both.all(tenant_id=tenant.id)

        assert row == (membership, user, len(user.email))
        assert (row.Membership, row.User.email) == (membership, user.email)
        assert (type(row.Membership), type(row.User)) == (Membership.row_class, User.row_class)

    def test_that_are_not_there_are_none(self, unit):
        nothing = Statement("tests.nothing", select(Tenant.id).where(literal(False)))

        assert (nothing.first(), nothing.scalar(), nothing.all()) == (None, None, [])
        with pytest.raises(LookupError):
            nothing.one()


class TestValues:
    def test_of_the_statement_itself_stay(self, unit, tenant):
        named = lambda name: Statement(  # noqa: E731
            "tests.named",
            select(Tenant.id).where(Tenant.name == name, Tenant.id == bindparam("id")),
        )
        right, wrong = named("Before"), named("100% wrong")

        for _ in range(4):
            assert right.scalar(id=tenant.id) == tenant.id
            assert wrong.scalar(id=tenant.id) is None

    def test_may_be_lists(self, unit, tenant):
        other = create_tenant()
        any_of = Statement(
            "tests.any_of",
            select(Tenant.id)
            .where(Tenant.id == any_(bindparam("ids", type_=ARRAY(Uuid))))
            .order_by(Tenant.id),
        )

        assert any_of.scalars(ids=[tenant.id, other.id]) == sorted([tenant.id, other.id])
        assert any_of.scalars(ids=[]) == []


class TestNames:
    def test_stand_in_the_text_that_postgresql_sees(self, unit, tenant):
        running = Statement(
            "tests.running", text("SELECT query FROM pg_stat_activity WHERE pid = pg_backend_pid()")
        )

        assert "/* tests.running */" in running.scalar()
        for _ in range(4):
            unit.execute("SELECT pg_stat_clear_snapshot()")
            seen = running.scalar()
        assert seen.startswith("EXECUTE tests_running_")


class TestFaults:
    def test_show_at_their_statement(self, app, tenant):
        again = Statement(
            "tests.again",
            text("INSERT INTO platform_admins (subject, created_at) VALUES ('a', now())"),
        )

        def work():
            again.execute()
            again.execute()

        with app.app_context(), pytest.raises(psycopg2.errors.UniqueViolation):
            run(work)

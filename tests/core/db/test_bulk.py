"""Inserting and changing many rows by one statement."""

from __future__ import annotations

from uuid import uuid4

import pytest
from psycopg2.errors import UniqueViolation

from app.core.db.bulk import inserts_in_one_statement, update_rows, write_keys
from app.core.db.queries import Change, insert_row
from app.core.db.transactions import RowChanged
from app.memberships.models import Membership
from app.search.models import SearchTerm
from app.tenants.models import Tenant
from app.users.models import User
from tests import database
from tests.database import platform_transaction
from tests.factories import create_tenant, create_user
from tests.messages import sent_messages


@pytest.fixture
def users(app):
    """Three users of two tenants."""
    tenants = create_tenant(), create_tenant()
    return [create_user(tenants[number % 2], first_name=f"Name {number}") for number in range(3)]


def update(users, *values, **options):
    with platform_transaction(), sent_messages() as messages:
        return update_rows(User, list(zip(users, values, strict=True)), **options), messages


def stored(user):
    return database.row(User, id=user.id)


class TestUpdateRows:
    def test_gives_each_row_its_values_by_one_statement(self, users):
        values = [{"first_name": name, "meta_data": {"name": name}} for name in "ABC"]

        results, messages = update(users, *values, actor_id="system:job")

        assert messages == ["users.update_many"]
        for user, value, (row, change) in zip(users, values, results, strict=True):
            assert row == stored(user)
            assert (row.first_name, row.meta_data) == (value["first_name"], value["meta_data"])
            assert (row.version, row.updated_by_user_id) == (2, "system:job")
            assert change == Change({name: getattr(user, name) for name in value}, value)

    def test_leaves_rows_that_have_the_values_already(self, users):
        values = [{"first_name": "New"}, {"first_name": users[1].first_name}, {"first_name": "New"}]

        results, _ = update(users, *values)

        assert [change is None for _, change in results] == [False, True, False]
        assert results[1][0] is users[1]
        assert [stored(user).version for user in users] == [2, 1, 2]

    def test_that_changes_nothing_sends_nothing(self, users):
        _, messages = update(users, *[{"is_active": True}] * 3)

        assert messages == []

    def test_of_a_row_that_changed_meanwhile_runs_again(self, users):
        update(users[:1], {"first_name": "Meanwhile"})

        with pytest.raises(RowChanged):
            update(users, *[{"first_name": "New"}] * 3)

        assert [stored(user).first_name for user in users] == ["Meanwhile", "Name 1", "Name 2"]


class TestInsertsInOneStatement:
    def test_inserts_rows_that_refer_to_one_another_with_the_models_defaults(self, app):
        actors = {"created_by_user_id": "system:job", "updated_by_user_id": "system:job"}
        with platform_transaction(), sent_messages() as messages, inserts_in_one_statement():
            tenant = insert_row(
                Tenant, {"idp_org_id": "o1", "name": "A", "slug": "a", "plan_name": "free"}
            )
            place = {"tenant_id": tenant.id, "idp_org_id": "o1", **actors}
            nobody = {"email": "", "email_key": ""}
            users = [
                insert_row(User, {**place, **nobody, "idp_user_id": f"u{number}"})
                for number in range(2)
            ]
            members = [
                insert_row(Membership, {**place, "user_id": user.id, "role": "member"})
                for user in users
            ]

        assert messages == ["memberships_tenants_users.insert_many"]
        assert database.row(Tenant, id=tenant.id) == tenant
        assert [database.row(User, id=user.id) for user in users] == users
        assert [database.row(Membership, id=one.id) for one in members] == members
        assert (users[0].meta_data, users[0].is_active, users[0].version) == ({}, True, 1)

    def test_inserts_nothing_where_the_block_raises(self, users):
        row = users[0]._asdict() | {"id": uuid4(), "idp_user_id": "other"}

        def fail():
            with inserts_in_one_statement():
                insert_row(User, row)
                raise LookupError

        with platform_transaction(), pytest.raises(LookupError):
            fail()

        assert database.rows(User, idp_user_id="other") == []

    def test_raises_for_a_row_that_is_there_already(self, users):
        row = users[0]._asdict() | {"id": uuid4()}

        with pytest.raises(UniqueViolation), platform_transaction(), inserts_in_one_statement():
            insert_row(User, row)

    def test_inside_another_block_inserts_at_the_end_of_the_outer_one(self, users):
        row = users[0]._asdict() | {"id": uuid4(), "idp_user_id": "other"}

        with platform_transaction(), sent_messages() as messages, inserts_in_one_statement():
            with inserts_in_one_statement():
                insert_row(User, row)
            assert messages == []

        assert messages == ["users.insert"]


class TestWriteKeys:
    @pytest.fixture
    def key(self, users):
        """Call it for the key of a term of the first user."""
        return lambda term: (users[0].tenant_id, "user", term, users[0].id)

    def test_inserts_and_deletes_by_one_statement_what_may_be_done_already(self, key):
        with platform_transaction():
            write_keys(SearchTerm, added=[key("a"), key("b")])

        with platform_transaction(), sent_messages() as messages:
            write_keys(SearchTerm, added=[key("b"), key("c")], removed=[key("a"), key("x")])

        assert messages == ["search_terms.insert_many"]
        assert terms() == ["b", "c"]

    def test_of_nothing_sends_nothing(self, app):
        with platform_transaction(), sent_messages() as messages:
            write_keys(SearchTerm, added=[], removed=[])

        assert messages == []

    def test_in_a_block_the_last_call_counts_for_each_row(self, key):
        with platform_transaction():
            write_keys(SearchTerm, added=[key("a")])

        with platform_transaction(), inserts_in_one_statement():
            write_keys(SearchTerm, added=[key("b")], removed=[key("a")])
            write_keys(SearchTerm, added=[key("a")], removed=[key("b")])

        assert terms() == ["a"]


def terms():
    return sorted(row.term for row in database.rows(SearchTerm))

"""Changing many rows by one statement."""

import pytest

from app.core.db.bulk import update_rows
from app.core.db.queries import Change
from app.core.db.transactions import RowChanged
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

"""Inserting one row at once, and many rows by one statement."""

from uuid import uuid4

import pytest
from psycopg2.errors import UniqueViolation

from app.audit.models import AuditEvent
from app.core.db.writes import insert_row, writes
from app.core.errors import Conflict
from app.events.models import OutboxEvent
from app.memberships.models import Membership
from app.search.models import SearchTerm
from app.tenants.models import Tenant
from app.users.models import User
from tests import database
from tests.database import platform_transaction
from tests.factories import create_tenant, create_user
from tests.messages import sent_messages

NEW = {"idp_org_id": "org_1", "name": "New", "slug": "new", "plan_name": "free"}
CONFLICTS = {"uq_tenants_slug": Conflict}


@pytest.fixture
def user(app):
    return create_user(create_tenant(slug="taken"))


class TestInsertRow:
    def test_gives_the_row_as_it_is_stored(self, app):
        with platform_transaction():
            made = insert_row(Tenant, NEW)

        assert made == database.row(Tenant, id=made.id)
        assert (made.version, made.is_active, made.mailing_city) == (1, True, "")

    def test_refuses_unknown_columns(self, app):
        with platform_transaction(), pytest.raises(TypeError, match="no column colour"):
            insert_row(Tenant, {**NEW, "colour": "teal"})

    def test_inside_a_block_inserts_at_once(self, app):
        with platform_transaction(), sent_messages() as messages, writes():
            insert_row(Tenant, NEW)
            assert messages == ["tenants.insert"]


class TestWrites:
    def test_insert_rows_that_refer_to_one_another_with_the_models_defaults(self, app):
        actors = {"created_by_user_id": "system:job", "updated_by_user_id": "system:job"}
        with platform_transaction(), sent_messages() as messages, writes() as w:
            tenant = w.insert(Tenant, NEW)
            place = {"tenant_id": tenant.id, "idp_org_id": "org_1", **actors}
            nobody = {"email": "", "email_key": ""}
            users = [
                w.insert(User, {**place, **nobody, "idp_user_id": f"u{number}"})
                for number in range(2)
            ]
            members = [
                w.insert(Membership, {**place, "user_id": user.id, "role": "member"})
                for user in users
            ]

        assert messages == ["memberships_tenants_users.insert_many"]
        assert database.row(Tenant, id=tenant.id) == tenant
        assert [database.row(User, id=user.id) for user in users] == users
        assert [database.row(Membership, id=one.id) for one in members] == members
        assert (users[0].meta_data, users[0].is_active, users[0].version) == ({}, True, 1)

    def test_insert_into_two_tables_with_the_same_values(self, user):
        values = {
            "tenant_id": user.tenant_id,
            "actor": "cli:test",
            "action": "tenant.updated",
            "target_type": "tenant",
            "target_id": str(user.tenant_id),
            "before": {"name": "a"},
            "after": {"name": "b"},
            "type": "tenant.updated",
            "is_platform_actor": True,
        }

        with platform_transaction(), sent_messages() as messages, writes() as w:
            w.insert_into((AuditEvent, OutboxEvent), values)

        recorded, event = database.row(AuditEvent), database.row(OutboxEvent)
        assert messages == ["audit_events.insert"]
        for name in ("tenant_id", "id", "created_at", "actor", "before", "after"):
            assert getattr(recorded, name) == getattr(event, name)

    def test_insert_nothing_where_the_block_raises(self, app):
        def fail():
            with writes() as w:
                w.insert(Tenant, NEW)
                raise LookupError

        with platform_transaction(), pytest.raises(LookupError):
            fail()

        assert database.rows(Tenant, slug="new") == []

    def test_of_nothing_send_nothing(self, app):
        with platform_transaction(), sent_messages() as messages, writes() as w:
            w.change_keys(SearchTerm, added=[], removed=[])

        assert messages == []

    def test_raise_for_another_key_that_is_taken(self, user):
        with pytest.raises(UniqueViolation), platform_transaction(), writes() as w:
            w.insert(User, user._asdict() | {"id": uuid4()}, conflicts=CONFLICTS)

    def test_of_a_part_of_a_block_are_sent_at_the_end_of_the_block(self, app):
        with platform_transaction(), sent_messages() as messages, writes() as w:
            with writes(w) as part:
                part.insert(Tenant, NEW)
            assert messages == []

        assert messages == ["tenants.insert"]


class TestChangeKeys:
    @pytest.fixture
    def key(self, user):
        """Call it for the key of a term of the user."""
        return lambda term: (user.tenant_id, "user", term, user.id)

    def test_inserts_and_deletes_by_one_statement_what_may_be_done_already(self, key):
        change_keys(added=[key("a"), key("b")])

        messages = change_keys(added=[key("b"), key("c")], removed=[key("a"), key("x")])

        assert messages == ["search_terms.insert_many"]
        assert terms() == ["b", "c"]

    def test_in_a_block_the_last_call_counts_for_each_row(self, key):
        change_keys(added=[key("a")])

        with platform_transaction(), writes() as w:
            w.change_keys(SearchTerm, added=[key("b")], removed=[key("a")])
            w.change_keys(SearchTerm, added=[key("a")], removed=[key("b")])

        assert terms() == ["a"]


def change_keys(**keys):
    with platform_transaction(), sent_messages() as messages, writes() as w:
        w.change_keys(SearchTerm, **keys)
    return messages


def terms():
    return sorted(row.term for row in database.rows(SearchTerm))

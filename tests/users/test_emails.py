"""E-mail addresses of users: compared without case, and unique among a tenant's active users."""

import importlib
from contextlib import closing
from functools import partial

import pytest
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import create_engine

from app.users.emails import MAX_KEY, email_key
from app.users.models import User
from tests import database
from tests.concurrency import at_once
from tests.factories import create_member, create_tenant, create_user, platform_token
from tests.inbox.sending import all_rows
from tests.messages import sent_messages


@pytest.fixture
def token(tenant):
    return create_member(tenant, role="admin")[2]


@pytest.fixture
def create(api, token):
    def send(email, idp_user_id="new"):
        body = {"idp_user_id": idp_user_id, "email": email}
        return api.post("/v1/users", token=token, json=body)

    return send


@pytest.fixture
def update(api, token):
    def send(user, **values):
        return api.patch(f"/v1/users/{user.id}", token=token, json=values)

    return send


def code(answer):
    return answer.status_code, answer.get_json().get("code")


TAKEN = (409, "email_taken")


class TestKey:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("Ada@Example.COM", "ada@example.com"),
            ("RENÉE@acier.example", "rene\u0301e@acier.example"),
            ("ΣΊΣΥΦΟΣ@x.example", "σίσυφος@x.example"),
            ("STRASSE@x.example", "straße@x.example"),
            ("\u0345\u0300@x.example", "\u0300\u0399@x.example"),
        ],
    )
    def test_is_the_same_in_whatever_case_and_composition(self, one, other):
        assert email_key(one) == email_key(other)

    def test_tells_accents_apart_and_has_none_for_no_address(self):
        assert email_key("renee@x.example") != email_key("renée@x.example")
        assert email_key("") == ""

    def test_of_a_very_long_address_fits_into_an_index(self, tenant):
        long = "ß" * MAX_KEY

        create_user(tenant, email=long + "a")

        assert len(email_key(long + "a")) == 64
        assert email_key(long.upper() + "A") == email_key(long + "a") != email_key(long + "b")


class TestListUsers:
    def test_finds_an_address_in_whatever_case(self, api, tenant, token):
        user = create_user(tenant, email="Ada@Example.com")
        create_user(create_tenant(), email="ada@example.com")

        for email in ("ada@example.com", "ADA@EXAMPLE.COM"):
            listed = api.get("/v1/users", token=token, query_string={"email": email})
            everywhere = api.get("/v1/users", token=platform_token(), query_string={"email": email})
            assert [(row["id"], row["email"]) for row in listed.get_json()["data"]] == [
                (str(user.id), "Ada@Example.com")
            ]
            assert len(everywhere.get_json()["data"]) == 2


class TestCreateUser:
    def test_refuses_the_address_of_another_active_user_of_the_tenant(self, tenant, create):
        create_user(tenant, email="Ada@Example.com")
        create_user(tenant, email="bob@example.com", is_active=False)
        create_user(create_tenant(), email="cy@example.com")

        assert code(create("ada@example.com")) == TAKEN
        assert create("bob@example.com", "b").status_code == 201
        assert create("cy@example.com", "c").status_code == 201
        assert code(create("CY@example.com", "d")) == TAKEN
        assert [row.idp_user_id for row in all_rows(User, email="ada@example.com")] == []

    def test_says_first_that_the_person_is_there(self, create):
        create("ada@example.com", "ada")

        assert code(create("ada@example.com", "ada")) == (409, "idp_user_id_taken")

    def test_of_many_at_once_one_wins(self, create):
        emails = [f"{'ada' if n % 2 else 'ADA'}@example.com" for n in range(10)]

        answers = at_once([partial(create, email, f"u{n}") for n, email in enumerate(emails)])

        codes = [code(answer) for answer in answers]
        assert codes.count((201, None)) == 1
        assert codes.count(TAKEN) == 9

    def test_leaves_the_key_out_of_the_answer_and_the_audit_trail(self, api, create, token):
        created = create("Ada@example.com").get_json()["data"]

        (event,) = api.get("/v1/audit-events", token=token).get_json()["data"]
        assert "email_key" not in created
        assert "email_key" not in event["after"]


class TestUpdateUser:
    def test_refuses_the_address_of_another_active_user(self, tenant, update):
        create_user(tenant, email="ada@example.com")
        user = create_user(tenant, email="bob@example.com")

        refused = update(user, email="ADA@example.com")
        own_case = update(user, email="Bob@example.com")
        free = update(user, email="cy@example.com")

        assert code(refused) == TAKEN
        assert own_case.get_json()["data"]["email"] == "Bob@example.com"
        assert free.status_code == 200
        assert [row.email_key for row in all_rows(User, id=user.id)] == ["cy@example.com"]

    def test_leaves_duplicates_that_exist_alone(self, tenant, update):
        first, second = (create_user(tenant, email="ada@example.com") for _ in range(2))

        named = update(first, email="Ada@example.com", first_name="Ada")
        ended = update(second, is_active=False)
        again = update(second, is_active=True)

        assert (named.status_code, ended.status_code) == (200, 200)
        assert code(again) == TAKEN

    def test_refuses_to_activate_a_user_whose_address_another_has(self, tenant, update):
        inactive = create_user(tenant, email="ADA@example.com", is_active=False)
        create_user(tenant, email="ada@example.com")

        refused = update(inactive, is_active=True)
        moved = update(inactive, is_active=True, email="other@example.com")

        assert code(refused) == TAKEN
        assert moved.status_code == 200

    def test_of_a_change_an_activation_and_a_creation_at_once_one_wins(
        self, tenant, create, update
    ):
        inactive = create_user(tenant, email="ada@example.com", is_active=False)
        other = create_user(tenant)

        answers = at_once(
            [
                lambda: create("ADA@example.com"),
                lambda: update(inactive, is_active=True),
                lambda: update(other, email="Ada@example.com"),
            ]
        )

        codes = [code(answer) for answer in answers]
        assert codes.count(TAKEN) == 2

    def test_of_the_address_sends_six_messages(self, tenant, token, update):
        user = create_user(tenant)

        with sent_messages() as messages:
            update(user, email="ada@example.com")

        assert messages == [
            "auth.authenticate_user",
            "users.lock",
            "users.update",
            "users.lock_emails",
            "audit_events_event_outbox_search_terms.insert_many",
            "COMMIT",
        ]


class TestMigration:
    def test_gives_the_users_that_exist_the_key_of_their_address(self, app, tenant, monkeypatch):
        migration = importlib.import_module("migrations.versions.0012_tenant_meta_data")
        monkeypatch.setattr(migration, "BATCH", 2)
        emails = ["Ada@Example.com", "RENÉE@acier.example", "", "bob@example.com", "Ł@x.example"]
        users = [create_user(tenant, email=email, email_key="old") for email in emails]
        engine = create_engine(app.extensions["config"].migration_database_url)

        with closing(engine.connect()) as connection:
            with Operations.context(MigrationContext.configure(connection)):
                migration.write_email_keys()
            connection.commit()
        engine.dispose()

        keys = {row.id: row.email_key for row in all_rows(User)}
        assert keys == {user.id: email_key(user.email) for user in users}
        assert database.query("SELECT version FROM users WHERE version > 1") == []

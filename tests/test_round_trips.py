"""How many messages a request sends to PostgreSQL, BEGIN and COMMIT included.

Each message is a round trip. BEGIN travels with the first statement. A read sends three messages:
authentication, the row, COMMIT. A change sends two more: the row's UPDATE and its audit row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg2
import pytest
from psycopg2 import sql

from app.auth.permissions import ALL, ROLE_PERMISSIONS, TENANT, Role
from app.dev.engines.instance import APPLICATION_ROLE, DATABASE
from app.dev.engines.postgres import SUPERUSER
from app.extensions import db
from app.webhooks.providers import Receiver
from tests.changes import changes, make_world, prepare
from tests.document import find_row, operations
from tests.factories import (
    create_api_key,
    create_member,
    create_tenant,
    create_user,
)
from tests.messages import sent_messages
from tests.webhooks.sending import Sender

READ = 3
CHANGE = 6
RECEIPT = 3

CREDENTIALS = ["owner", "tenant's key", "platform token", "platform key"]
LOGGED = re.compile(r"LOG:  statement: (.*(?:\n\t.*)*)")  # further lines begin with a tab


@pytest.fixture
def world(app):
    return make_world(app)


@pytest.fixture(params=CREDENTIALS)
def credential(request, world):
    """A credential that sees the first demo tenant, and its permissions."""

    class DemoTenant:
        id = world["tenant_id"]

    match request.param:
        case "owner":
            return world["users"][0]["token"], ROLE_PERMISSIONS[Role.OWNER]
        case "tenant's key":
            return create_api_key(DemoTenant, TENANT), TENANT
        case "platform token":
            return world["token"], ALL
        case "platform key":
            return create_api_key(None, ALL), ALL


def is_permitted(operation, permissions):
    if operation.is_for_the_platform and permissions is not ALL:
        return False
    return operation.permission in permissions


class TestEveryRead:
    def test_of_one_row_sends_three_messages(self, app, api, world, credential):
        token, permissions = credential
        wrong, count = [], 0
        document = app.test_client().get("/openapi.json").get_json()
        for one in operations(document):
            if one.is_change or not one.names_a_row or not is_permitted(one, permissions):
                continue
            path = one.path_of(find_row(api, one, world["tenant_id"], world["token"]))
            for headers in ({}, {"If-None-Match": '"1"'}):
                with sent_messages() as messages:
                    answer = api.get(path, token=token, headers=headers)
                assert answer.status_code in (200, 304), (one.name, answer.text)
                if len(messages) > READ:
                    wrong.append((one.name, messages))
            count += 1

        assert wrong == []
        assert count > 6

    def test_of_a_list_sends_three_messages(self, app, api, world, credential):
        token, permissions = credential
        wrong, count = [], 0
        document = app.test_client().get("/openapi.json").get_json()
        for one in operations(document):
            if one.is_change or one.names_a_row or one.permission is None:
                continue
            if not is_permitted(one, permissions):
                continue
            query = {
                **one.query,
                **({"tenant_id": world["tenant_id"]} if one.takes_a_tenant else {}),
            }
            with sent_messages() as messages:
                answer = api.get(one.path, token=token, query_string=query)
            assert answer.status_code == 200, (one.name, answer.text)
            if len(messages) > READ:
                wrong.append((one.name, messages))
            count += 1

        assert wrong == []
        assert count > 6


class TestEveryPatch:
    def test_sends_six_messages_at_most(self, app, api, world, credential):
        token, permissions = credential
        wrong, count = [], 0
        for one in changes(app):
            if one.method != "patch" or not is_permitted(one, permissions):
                continue
            send = prepare(api, world, one)
            with sent_messages() as messages:
                answer = send(token=token)
            assert answer.status_code == 200, (one.name, answer.text)
            if len(messages) > CHANGE:
                wrong.append((one.name, messages))
            count += 1

        assert wrong == []
        assert count > 6


class TestUsers:
    @pytest.fixture
    def tenant(self, app):
        return create_tenant()

    @pytest.fixture
    def token(self, tenant):
        return create_member(tenant, role="owner")[2]

    def test_a_read_authenticates_selects_and_commits(self, api, tenant, token):
        path = f"/v1/users/{create_user(tenant).id}"

        with sent_messages() as messages:
            api.get(path, token=token)

        assert messages == ["auth.authenticate_user", "users.get", "COMMIT"]

    def test_a_change_also_updates_and_records(self, api, tenant, token):
        path = f"/v1/users/{create_user(tenant).id}"

        with sent_messages() as messages:
            api.patch(path, token=token, json={"first_name": "Ada"})

        assert messages == [
            "auth.authenticate_user",
            "users.lock",
            "users.update",
            "audit_events.insert",
            "COMMIT",
        ]

    def test_a_change_to_the_same_value_sends_no_update(self, api, tenant, token):
        path = f"/v1/users/{create_user(tenant, first_name='Ada').id}"

        with sent_messages() as messages:
            api.patch(path, token=token, json={"first_name": "Ada"})

        assert messages == ["auth.authenticate_user", "users.lock", "COMMIT"]

    def test_a_refusal_before_the_database_sends_nothing(self, api, app):
        with sent_messages() as messages:
            assert api.get("/v1/users").status_code == 401

        assert messages == []


class TestReceipt:
    @pytest.fixture
    def sender(self, app, monkeypatch):
        return Sender(app, monkeypatch)

    def test_sends_three_messages_at_most(self, sender):
        for body, message_id in (
            ({"type": "a"}, "m1"),
            ({"type": "b"}, "m2"),
            ({"type": "b"}, "m2"),
        ):
            with sent_messages() as messages:
                answer = sender.post("standard_webhooks", body, message_id=message_id)

            assert answer.status_code == 200, answer.text
            assert len(messages) <= RECEIPT, messages

    def test_of_a_batch_sends_three_messages_at_most(self, sender):
        body = [{"event": "delivered", "email": "a@b.co", "sg_event_id": str(n)} for n in range(9)]

        with sent_messages() as messages:
            answer = sender.post("standard_webhooks", body, receiver=Receiver.EMAIL)

        assert answer.status_code == 200, answer.text
        assert len(messages) <= RECEIPT, messages


class TestWhatPostgresReceives:
    """PostgreSQL's own log of the statements that the application's role sends."""

    @pytest.fixture
    def received(self, app, instance) -> Iterator[Callable]:
        """A context of the messages that PostgreSQL receives in its block."""
        session = psycopg2.connect(host=str(instance.sockets), user=SUPERUSER, dbname=DATABASE)
        session.autocommit = True
        set_logging(session, "SET log_statement = 'all'")
        close_pool(app)
        yield lambda: logged_statements(instance.log("postgres"))
        set_logging(session, "RESET log_statement")
        close_pool(app)
        session.close()

    def check(self, received, send):
        """Send twice, so that the second time uses an open connection; judge the second."""
        send()
        with received() as messages, sent_messages() as names:
            answer = send()

        assert 200 <= answer.status_code < 300, answer.text
        assert messages[0].startswith("BEGIN;"), messages
        assert messages[-1] == "COMMIT", messages
        assert count_of("BEGIN", messages) == count_of("COMMIT", messages) == 1, messages
        assert len(messages) == len(names), (messages, names)

    def test_of_a_read(self, api, received):
        tenant = create_tenant()
        token = create_member(tenant)[2]
        path = f"/v1/users/{create_user(tenant).id}"

        self.check(received, lambda: api.get(path, token=token))

    def test_of_a_change(self, api, received):
        tenant = create_tenant()
        token = create_member(tenant)[2]
        path = f"/v1/users/{create_user(tenant).id}"
        names = iter(["Ada", "Augusta"])

        self.check(received, lambda: api.patch(path, token=token, json={"first_name": next(names)}))

    def test_of_a_creation_with_an_idempotency_key(self, api, received):
        token = create_member(create_tenant())[2]
        numbers = iter("12")

        def send():
            number = next(numbers)
            body = {"idp_user_id": number, "email": "ada@example.com"}
            return api.post(
                "/v1/users", token=token, json=body, headers={"Idempotency-Key": number}
            )

        self.check(received, send)

    def test_of_a_webhooks_receipt(self, app, monkeypatch, received):
        sender = Sender(app, monkeypatch)
        numbers = iter("12")

        self.check(
            received,
            lambda: sender.post("standard_webhooks", {"type": "a"}, message_id=next(numbers)),
        )


def set_logging(session, setting):
    role = sql.Identifier(APPLICATION_ROLE)
    with session.cursor() as cursor:
        cursor.execute(sql.SQL("ALTER ROLE {} ").format(role) + sql.SQL(setting))


def close_pool(app):
    """Close the idle connections: new ones take the role's settings."""
    with app.app_context():
        db.engine.dispose()


@contextmanager
def logged_statements(log) -> Iterator[list[str]]:
    """The messages that the server logs in the block."""
    start = log.stat().st_size
    statements: list[str] = []
    yield statements
    with log.open() as lines:
        lines.seek(start)
        statements += LOGGED.findall(lines.read())


def count_of(word, messages):
    return sum(len(re.findall(rf"\b{word}\b", message)) for message in messages)

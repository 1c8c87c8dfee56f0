"""Each request commits once, as the last of its messages: seen in what PostgreSQL receives."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg2
import pytest
from psycopg2 import sql

from app.dev.engines.instance import APPLICATION_ROLE, DATABASE
from app.dev.engines.postgres import SUPERUSER
from app.extensions import db
from tests.factories import create_user
from tests.inbox.sending import Sender
from tests.messages import sent_messages

LOGGED = re.compile(r"LOG:  statement: (.*(?:\n\t.*)*)")  # further lines begin with a tab


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

    def test_of_a_read(self, api, received, tenant, admin):
        path = f"/v1/users/{create_user(tenant).id}"

        self.check(received, lambda: api.get(path, token=admin))

    def test_of_a_change(self, api, received, tenant, admin):
        path = f"/v1/users/{create_user(tenant).id}"
        names = iter(["Ada", "Augusta"])

        self.check(received, lambda: api.patch(path, token=admin, json={"first_name": next(names)}))

    def test_of_a_creation_with_an_idempotency_key(self, api, received, admin):
        numbers = iter("12")

        def send():
            number = next(numbers)
            body = {"idp_user_id": number, "email": f"u{number}@example.com"}
            return api.post(
                "/v1/users", token=admin, json=body, headers={"Idempotency-Key": number}
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

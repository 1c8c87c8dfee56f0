"""The connection pool: how long it waits for PostgreSQL, and what it does not hand out."""

from __future__ import annotations

import socket
import time
from contextlib import closing

import psycopg2
import pytest

from app import create_app
from app.core.db.transactions import transaction
from app.extensions import db


@pytest.fixture
def silent():
    """The port of a server that accepts connections and never answers."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        yield listener.getsockname()[1]


class TestWaiting:
    def test_for_a_server_that_does_not_answer_ends_in_time(self, environment, silent):
        url = f"postgresql://app@127.0.0.1:{silent}/app"
        app = create_app({**environment, "DATABASE_URL": url, "DB_CONNECT_TIMEOUT": "1"})
        started = time.monotonic()

        unanswered = pytest.raises(psycopg2.OperationalError, match="did not answer")
        with app.app_context(), transaction() as opened, unanswered:
            opened.execute("SELECT 1")

        assert time.monotonic() - started < 5

    def test_is_not_limited_outside_the_pool(self, environment, app):
        limited = create_app({**environment, "DB_STATEMENT_TIMEOUT": "1"})
        url = app.extensions["config"].migration_database_url

        with limited.app_context():
            own = psycopg2.connect(url.replace("+psycopg2", ""))
            with closing(own), own.cursor() as cursor:
                cursor.execute("SELECT pg_sleep(3.5), 1")
                assert cursor.fetchone()[1] == 1


class TestCheckout:
    def test_replaces_a_connection_with_an_open_transaction(self, app):
        with app.app_context():
            db.engine.dispose()
            stray = db.engine.raw_connection()
            stray.cursor().execute("BEGIN")
            left = stray.get_backend_pid()
            stray.close()

            with transaction() as opened:
                opened.execute("SELECT 1")
                taken = opened.cursor.connection.get_backend_pid()

        assert taken != left

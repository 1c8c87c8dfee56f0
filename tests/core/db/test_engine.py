"""The connection pool: how long it waits for PostgreSQL, and what it does not hand out."""

import socket
import time
from contextlib import closing

import psycopg2
import pytest
from sqlalchemy import NullPool, create_engine, text

from app import create_app
from app.config import load_config
from app.core.db.engine import limit_connecting
from app.core.db.transactions import transaction
from app.dev.engines.instance import APPLICATION_ROLE, DATABASE, OWNER_ROLE
from app.dev.engines.postgres import connect
from app.extensions import db
from tests.ports import free_port


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


class TestHosts:
    """Of the hosts that the URL lists."""

    def test_one_that_does_not_answer_delays_only_the_first_connection(
        self, environment, instance, silent
    ):
        url = f"postgresql:///{DATABASE}?user={APPLICATION_ROLE}"
        listed = f"{url}&host=127.0.0.1,{instance.sockets}&port={silent},5432"
        app = create_app({**environment, "DATABASE_URL": listed, "DB_CONNECT_TIMEOUT": "2"})

        with app.app_context():
            seconds = []
            for _ in range(2):
                started = time.monotonic()
                with transaction() as opened:
                    opened.execute("SELECT 1")
                seconds.append(time.monotonic() - started)
                db.engine.dispose()

        assert seconds[0] >= 2 > seconds[1]

    def test_the_owner_uses_the_first_that_answers(self, environment, instance, silent):
        url = f"postgresql:///{DATABASE}?user={OWNER_ROLE}"
        listed = f"{url}&host=127.0.0.1,{instance.sockets}&port={silent},5432"
        settings = {"MIGRATION_DATABASE_URL": listed, "DB_CONNECT_TIMEOUT": "1"}
        config = load_config({**environment, **settings})
        engine = create_engine(config.migration_database_url, poolclass=NullPool)
        limit_connecting(engine, config)

        with engine.connect() as connected:
            assert connected.scalar(text("SELECT current_user FROM pg_sleep(2)")) == OWNER_ROLE

    def test_none_is_used_that_accepts_no_writes(self, environment, instance):
        session = connect(instance, "postgres")
        database = "standby"
        with closing(session), session.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {database}")
            cursor.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
        listed = f"postgresql:///{database}?user={APPLICATION_ROLE}&host=127.0.0.1,"
        closed = free_port()
        app = create_app(
            {**environment, "DATABASE_URL": f"{listed}{instance.sockets}&port={closed},5432"}
        )

        refused = pytest.raises(psycopg2.OperationalError, match=r"refused[^;]*; .*read-only")
        with app.app_context(), transaction() as opened, refused:
            opened.execute("SELECT 1")


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

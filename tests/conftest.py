"""The tests' own PostgreSQL and Redis, real and private, and a clean database for each test."""

import gc
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import partial, partialmethod
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from flask import Flask
from flask.testing import FlaskClient
from psycopg2 import sql
from psycopg2.extensions import cursor
from redis import Redis
from redis.exceptions import RedisError
from werkzeug.serving import make_server
from werkzeug.test import TestResponse

from app import create_app
from app.core.db import prepared
from app.core.http.rate_limit import EXTENSION
from app.core.jobs import signals
from app.dev.engines.instance import DATABASE, Instance
from app.dev.engines.postgres import SUPERUSER, connect
from app.dev.engines.sharing import engines
from app.dev.environment import development_environment
from app.events import positions
from app.extensions import db
from app.tenants.models import Tenant
from tests import factories, migrated
from tests.document import operation_of
from tests.inbox.sending import Sender

IN_A_BROWSER = "tests/console/test_browser.py"
LONGEST = ("test_browser.py", "test_packages.py", "test_values.py")
# The many processes of the tests read what the first of them has compiled.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
prepared.THRESHOLD = 2  # each statement is tested both ways: in full, and prepared
signals.PAUSE = 0  # no test waits for the signals of another
# Races need more connections than a server process has.
TEST_SETTINGS = {"RATELIMIT_ENABLED": "0", "LOG_LEVEL": "WARNING", "DB_POOL_SIZE": "8"}


gc.disable()  # until all tests are found: collections would take a third of that time


def pytest_configure(config: pytest.Config) -> None:
    """Let all test processes have copies of one migrated database."""
    if migrated.VARIABLE not in os.environ:  # not in a process of xdist
        config.add_cleanup(partial(shutil.rmtree, migrated.share_one()))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the files by name, so that those of one folder, which often wait alike, are apart.

    The longest come first. At the end, one of them would be the only one that still runs.
    """
    items.sort(key=lambda item: (item.path.name not in LONGEST, item.path.name))


def pytest_collection_finish() -> None:
    """Exclude everything that exists now from later garbage collections, which are as rare as in a
    web process.
    """
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)
    gc.enable()


@pytest.hookimpl(optionalhook=True)  # xdist may be switched off
def pytest_xdist_auto_num_workers() -> int:
    """Two test processes more than cores, as many tests wait for processes that they started."""
    return len(os.sched_getaffinity(0)) + 2


@pytest.fixture(scope="session")
def instance() -> Iterator[Instance]:
    """Private engines of this test session, in a folder of their own."""
    folder = Path(tempfile.mkdtemp(prefix="controlplane-tests-"))
    folder.chmod(0o755)  # the engines' account must get in where root runs the tests
    migrated.prepare(folder)
    with engines(folder, durable=False):
        yield Instance.at(folder)
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def environment(instance: Instance) -> dict[str, str]:
    """The whole configuration of the service under test."""
    return {**development_environment({"INSTANCE_DIR": str(instance.folder)}), **TEST_SETTINGS}


@pytest.fixture(scope="session")
def app(environment: Mapping[str, str]) -> Iterator[Flask]:
    """The application on a migrated, empty database."""
    app = create_app(environment)
    factories.bind(app)
    yield app
    with app.app_context():
        db.engine.dispose()


@pytest.fixture(scope="session")
def clean(app: Flask, instance: Instance) -> Iterator[Any]:
    """Call it to empty every table and Redis; roles that a migration added come back."""
    session = psycopg2.connect(
        host=str(instance.sockets), user=SUPERUSER, dbname=DATABASE, options="-c lock_timeout=10s"
    )
    session.autocommit = True
    redis = Redis.from_url(instance.redis_url)
    with session.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")  # foreign keys in any order
        cursor.execute(
            "SELECT string_agg(format('DELETE FROM %I;', tablename), ' ') FROM pg_tables"
            " WHERE schemaname = 'public' AND tablename <> 'alembic_version'"
        )
        # For tables that are nearly empty this is quicker than TRUNCATE, and its plans are kept.
        empty_all = cursor.fetchone()[0]
        cursor.execute("CREATE TEMP TABLE templates AS SELECT * FROM roles WHERE tenant_id IS NULL")
        again = "INSERT INTO roles SELECT * FROM pg_temp.templates;"
        body = sql.Literal(f"BEGIN {empty_all} {again} END")
        define = sql.SQL("CREATE FUNCTION pg_temp.empty() RETURNS void LANGUAGE plpgsql AS {}")
        cursor.execute(define.format(body))

        def empty() -> None:
            cursor.execute("SELECT pg_temp.empty()")
            redis.flushdb()

        yield empty
    session.close()


@pytest.fixture(autouse=True)
def _clean_afterwards(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever a test has stored is gone before the next one."""
    empty = request.getfixturevalue("clean") if "app" in request.fixturenames else None
    yield
    if empty is not None:
        empty()


class Api:
    """Requests as a client with a credential sends them, each on its own.

    Each code that is answered has to be documented for the operation.
    """

    def __init__(self, app: Flask) -> None:
        self._app = app

    def request(
        self,
        method: str,
        path: str,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        **options: Any,
    ) -> TestResponse:
        """Send one request; ``options`` are werkzeug's (``json``, ``data``, ``query_string`` …)."""
        sent = dict(headers or {})
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        answer = self._app.test_client().open(path, method=method, headers=sent, **options)
        code = (answer.get_json(silent=True) or {}).get("code") if answer.is_json else None
        if code is not None:
            assert code in operation_of(self._app, method, answer.request.path).codes
        return answer

    def sequence(self) -> int:
        """Give a position to every event, as the sequencer does; their number."""
        with self._app.app_context():
            return sum(iter(positions.sequence, 0))

    get = partialmethod(request, "GET")
    post = partialmethod(request, "POST")
    put = partialmethod(request, "PUT")
    patch = partialmethod(request, "PATCH")
    delete = partialmethod(request, "DELETE")


@pytest.fixture
def api(app: Flask) -> Api:
    """``api.get(path, token=…)`` and so on."""
    return Api(app)


@pytest.fixture
def tenant(app: Flask) -> Tenant:
    return factories.create_tenant()


@pytest.fixture
def owner(tenant: Tenant) -> str:
    """The token of an owner of ``tenant``."""
    return factories.create_member(tenant, role="owner")[2]


@pytest.fixture
def admin(tenant: Tenant) -> str:
    """The token of an admin of ``tenant``."""
    return factories.create_member(tenant, role="admin")[2]


@pytest.fixture
def with_limits(app: Flask, environment: Mapping[str, str]) -> Iterator[Callable[..., Flask]]:
    """Call it for an application with rate limits, as it were in another process.

    Nothing is left to be exchanged when the test ends.
    """
    made: list[Flask] = []

    def make(**settings: str) -> Flask:
        made.append(create_app({**environment, "RATELIMIT_ENABLED": "1", **settings}))
        return made[-1]

    yield make
    for one in made:
        with suppress(RedisError):
            one.extensions[EXTENSION].counts.exchange()


@pytest.fixture
def without_redis(app: Flask, environment: Mapping[str, str]) -> Iterator[Flask]:
    """The application where Redis is unavailable."""
    broken = create_app({**environment, "REDIS_URL": "unix:///nowhere/redis.sock"})
    yield broken
    with broken.app_context():
        db.engine.dispose()


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


@pytest.fixture
def sender(app: Flask, monkeypatch: pytest.MonkeyPatch) -> Sender:
    """Posts events as providers do."""
    return Sender(app, monkeypatch)


@pytest.fixture
def superuser(app: Flask, instance: Instance) -> Iterator[cursor]:
    """Sees and changes every row, which the application's role may not."""
    with closing(connect(instance)) as session, session.cursor() as opened:
        yield opened


@pytest.fixture(scope="session")
def base_url(app: Flask) -> Iterator[str]:
    """The service at an address, as programs see it that run in processes of their own."""
    with serving(app) as url:
        yield url


@contextmanager
def serving(app: Flask) -> Iterator[str]:
    """An application at an address."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests of the console ran in a browser."""
    counts = {
        outcome: sum(
            IN_A_BROWSER in report.nodeid and report.when in ("setup", "call")
            for report in terminalreporter.getreports(outcome)
        )
        for outcome in ("passed", "failed", "skipped")
    }
    if any(counts.values()):
        said = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
        terminalreporter.write_line(f"The console in Chromium: {said}")

"""The service as it runs in production, on engines of its own that can be stopped and frozen."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
from flask import Flask

from app import create_app
from app.dev.engines.instance import Instance
from app.dev.engines.postgres import connect
from app.dev.engines.server import Server
from app.dev.engines.sharing import Engines
from app.dev.environment import development_environment
from app.dev.processes import PROJECT
from app.extensions import db
from tests import factories, migrated
from tests.ports import free_port

SECRET = "whsec_dGhpcyBpcyBhIHNlY3JldCBmb3IgdGVzdHMgb25seQ=="
STATEMENT_TIMEOUT = 1
REDIS_TIMEOUT = 1
WORKERS, THREADS = 2, 4
SETTINGS = {
    "LOG_LEVEL": "INFO",
    "WEB_PROCESSES": str(WORKERS),
    "DB_POOL_SIZE": str(THREADS),
    "DB_POOL_TIMEOUT": "2",
    "DB_CONNECT_TIMEOUT": "2",
    "DB_STATEMENT_TIMEOUT": str(STATEMENT_TIMEOUT),
    "REDIS_TIMEOUT": str(REDIS_TIMEOUT),
    "RATELIMIT_ENABLED": "1",
    "RATELIMIT_DEFAULT": "1000000/minute",
    "RATELIMIT_FAILED_AUTH": "1000000/minute",
    "IDP_WEBHOOK_SECRETS": f"standard_webhooks:{SECRET}",
    "EMAIL_WEBHOOK_SECRETS": f"standard_webhooks:{SECRET}",
    "WEBHOOK_SECRETS_STRIPE": SECRET,
}


class Installation:
    """Engines, a migrated database, gunicorn; each process can be handled by itself."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self.instance = Instance.at(folder)
        self.engines = Engines.of(self.instance, durable=False)
        self.postgres, self.redis = self.engines
        self.port = free_port()
        self.log = folder / "service.log"
        self.environment = {
            **development_environment({"INSTANCE_DIR": str(folder)}),
            **SETTINGS,
            **settings,
        }
        self.app: Flask
        self.gunicorn: subprocess.Popen[bytes]

    def run(self, *command: str, **settings: str) -> subprocess.Popen[bytes]:
        """Start a program of the service; it writes to :attr:`log`."""
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", *command],
                env={**os.environ, **self.environment, **settings},
                cwd=PROJECT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def logged(self) -> list[str]:
        return self.log.read_text(errors="replace").splitlines()

    def events(self, name: str) -> list[dict[str, Any]]:
        """The log's lines of one event."""
        lines = (json.loads(line) for line in self.logged() if line.startswith("{"))
        return [line for line in lines if line.get("event") == name]

    @contextmanager
    def frozen(self, engine: Server) -> Iterator[None]:
        """While the block runs, the engine is there and does nothing."""
        processes = processes_of(engine)
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.suspend()
        try:
            yield
        finally:
            for process in reversed(processes):
                with suppress(psutil.NoSuchProcess):
                    process.resume()

    @contextmanager
    def stopped(self, engine: Server) -> Iterator[None]:
        """While the block runs, the engine is not there."""
        engine.stop()
        try:
            yield
        finally:
            engine.start()

    @contextmanager
    def superuser(self) -> Iterator[Any]:
        """A cursor of PostgreSQL's superuser."""
        with closing(connect(self.instance)) as session, session.cursor() as cursor:
            yield cursor

    @contextmanager
    def served(
        self, port: int, *options: str, **settings: str
    ) -> Iterator[subprocess.Popen[bytes]]:
        """gunicorn at ``port`` while the block runs; ``options`` and settings are its own."""
        command = ("gunicorn", "wsgi:app", f"--bind=127.0.0.1:{port}", *options)
        process = self.run(*command, **settings)
        try:
            deadline = time.monotonic() + 60
            while not is_open(port):
                assert process.poll() is None, self.logged()[-5:]
                assert time.monotonic() < deadline, self.logged()[-5:]
                time.sleep(0.05)
            yield process
        finally:
            end(process)


@contextmanager
def installation(**settings: str) -> Iterator[Installation]:
    """A running installation with an empty database; ``settings`` go before :data:`SETTINGS`."""
    folder = Path(tempfile.mkdtemp(prefix="controlplane-hostile-"))
    folder.chmod(0o755)  # the engines' account must get in where root runs this
    migrated.prepare(folder)
    found = Installation(folder, settings)
    try:
        found.engines.start()
        found.app = create_app({**found.environment, "LOG_LEVEL": "WARNING"})
        with found.served(found.port) as found.gunicorn:
            yield found
        with found.app.app_context():
            db.engine.dispose()
    finally:
        found.engines.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def bound(app: Flask) -> Iterator[None]:
    """Let the factories make their rows in ``app``'s database while the block runs."""
    with app.app_context():
        db.engine.dispose()  # the engines may have been restarted since these connections
    with factories.bound(app):
        yield


def end(process: subprocess.Popen[bytes], seconds: float = 10) -> None:
    """Ask for a quick end, and SIGKILL one that does not come to it."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def processes_of(engine: Server) -> list[psutil.Process]:
    first = engine.process()
    assert first is not None
    return [first, *first.children(recursive=True)]


def is_open(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False

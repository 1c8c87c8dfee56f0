"""Where the measuring happens: private engines with durable commits, migrated and filled."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

import psycopg2
from psycopg2.extensions import connection

from app.dev.engines.instance import DATABASE, Instance
from app.dev.engines.postgres import SUPERUSER
from app.dev.engines.sharing import engines
from app.dev.environment import development_environment
from benchmarks.dataset import fill

PROJECT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Stage:
    """Running engines with the data loaded, and the environment of a server that uses them."""

    instance: Instance
    environment: dict[str, str]
    tenants: int

    def connect(self) -> connection:
        """A connection that row-level security does not bind."""
        return connect(self.instance)

    def behind(self, folder: Path) -> Stage:
        """The same, but servers reach the engines through the sockets in ``folder``."""
        sockets = quote(str(self.instance.sockets), safe="")
        changed = {
            "DATABASE_URL": self.environment["DATABASE_URL"].replace(
                sockets, quote(str(folder), safe="")
            ),
            "REDIS_URL": f"unix://{folder / self.instance.redis_socket.name}?db=0",
        }
        return replace(self, environment=self.environment | changed)

    def postmaster(self) -> int:
        """The process id of PostgreSQL, whose children are its sessions."""
        return int((self.instance.postgres_data / "postmaster.pid").read_text().split()[0])


@contextmanager
def stage(folder: Path, *, tenants: int, users_per_tenant: int = 100) -> Iterator[Stage]:
    """Engines in ``folder``, which is filled unless it already is."""
    with engines(folder):
        instance = Instance.at(folder)
        environment = {
            **_inherited(),
            **development_environment({"INSTANCE_DIR": str(folder)}),
            "RATELIMIT_ENABLED": "0",
        }
        flask(environment, "db", "upgrade")
        with closing(connect(instance)) as session:
            fill(session, tenants=tenants, users_per_tenant=users_per_tenant)
        _read_once(instance.postgres_data / "base")
        yield Stage(instance, environment, tenants)


def connect(instance: Instance) -> connection:
    """PostgreSQL as its superuser."""
    return psycopg2.connect(host=str(instance.sockets), user=SUPERUSER, dbname=DATABASE)


def flask(environment: dict[str, str], *words: str) -> None:
    """Run a ``flask`` command of the project; its output shows where it fails."""
    command = [sys.executable, "-m", "flask", "--app", "wsgi", *words]
    done = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"flask {' '.join(words)} failed:\n{done.stdout}{done.stderr}")


def _read_once(folder: Path) -> None:
    """Have the system hold what its memory has room for, as it would after some hours of use."""
    for file in folder.rglob("*"):
        if file.is_file():
            with file.open("rb", buffering=0) as pages:
                while pages.read(1 << 24):
                    pass


def _inherited() -> dict[str, str]:
    kept = ("PATH", "HOME", "LANG", "VIRTUAL_ENV", "TMPDIR")
    return {name: os.environ[name] for name in kept if name in os.environ}

"""One instance folder: where its servers keep their data and which addresses they have.

Everything follows from the folder's absolute path, so every process that works in the folder
finds the same servers.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import click

DATABASE = "controlplane"
OWNER_ROLE = "controlplane_owner"
APPLICATION_ROLE = "controlplane_app"

LONGEST_SOCKET_FOLDER = 80  # bytes; a socket's whole path has at most 104 (macOS), 108 on Linux
PLAIN_PATH = re.compile(r"[A-Za-z0-9/._-]+")  # PostgreSQL splits the setting at commas


class DevError(click.ClickException):
    """One sentence for the person at the terminal; a command that raises it exits with 1."""


@dataclass(frozen=True)
class Instance:
    """The paths and addresses of the instance in ``folder``, which is absolute."""

    folder: Path

    @classmethod
    def at(cls, folder: str | os.PathLike[str]) -> Instance:
        """The instance in ``folder``; a symbolic link is the same instance as its target."""
        return cls(Path(folder).expanduser().resolve())

    @property
    def tag(self) -> str:
        """A name that no other instance on this machine has."""
        return f"{DATABASE}-{hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:12]}"

    @property
    def sockets(self) -> Path:
        """The private folder of the sockets: in the instance, or in /tmp if the path is too long.

        TMPDIR does not count: it may differ between two terminals.
        """
        inside = self.folder / "run"
        if len(os.fsencode(inside)) <= LONGEST_SOCKET_FOLDER and PLAIN_PATH.fullmatch(str(inside)):
            return inside
        return Path("/tmp") / self.tag  # noqa: S108 - owner and mode are checked before use

    @property
    def redis_socket(self) -> Path:
        return self.sockets / "redis.sock"

    @property
    def redis_url(self) -> str:
        return f"unix://{self.redis_socket}?db=0"

    @property
    def postgres_data(self) -> Path:
        return self.folder / "postgres"

    def database_url(self, role: str = APPLICATION_ROLE, database: str = DATABASE) -> str:
        return f"postgresql+psycopg2://{role}@/{database}?host={quote(str(self.sockets), safe='')}"

    @property
    def port_file(self) -> Path:
        return self.folder / "port"

    def log(self, name: str) -> Path:
        return self.folder / "logs" / f"{name}.log"

    def unusable(self, fault: OSError) -> DevError:
        """The error for an operating system's ``fault`` with the folder."""
        return DevError(
            f"The instance folder {self.folder} cannot be used: {fault.strerror}"
            f" ({fault.filename}). Set INSTANCE_DIR to another one."
        )

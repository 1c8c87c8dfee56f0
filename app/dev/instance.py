"""One instance folder: where its private engines keep their data and where they are reached.

Everything here follows from the folder's absolute path, so that every process that works in the
folder finds the same engines without asking anybody.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

DATABASE = "controlplane"
OWNER_ROLE = "controlplane_owner"
APPLICATION_ROLE = "controlplane_app"

LONGEST_SOCKET_FOLDER = 80  # a socket's whole path must fit into 104 bytes (macOS), 108 on Linux
PLAIN_PATH = re.compile(
    r"[A-Za-z0-9/._-]+"
)  # PostgreSQL reads a comma as the start of another path


@dataclass(frozen=True)
class Instance:
    """The paths and addresses of the instance in ``folder``, which is absolute."""

    folder: Path

    @classmethod
    def at(cls, folder: str | os.PathLike[str]) -> Instance:
        """The instance in ``folder``; symbolic links lead to the same instance as their target."""
        return cls(Path(folder).expanduser().resolve())

    @property
    def tag(self) -> str:
        """A name that no other instance on this machine has."""
        return f"{DATABASE}-{hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:12]}"

    @property
    def sockets(self) -> Path:
        """The private folder of the sockets: inside the instance, unless its path is too long.

        The other place is the same for every value of TMPDIR, or two terminals would disagree.
        """
        inside = self.folder / "run"
        if len(os.fsencode(inside)) <= LONGEST_SOCKET_FOLDER and PLAIN_PATH.fullmatch(str(inside)):
            return inside
        return Path("/tmp") / self.tag  # noqa: S108 - its owner and mode are checked before use

    @property
    def postgres_data(self) -> Path:
        return self.folder / "postgres"

    @property
    def redis_data(self) -> Path:
        return self.folder / "redis"

    @property
    def redis_socket(self) -> Path:
        return self.sockets / "redis.sock"

    @property
    def keeper_socket(self) -> Path:
        return self.sockets / "keeper.sock"

    @property
    def log_folder(self) -> Path:
        return self.folder / "logs"

    def log(self, name: str) -> Path:
        """The log file of one engine, or of their keeper."""
        return self.log_folder / f"{name}.log"

    def database_url(self, role: str = APPLICATION_ROLE, database: str = DATABASE) -> str:
        """PostgreSQL as ``role``, for SQLAlchemy."""
        return f"postgresql+psycopg2://{role}@/{database}?host={quote(str(self.sockets), safe='')}"

    @property
    def redis_url(self) -> str:
        return f"unix://{self.redis_socket}?db=0"


def database_url(folder: str | os.PathLike[str], role: str = APPLICATION_ROLE) -> str:
    """The database of the instance in ``folder``, whether it runs or not."""
    return Instance.at(folder).database_url(role)


def redis_url(folder: str | os.PathLike[str]) -> str:
    """The Redis of the instance in ``folder``, whether it runs or not."""
    return Instance.at(folder).redis_url

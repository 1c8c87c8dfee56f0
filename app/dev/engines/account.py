"""The account that the servers of an instance run as; PostgreSQL refuses to run as root."""

from __future__ import annotations

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.dev.engines.instance import DevError

UNPRIVILEGED = "nobody"


@dataclass(frozen=True)
class Account:
    """A user and a group of the operating system."""

    uid: int
    gid: int

    @property
    def popen_options(self) -> dict[str, Any]:
        """The arguments of ``subprocess.Popen`` that change to the account."""
        if os.geteuid() != 0:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    @property
    def command_prefix(self) -> list[str]:
        """For root: a user namespace, in which the process sees another user id than 0."""
        return ["unshare", "--user"] if self.uid == 0 else []

    def own(self, folder: Path) -> None:
        """Create ``folder``; it belongs to the account and nobody else may enter it."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in {self.uid, os.geteuid()}:
            raise DevError(
                f"{folder} belongs to another user. Work as that user, or set INSTANCE_DIR to"
                " another folder."
            )
        if stat.S_IMODE(found.st_mode) & 0o077:
            folder.chmod(0o700)
        if found.st_uid != self.uid:
            os.chown(folder, self.uid, self.gid)


def server_account(data: Path, programs: Path) -> Account:
    """The caller's account, unless that is root.

    Root's servers run as the owner of existing ``data``. New data belong to ``nobody``, or to
    root where ``nobody`` cannot enter the folders of the data and of the servers' ``programs``.
    """
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid())
    if data.exists():
        return Account(data.stat().st_uid, data.stat().st_gid)
    steps = [step for path in (data, programs) for step in path.parents if step.exists()]
    if not all(step.stat().st_mode & stat.S_IXOTH for step in steps):
        return Account(0, 0)
    entry = pwd.getpwnam(UNPRIVILEGED)
    return Account(entry.pw_uid, entry.pw_gid)

"""The account that the servers of an instance run as; PostgreSQL refuses to run as root."""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from app.dev.engines.instance import DevError


class Account(NamedTuple):
    """A user and a group of the operating system."""

    uid: int
    gid: int

    def launch(self, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        """Start a program as the account. A user namespace hides from it that it is root's."""
        prefix = ["unshare", "--user"] if self.uid == 0 else []
        if os.geteuid() == 0:
            options |= {"user": self.uid, "group": self.gid, "extra_groups": []}
        return subprocess.Popen([*prefix, *command], **options)  # noqa: S603 - our own command

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
    entry = pwd.getpwnam("nobody")
    return Account(entry.pw_uid, entry.pw_gid)

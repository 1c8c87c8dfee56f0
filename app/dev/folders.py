"""The folders of an instance, and the account that owns the engines' part of them."""

from __future__ import annotations

import fcntl
import os
import pwd
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.dev.faults import DevError
from app.dev.instance import Instance

UNPRIVILEGED = "nobody"


@dataclass(frozen=True)
class Account:
    """Whom root starts the engines as: PostgreSQL refuses to run as root."""

    uid: int
    gid: int
    name: str


def engine_account(instance: Instance) -> Account | None:
    """The account the engines change to; None for everybody but root.

    Data that a plain user made stays that user's when root starts the engines on it.
    """
    if os.geteuid() != 0:
        return None
    data = instance.postgres_data
    owner = data.stat() if data.exists() else None
    if owner is None or owner.st_uid == 0:
        entry = pwd.getpwnam(UNPRIVILEGED)
        return Account(entry.pw_uid, entry.pw_gid, entry.pw_name)
    return Account(owner.st_uid, owner.st_gid, str(owner.st_uid))


def prepare_folders(instance: Instance) -> None:
    """Make what is missing of the instance folder.

    Raises :class:`DevError` if the folder cannot be used.
    """
    try:
        instance.log_folder.mkdir(parents=True, exist_ok=True)
        private_folder(instance.sockets, engine_account(instance))
        private_folder(instance.redis_data, engine_account(instance))
        if instance.postgres_data.exists():
            private_folder(instance.postgres_data, engine_account(instance))
    except OSError as fault:
        raise unusable(instance.folder, fault) from None


def unusable(folder: Path, fault: OSError) -> DevError:
    """What to tell where ``folder`` cannot be an instance's."""
    return DevError(
        f"The instance folder {folder} cannot be used: {fault.strerror} ({fault.filename})."
        " Set INSTANCE_DIR to another one."
    )


def private_folder(folder: Path, account: Account | None) -> None:
    """Make ``folder`` usable by the engines' account and by nobody else."""
    uid = os.geteuid() if account is None else account.uid
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in {uid, os.geteuid()}:
        raise DevError(
            f"{folder} belongs to another user. Work as that user, or set INSTANCE_DIR to another"
            " folder."
        )
    if stat.S_IMODE(found.st_mode) & 0o077:
        folder.chmod(0o700)
    if found.st_uid != uid and account is not None:
        os.chown(folder, account.uid, account.gid)


@contextmanager
def locked(path: Path, *, seconds: float) -> Iterator[None]:
    """Hold the lock file ``path``; the kernel lets go of it however the holder ends.

    Raises :class:`DevError` after ``seconds``.
    """
    deadline = time.monotonic() + seconds
    with path.open("a") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise DevError(
                        f"Another process has held {path} for {seconds:.0f} s."
                    ) from None
                time.sleep(0.05)
        yield

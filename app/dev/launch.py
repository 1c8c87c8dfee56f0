"""Start one process so that it cannot outlive its starter, as root's stand-in where need be."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from app.dev.faults import DevError
from app.dev.folders import Account

PR_SET_PDEATHSIG = 1


def launch(
    command: Sequence[str | Path],
    *,
    account: Account | None,
    folder: Path,
    output: IO[Any],
    end_signal: signal.Signals,
) -> subprocess.Popen[bytes]:
    """Start an engine's program in ``folder``, its messages going to ``output``.

    Root's engines run as ``account``. If that account cannot enter the folders on the way (a
    checkout under /root), the program is given root's right to pass them (``CAP_DAC_OVERRIDE``).
    """
    identity: dict[str, Any] = {}
    words = [str(word) for word in command]
    if account is not None and _open_to_everybody(Path(words[0]), folder.parent):
        identity = {"user": account.uid, "group": account.gid, "extra_groups": []}
    elif account is not None:
        words = [*_pass_folders(account, folder, end_signal), *words]
    try:
        return subprocess.Popen(  # noqa: S603 - our own command
            words,
            cwd=folder,
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=end_with_parent(end_signal),
            **identity,
        )
    except (OSError, subprocess.SubprocessError) as fault:
        raise DevError(f"{words[0]} cannot be started: {fault}.") from None


def end_with_parent(end_signal: signal.Signals) -> Callable[[], Any] | None:
    """For a new child to call: the kernel sends it ``end_signal`` when its starter is gone.

    Linux only; there it covers a starter killed with SIGKILL.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(PR_SET_PDEATHSIG, int(end_signal))


def _open_to_everybody(*paths: Path) -> bool:
    return all(
        step.stat().st_mode & stat.S_IXOTH
        for path in paths
        for step in (path.resolve(), *path.resolve().parents)
    )


def _pass_folders(account: Account, folder: Path, end_signal: signal.Signals) -> list[str]:
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise DevError(
            f"PostgreSQL does not run as root, and user {account.name}, whom it runs as instead,"
            f" cannot enter {folder}. Work as a plain user, move the project to a folder that"
            " everybody may enter, or install setpriv (util-linux)."
        )
    return [
        setpriv,
        f"--reuid={account.uid}",
        f"--regid={account.gid}",
        "--clear-groups",
        "--securebits=+no_setuid_fixup",  # or access(2) would not count the capability
        "--inh-caps=+dac_override",
        "--ambient-caps=+dac_override",
        f"--pdeathsig={end_signal.name}",  # changing the user has cleared the one set before
        "--",
    ]

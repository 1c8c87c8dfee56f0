"""Processes that run together: what becomes of one that ends, hangs, or does not listen."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from app.dev import processes
from app.dev.faults import DevError
from app.dev.processes import Processes

PYTHON = [sys.executable, "-c"]
DEAF = """
import pathlib, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
pathlib.Path("deaf").touch()
time.sleep(60)
"""


@pytest.fixture
def together(tmp_path: Path) -> Iterator[Processes]:
    with Processes({}, folder=tmp_path) as found:
        yield found


class TestWatch:
    def test_says_which_one_has_ended(self, together):
        together.start("clock", [*PYTHON, "import time; time.sleep(60)"])
        together.start("bell", [*PYTHON, "raise SystemExit(3)"])

        with pytest.raises(DevError, match="The bell ended unexpectedly, with code 3"):
            together.watch(until=lambda: False)

    def test_does_not_wait_for_ever(self, together):
        together.start("clock", [*PYTHON, "import time; time.sleep(60)"])

        with pytest.raises(DevError, match="not ready within 0 s"):
            together.watch(until=lambda: False, seconds=0.1)


class TestStop:
    def test_ends_one_that_does_not_listen_by_force_with_its_children(
        self, together, tmp_path, monkeypatch
    ):
        monkeypatch.setattr(processes, "GRACE_SECONDS", 0.2)
        others = set(psutil.Process().children(recursive=True))
        together.start("deaf one", [*PYTHON, DEAF])
        together.watch(until=(tmp_path / "deaf").exists, seconds=30)
        family = set(psutil.Process().children(recursive=True)) - others

        together.stop()

        _, alive = psutil.wait_procs(family, timeout=10)
        assert len(family) == 2
        assert not [one for one in alive if one.status() != psutil.STATUS_ZOMBIE]

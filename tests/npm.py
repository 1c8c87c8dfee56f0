"""Packages of npm for tests, which a lock file pins. They are installed once, into pytest's cache."""

import contextlib
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

PACKAGES = ("package.json", "package-lock.json")
INSTALL = (
    "ci",
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    "--prefer-offline",
    "--fetch-retries=0",
    "--fetch-timeout=30000",
)


def node_with(source: Path, script: Path, cache: pytest.Cache) -> list[str]:
    """The command that runs ``script`` with the packages of the lock file in ``source``."""
    node, folder = install_packages(source, cache)
    return [node, str(shutil.copy(script, folder))]


def install_packages(source: Path, cache: pytest.Cache) -> tuple[str, Path]:
    """Node, and the folder with the packages of the lock file in ``source``.

    Skips the test without node and npm, and where npm cannot get the packages.
    """
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("needs node and npm")
    digest = hashlib.sha256(b"".join(source.joinpath(name).read_bytes() for name in PACKAGES))
    folder = cache.mkdir(f"npm-{digest.hexdigest()[:16]}")
    if not (folder / "node_modules").exists():
        _install(npm, source, folder)
    return node, folder


def _install(npm: str, source: Path, folder: Path) -> None:
    """Install the packages completely or not at all."""
    with tempfile.TemporaryDirectory(dir=folder) as fresh:
        for name in PACKAGES:
            shutil.copy(source / name, fresh)
        done = subprocess.run([npm, *INSTALL], cwd=fresh, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"npm cannot install the packages: {done.stderr.strip()[-300:]}")
        with contextlib.suppress(OSError):  # another process was faster
            Path(fresh, "node_modules").rename(folder / "node_modules")

"""The Python package in a folder that can be imported, without the functions of operations."""

import json
import shutil
from pathlib import Path

from clients.generate import generate
from tests.running.serving import PROJECT

EMPTY = {"openapi": "3.1.0", "info": {"title": "none", "version": "1"}, "paths": {}}


def assemble(folder: Path) -> Path:
    """Write ``controlplane`` below ``folder``, and return what to add to the path."""
    (folder / "openapi.json").write_text(json.dumps(EMPTY))
    generate(folder)
    package = folder / "controlplane"
    shutil.copytree(folder / "python" / "generated", package)
    shutil.copytree(PROJECT / "clients" / "python" / "controlplane", package, dirs_exist_ok=True)
    surfaces = PROJECT / "app" / "surfaces"
    shutil.copytree(surfaces / "commands", package / "commands")
    shutil.copy(surfaces / "operations.py", package)
    return folder

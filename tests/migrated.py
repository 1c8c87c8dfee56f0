"""Data folders of PostgreSQL with the migrated, empty database.

They are copies of one that the first process that needs it makes for a whole test session.
"""

import fcntl
import os
import subprocess
import tempfile
from pathlib import Path

import flask_migrate

from app import create_app
from app.dev.engines.instance import Instance
from app.dev.engines.sharing import engines
from app.dev.environment import development_environment
from app.extensions import db

VARIABLE = "MIGRATED_INSTANCE"  # the folder with the original, for all processes of the session


def share_one() -> Path:
    """Let this process and those that it starts copy one original; remove the folder afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="controlplane-migrated-"))
    folder.chmod(0o755)  # the engines' account must get in where root runs the tests
    os.environ[VARIABLE] = str(folder)
    return folder


def prepare(folder: Path) -> None:
    """Give the new instance in ``folder`` its roles and its migrated database."""
    shared = os.environ.get(VARIABLE)
    if shared is None:
        _migrate(folder)
        return
    original = Path(shared)
    with (original / "copying.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (original / "done").exists():
            _migrate(original)
            (original / "done").touch()
    data = [Instance.at(each).postgres_data for each in (original, folder)]
    folder.mkdir(exist_ok=True)
    subprocess.run(["cp", "-Rp", *data], check=True)  # keeps the owner, unlike copytree


def _migrate(folder: Path) -> None:
    environment = development_environment({"INSTANCE_DIR": str(folder), "LOG_LEVEL": "WARNING"})
    with engines(folder, durable=False):
        app = create_app(environment)
        with app.app_context():
            flask_migrate.upgrade()
            db.engine.dispose()

"""PostgreSQL and Redis of a proof's own, which can be stopped one by one."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil
from flask import Flask

from app import create_app
from app.dev.engines.instance import Instance
from app.dev.engines.sharing import Engines
from app.dev.environment import development_environment
from app.extensions import db
from tests import factories, migrated
from tests.conftest import TEST_SETTINGS


class PrivateEngines(NamedTuple):
    """Running engines with a migrated database, to whose ``app`` the factories are bound."""

    engines: Engines
    environment: dict[str, str]
    app: Flask

    def restart_postgres(self) -> None:
        self.engines.postgres.stop()
        self.engines.postgres.start()

    def crash_postgres(self) -> None:
        """Kill all its processes at once, and start it again."""
        postmaster = self.engines.postgres.process()
        postmaster.suspend()  # it starts no others
        processes = [*postmaster.children(), postmaster]
        for process in processes:
            process.kill()
        psutil.wait_procs(processes)
        self.engines.postgres.start()


@contextmanager
def private_engines(**settings: str) -> Iterator[PrivateEngines]:
    """Engines in a folder of their own, and an application with these settings."""
    folder = Path(tempfile.mkdtemp(prefix="controlplane-faults-"))
    folder.chmod(0o755)  # the engines' account must get in where root runs this
    environment = {
        **development_environment({"INSTANCE_DIR": str(folder)}),
        **TEST_SETTINGS,
        "LOG_LEVEL": "ERROR",
        "PROMETHEUS_MULTIPROC_DIR": str(folder / "metrics"),
        **settings,
    }
    migrated.prepare(folder)
    engines = Engines.of(Instance.at(folder))
    try:
        engines.start()
        app = create_app({**environment, "LOG_LEVEL": "WARNING"})  # the level of this process
        with factories.bound(app):
            yield PrivateEngines(engines, environment, app)
        with app.app_context():
            db.engine.dispose()
    finally:
        engines.stop()
        shutil.rmtree(folder, ignore_errors=True)

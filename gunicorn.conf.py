"""gunicorn's settings; `gunicorn wsgi:app` reads this file without an option.

WEB_PROCESSES, DB_POOL_SIZE and LOG_LEVEL are the service's variables, which refuses wrong values when
gunicorn loads it. The server's limits are described in docs/operations/running.md.
"""

import gc
import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path

RAM_DISK = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - only temporary files

# prometheus_client reads the variable when it is first imported, so set it before importing the app.
if not os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = RAM_DISK or tempfile.gettempdir()

from gunicorn.glogging import Logger  # noqa: E402

from app.config_values import LOG_LEVELS  # noqa: E402
from app.core.observability import logs  # noqa: E402


def number(variable, default):
    """The variable's number; the default where it is unset, or wrong and refused later."""
    text = os.environ.get(variable, "").strip()
    return int(text) if text.isdecimal() else default


class ServiceLogger(Logger):
    """gunicorn's own log lines, in the service's format."""

    def setup(self, cfg):
        level = os.environ.get("LOG_LEVEL", "").strip().upper()
        logs.configure(level if level in LOG_LEVELS else "INFO")
        self.error_log.propagate = True


logger_class = ServiceLogger
worker_class = "app.core.http.server.Worker"
# Use one process per core. Threads only run the application; the server's loop reads and writes.
workers = number("WEB_PROCESSES", default=2)
threads = number("DB_POOL_SIZE", default=4)  # a thread never waits for a connection
preload_app = True
worker_tmp_dir = RAM_DISK  # on a slow disk, a healthy process would look frozen
control_socket_disable = True
timeout = 30  # seconds without a sign of life of the server's loop, not of a request
graceful_timeout = 30
max_requests = 50_000
max_requests_jitter = 5_000


def on_starting(server):
    """Make a folder for the counters: several servers may have the same PROMETHEUS_MULTIPROC_DIR."""
    shared = os.environ["PROMETHEUS_MULTIPROC_DIR"]
    try:
        Path(shared).mkdir(mode=0o700, parents=True, exist_ok=True)
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = tempfile.mkdtemp(prefix="metrics-", dir=shared)
    except OSError as fault:
        sys.exit(f"Error: PROMETHEUS_MULTIPROC_DIR is not usable: {fault}")


def when_ready(server):
    """Collect garbage less often than by default.

    Without this and ``gc.freeze()`` in wsgi.py, PATCH subscription loses 4 % and GET user 5 % of
    throughput, and a process needs 26 MB more memory of its own.
    """
    gc.set_threshold(10_000, 20, 50)


def post_fork(server, worker):
    """Give the process new connection pools; the master keeps its own connections."""
    from app.extensions import db
    from wsgi import app

    with app.app_context():
        for engine in db.engines.values():
            engine.dispose(close=False)


def child_exit(server, worker):
    """Merge the metrics of a process that has ended, so that reading them stays fast."""
    from app.operations.process_files import merge_ended

    try:
        merge_ended(Path(os.environ["PROMETHEUS_MULTIPROC_DIR"]), worker.pid)
    except Exception:  # it would end gunicorn
        logging.getLogger(__name__).exception("metrics_not_merged")


def on_exit(server):
    """Remove the folder of the counters."""
    shutil.rmtree(os.environ["PROMETHEUS_MULTIPROC_DIR"], ignore_errors=True)

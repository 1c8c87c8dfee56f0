"""Calls of ``Limits.allow()`` in one process, which borrows its units from the service."""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from benchmarks.dataset import TENANT, row_id
from benchmarks.servers import serving
from benchmarks.stage import Stage
from benchmarks.usage import FEATURE, prepare, secret
from tests.clients.assembled import assemble

CALLS = 1_000  # between two looks at the clock


def report(stage: Stage, *, seconds: float) -> str:
    """The figures as text."""
    tenant = row_id(TENANT, 0)
    with (
        closing(stage.connect()) as session,
        serving(stage, "service") as server,
        tempfile.TemporaryDirectory() as folder,
    ):
        prepare(session, [tenant])
        sys.path.insert(0, str(assemble(Path(folder))))
        from controlplane.limits import Limits

        limits = Limits(f"http://127.0.0.1:{server.port}", secret(tenant))
        began, calls = time.perf_counter(), 0
        while time.perf_counter() < began + seconds:
            for _ in range(CALLS):
                if not limits.allow(FEATURE):
                    raise SystemExit("a call was refused")
            calls += CALLS
        took = time.perf_counter() - began
        limits.close()
        with session.cursor() as database:
            database.execute("SELECT sum(used) FROM usage_counters WHERE feature = %s", [FEATURE])
            (used,) = database.fetchone() or (0,)
    if used != calls:
        raise SystemExit(f"{calls} calls were allowed, and {used} are counted")
    return f"{calls / took:.0f} calls of allow() a second, each counted"

"""``python -m benchmarks console``: how long pages of the console take, and their size.

Pages are requests to a running service over one connection, one after the other.
"""

from __future__ import annotations

import statistics
import time
from http.client import HTTPConnection

from app import create_app
from app.auth import sessions
from app.console.assets import NAMES, get_asset
from app.core.db.transactions import transaction
from benchmarks.calls import PLATFORM_SUBJECT, add_platform_admin
from benchmarks.dataset import TENANT, USER, row_id
from benchmarks.servers import serving
from benchmarks.stage import Stage

REQUESTS, WARM_UP = 200, 20  # of each page


def report(stage: Stage) -> str:
    """A table of the pages."""
    add_platform_admin(stage)
    app = create_app({**stage.environment, "LOG_LEVEL": "ERROR"}, with_commands=False)
    with app.app_context(), transaction():
        secret = sessions.start(PLATFORM_SUBJECT, None)
    tenant = f"/console/tenants/{row_id(TENANT, 0)}"
    pages = {
        "search": "/console?q=tenant",
        "tenants": "/console/tenants",
        "a tenant": tenant,
        "its members": f"{tenant}/members",
        "its flags": f"{tenant}/flags",
        "a user": f"{tenant}/users/{row_id(USER, 0)}",
        "all users": "/console/users",
        "audit": "/console/audit",
    }
    users = stage.tenants * stage.users_per_tenant
    files = sum(len(get_asset(name).compressed) for name in NAMES)
    lines = [
        f"Milliseconds of one page among {users:,} users; the style sheets and scripts have"
        f" {files / 1000:.1f} kB, once.",
        "",
        "| page | p50 | p95 | kB |",
        "|---|--:|--:|--:|",
    ]
    headers = {"Cookie": f"console={secret}", "Accept-Encoding": "gzip"}
    with serving(stage, "service") as server:
        connection = HTTPConnection("127.0.0.1", server.port)
        for title, path in pages.items():
            lines.append(f"| {title} | {_measured(connection, path, headers)} |")
        connection.close()
    return "\n".join(lines)


def _measured(connection: HTTPConnection, path: str, headers: dict[str, str]) -> str:
    seconds, size = [], 0
    for turn in range(-WARM_UP, REQUESTS):
        started = time.perf_counter()
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        size = len(answer.read())
        if turn >= 0:
            seconds.append(time.perf_counter() - started)
        if answer.status != 200:
            raise SystemExit(f"{path}: {answer.status}")
    cuts = statistics.quantiles(seconds, n=100)
    return f"{cuts[49] * 1000:.1f} | {cuts[94] * 1000:.1f} | {size / 1000:.1f}"

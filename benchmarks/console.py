"""``python -m benchmarks console``: how long pages of the console take, and their size.

Pages are requests to a running service over one connection, one after the other.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from http.client import HTTPConnection

from app import create_app
from app.auth import sessions
from app.console.assets import NAMES, get_asset
from app.core.db.transactions import transaction
from benchmarks.calls import PLATFORM_SUBJECT, add_platform_admin
from benchmarks.dataset import MEMBERSHIP, PRESET, SUBSCRIPTION, TENANT, USER, row_id
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
        "home": "/console",
        "what wants attention": "/console/work",
        "search": "/console?q=tenant",
        "tenants": "/console/tenants",
        "a tenant": tenant,
        "its members": f"{tenant}/members",
        "a member": f"{tenant}/members/{row_id(MEMBERSHIP, 0)}?permission=users:write",
        "its users": f"{tenant}/users",
        "a user": f"{tenant}/users/{row_id(USER, 0)}",
        "a form of metadata": f"{tenant}/users/{row_id(USER, 0)}/metadata",
        "its flags": f"{tenant}/flags",
        "its custom fields": f"{tenant}/custom-fields",
        "a subscription": f"{tenant}/subscriptions/{row_id(SUBSCRIPTION, 0)}",
        "its audit": f"{tenant}/audit",
        "all users": "/console/users",
        "all subscriptions": "/console/subscriptions",
        "a plan": f"/console/plans/{row_id(PRESET, 0)}",
        "audit": "/console/audit",
        "imports": "/console/imports",
    }
    users = stage.tenants * stage.users_per_tenant
    files = sum(len(get_asset(name).compressed) for name in NAMES)
    headers = {"Cookie": f"console={secret}", "Accept-Encoding": "gzip"}
    with serving(stage, "service") as server:
        connection = HTTPConnection("127.0.0.1", server.port)
        found = {title: _measured(connection, path, headers) for title, path in pages.items()}
        connection.close()
    largest = max(page.size for page in found.values())
    slowest = max(page.p95 for page in found.values())
    return "\n".join(
        [
            f"Milliseconds of one page among {users:,} users. The slowest page: {slowest:.1f} (p95)."
            f" The first load, with style sheets and scripts: at most"
            f" {(files + largest) / 1000:.1f} kB; each page after it: at most"
            f" {largest / 1000:.1f} kB.",
            "",
            "| page | p50 | p95 | kB |",
            "|---|--:|--:|--:|",
            *(
                f"| {title} | {page.p50:.1f} | {page.p95:.1f} | {page.size / 1000:.1f} |"
                for title, page in found.items()
            ),
        ]
    )


@dataclass(frozen=True)
class Measured:
    """Milliseconds and bytes of a page."""

    p50: float
    p95: float
    size: int


def _measured(connection: HTTPConnection, path: str, headers: dict[str, str]) -> Measured:
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
    return Measured(cuts[49] * 1000, cuts[94] * 1000, size)

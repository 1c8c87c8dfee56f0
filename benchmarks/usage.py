"""Consuming, and holding and settling, beside the bare statement; and the size of a counter.

Each runs on one hot counter and over many tenants.

The clients are threads of this process, so no other program is needed.
"""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from hashlib import sha256
from itertools import count
from typing import Any

from psycopg2.extensions import connection

from benchmarks.dataset import TENANT, row_id
from benchmarks.servers import Server, serving
from benchmarks.stage import Stage

FEATURE = "api-calls"
LIMIT = {
    "flag_key": FEATURE,
    "flag_type": "limit",
    "default_value": 10**15,
    "description": "",
    "is_locked": True,
    "metering": {"period": "month", "policy": "hard", "warn_at": [80, 100]},
}
CREATE_KEY = """
    INSERT INTO api_keys (id, created_at, updated_at, version, tenant_id, name, digest, prefix,
        permissions, created_by_user_id, updated_by_user_id)
    VALUES (gen_random_uuid(), now(), now(), 1, %s, 'benchmark', %s, 'sk_', '{usage:write}', '', '')
    ON CONFLICT (digest) DO NOTHING
"""
BARE = """
    INSERT INTO usage_counters AS c (tenant_id, feature, period_start, used, announced)
    VALUES (%s, 'bare', 'epoch', 1, 0)
    ON CONFLICT (tenant_id, feature, period_start) DO UPDATE SET used = c.used + 1
    WHERE c.used + 1 <= 1000000000000000 RETURNING used
"""
COUNTERS = 200_000  # from which the size of ten million is extrapolated
FILL = """
    INSERT INTO usage_counters (tenant_id, feature, period_start, period_end, used, announced)
    SELECT t.id, 'feature-' || n, ends - interval '1 month', ends, 1, 0
    FROM (SELECT id FROM tenants ORDER BY id LIMIT 1000) t, generate_series(1, %s) n,
        LATERAL (SELECT date_trunc('day', now()) + n %% 28 * interval '1 day' AS ends) period
    ORDER BY random()
"""

Send = Callable[[int], bool]
Post = Callable[[str, dict[str, Any]], tuple[int, bytes]]


def report(stage: Stage, *, connections: int, seconds: float) -> str:
    """The figures as text."""
    lines = [f"{'':24} {'requests/s':>10} {'holds settled/s':>16} {'bare statement/s':>17}"]
    tenants = [row_id(TENANT, number) for number in range(stage.tenants)]
    with closing(stage.connect()) as session, serving(stage, "service") as server:
        prepare(session, tenants)
        for name, chosen in (("one hot counter", tenants[:1]), ("many tenants", tenants)):
            answered = _rate(_requests(server, chosen, _consume), connections, seconds)
            settled = _rate(_requests(server, chosen, _settle), connections, seconds)
            bare = _rate(_statements(stage, chosen), connections, seconds)
            lines.append(f"{name:24} {answered:10.0f} {settled:16.0f} {bare:17.0f}")
        size = _bytes_per_counter(session, stage.tenants)
    lines.append(f"{size:.0f} bytes a counter, its index entry included;")
    lines.append(f"ten million have {size * 1e7 / 2**30:.2f} GiB")
    return "\n".join(lines)


def prepare(session: connection, tenants: Sequence[Any]) -> None:
    """Add a limit to the plan, and a key for each tenant."""
    with session, session.cursor() as database:
        database.execute("SELECT id, flags FROM plan_presets")
        for preset_id, flags in database.fetchall():
            others = [flag for flag in flags if flag["flag_key"] != FEATURE]
            database.execute(
                "UPDATE plan_presets SET flags = %s WHERE id = %s",
                [json.dumps([*others, LIMIT]), preset_id],
            )
        for tenant in tenants:
            digest = sha256(secret(tenant).encode()).hexdigest()
            database.execute(CREATE_KEY, [str(tenant), digest])


def secret(tenant: Any) -> str:
    return f"sk_benchmark_{tenant}"


def _rate(opened: Callable[[], Any], connections: int, seconds: float) -> float:
    """How many calls succeed in a second, over ``connections`` threads; all must succeed."""
    numbers, done = count(), [0] * connections
    failed: list[int] = []
    with ExitStack() as stack:
        senders = [stack.enter_context(opened()) for _ in range(connections)]
        ends = time.monotonic() + seconds

        def run(place: int, send: Send) -> None:
            while time.monotonic() < ends:
                if not send(next(numbers)):
                    failed.append(place)
                    return
                done[place] += 1

        started = time.monotonic()
        threads = [threading.Thread(target=run, args=each) for each in enumerate(senders)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.monotonic() - started
    if failed:
        raise SystemExit("a request was refused, or a statement failed")
    return sum(done) / took


def _requests(
    server: Server, tenants: Sequence[Any], call: Callable[[Post], bool]
) -> Callable[[], Any]:
    headers = [
        {"Authorization": f"Bearer {secret(tenant)}", "Content-Type": "application/json"}
        for tenant in tenants
    ]

    @contextmanager
    def opened() -> Iterator[Send]:
        with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)) as client:

            def send(number: int) -> bool:
                def post(path: str, body: dict[str, Any]) -> tuple[int, bytes]:
                    sent = json.dumps(body).encode()
                    client.request("POST", path, sent, headers[number % len(headers)])
                    answer = client.getresponse()
                    return answer.status, answer.read()

                return call(post)

            yield send

    return opened


def _consume(post: Post) -> bool:
    return post("/v1/usage/consume", {"feature": FEATURE})[0] == 200


def _settle(post: Post) -> bool:
    """Hold an amount, and settle it."""
    status, made = post("/v1/usage/holds", {"feature": FEATURE, "amount": 2})
    path = f"/v1/usage/holds/{json.loads(made)['data']['id']}/settle"
    return status == 201 and post(path, {"amount": 1})[0] == 200


def _statements(stage: Stage, tenants: Sequence[Any]) -> Callable[[], Any]:
    @contextmanager
    def opened() -> Iterator[Send]:
        with closing(stage.connect()) as session, session.cursor() as database:
            session.autocommit = True

            def send(number: int) -> bool:
                database.execute(BARE, [str(tenants[number % len(tenants)])])
                return database.fetchone() is not None

            yield send

    return opened


def _bytes_per_counter(session: connection, tenants: int) -> float:
    """With the counters inserted in random order, as at the turn of a month."""
    session.autocommit = True
    with session.cursor() as database:
        database.execute("TRUNCATE usage_counters")
        database.execute(FILL, [COUNTERS // min(tenants, 1000)])
        inserted = database.rowcount
        database.execute("VACUUM usage_counters")
        database.execute("SELECT pg_total_relation_size('usage_counters')")
        (size,) = database.fetchone() or (0,)
        database.execute("TRUNCATE usage_counters")
    return float(size / inserted)

"""Steady requests of several kinds from several clients, and what came of them."""

import http.client
import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from app.inbox.signatures.sending import sign
from app.tenants.models import Tenant
from tests import factories
from tests.hostile.installation import SECRET

PATIENCE = 30.0
PAUSE = 0.06  # seconds between two requests of a client


@dataclass(frozen=True)
class Request:
    """What is sent."""

    kind: str
    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


@dataclass(frozen=True)
class Outcome:
    """What came back, and when; ``status`` 0 is a connection that was lost."""

    kind: str
    at: float
    seconds: float
    status: int
    retry_after: str | None
    body: bytes


Kind = Callable[[int], Request]


class Outcomes(list[Outcome]):
    """All of a load."""

    @property
    def statuses(self) -> Counter[int]:
        return Counter(outcome.status for outcome in self)

    @property
    def slowest(self) -> float:
        return max(outcome.seconds for outcome in self)

    def of(self, kind: str) -> "Outcomes":
        return Outcomes(outcome for outcome in self if outcome.kind == kind)

    def since(self, moment: float) -> "Outcomes":
        """Those that were begun then or later."""
        return Outcomes(outcome for outcome in self if outcome.at >= moment)

    def slower_than(self, seconds: float) -> "Outcomes":
        return Outcomes(outcome for outcome in self if outcome.seconds > seconds)

    @property
    def strange(self) -> list[Outcome]:
        """All but answers of 2xx and 503s that say why and when to come back."""
        return [outcome for outcome in self if not (outcome.status // 100 == 2 or is_503(outcome))]

    def __str__(self) -> str:
        counted = ", ".join(
            f"{count} x {status}" for status, count in sorted(self.statuses.items())
        )
        return f"{len(self)} requests: {counted}; slowest {self.slowest:.2f} s"


def is_503(outcome: Outcome) -> bool:
    if outcome.status != 503 or not int(outcome.retry_after or 0) > 0:
        return False
    return set(json.loads(outcome.body)) == {"detail", "code"}


def requests_of(tenant: Tenant, token: str, user_id: str) -> list[Kind]:
    """Reads, writes, and webhooks, which push jobs."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    user = f"/v1/users/{user_id}"

    def webhook(number: int) -> Request:
        name = f"event-{tenant.id}-{number}"
        body = json.dumps({"type": "unknown.kind", "timestamp": "2026-01-01T00:00:00Z", "data": {}})
        signed = sign("standard_webhooks", SECRET, body.encode(), time.time(), message_id=name)
        json_headers = {**signed.headers, "Content-Type": "application/json"}
        return Request("webhook", "POST", "/webhooks/idp", json_headers, signed.body)

    def patch(number: int) -> Request:
        body = json.dumps({"patches": {f"key{number % 20}": number}}).encode()
        return Request("write", "PATCH", f"{user}/meta_data", headers, body)

    return [
        lambda _: Request("read", "GET", user, headers),
        patch,
        webhook,
        lambda _: Request("list", "GET", "/v1/users?limit=10", headers),
    ]


def seeded() -> list[Kind]:
    """The same, for a tenant that is made for it."""
    tenant = factories.create_tenant()
    user, _, token = factories.create_member(tenant)
    return requests_of(tenant, token, str(user.id))


@contextmanager
def load(port: int, kinds: Sequence[Kind], *, clients: int = 6) -> Iterator[Outcomes]:
    """Keep asking while the block runs; afterwards the outcomes are complete."""
    outcomes, done, numbers = Outcomes(), threading.Event(), itertools.count()
    threads = [
        threading.Thread(target=_ask, args=(port, kinds, numbers, outcomes, done))
        for _ in range(clients)
    ]
    for thread in threads:
        thread.start()
    try:
        yield outcomes
    finally:
        done.set()
        for thread in threads:
            thread.join()


def _ask(
    port: int,
    kinds: Sequence[Kind],
    numbers: Iterator[int],
    outcomes: Outcomes,
    done: threading.Event,
) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    while not done.wait(PAUSE):
        number = next(numbers)
        request = kinds[number % len(kinds)](number)
        started = time.monotonic()
        try:
            connection.request(request.method, request.path, request.body, dict(request.headers))
            response = connection.getresponse()
            body, status = response.read(), response.status
            retry_after = response.headers.get("Retry-After")
        except (OSError, http.client.HTTPException) as fault:
            body, status, retry_after = repr(fault).encode(), 0, None
            connection.close()
        seconds = time.monotonic() - started
        outcomes.append(Outcome(request.kind, started, seconds, status, retry_after, body))
    connection.close()

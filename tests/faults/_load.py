"""Clients that change users and post webhooks, and send again what was not acknowledged."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import Any, NamedTuple
from uuid import UUID

import httpx

from app.inbox.providers import EMAIL, IDENTITY
from app.inbox.signatures.sending import sign
from tests.database import query
from tests.running.serving import wait_until
from tests.webhooks.deliveries.receiving import Receiver as Endpoint

SECRET = "whsec_ZmF1bHRzIGFyZSBtYWRlIG9uIHB1cnBvc2UgaGVyZQ=="
SETTINGS = {f"{name}_WEBHOOK_SECRETS": f"standard_webhooks:{SECRET}" for name in ("EMAIL", "IDP")}
PATIENCE = 180  # seconds that an answer may take, and that the work left may take
PAUSE = 0.05  # seconds between two requests of one client
UNFINISHED = (
    "SELECT FROM webhook_events WHERE status = 'pending'"
    " UNION ALL SELECT FROM webhook_deliveries WHERE status <> 'succeeded'"
)
TENANTS_MADE = "SELECT after->>'idp_org_id' FROM audit_events WHERE action = 'tenant.created'"
NAMES_SET = "SELECT after->>'first_name' FROM audit_events WHERE action = 'user.updated'"


class Request(NamedTuple):
    """One that is sent until it is acknowledged, and the set that its name then joins."""

    name: str
    acknowledged: set[str]
    send: Callable[[httpx.Client], httpx.Response]


@dataclass
class Load:
    """What the clients of ``base_url`` were answered.

    Besides success and 503 with ``Retry-After`` it may be one of the ``expected`` codes.
    """

    base_url: str
    expected: Collection[int] = ()
    changes: set[str] = field(default_factory=set)  # acknowledged, by the name that was set
    receipts: set[str] = field(default_factory=set)  # acknowledged, by message id
    successes: list[float] = field(default_factory=list)  # moments
    refusals: list[float] = field(default_factory=list)  # moments of answers 503
    strange: list[Any] = field(default_factory=list)
    unknown: int = 0  # requests that may have had an effect: those with an expected code, or cut

    @contextmanager
    def run(
        self, people: Mapping[UUID, str], posters: int = 2, together: int = 1
    ) -> Iterator[None]:
        """Send during the block: for each user, who has a token, and from ``posters`` for webhooks.

        So many clients ``together`` send the same requests. Afterwards each request that was sent
        is acknowledged.
        """
        stop = threading.Event()
        clients: list[Iterator[Request]] = []
        for _ in range(together):
            clients += [self._changes_of(user_id, token) for user_id, token in people.items()]
            clients += [self._posts_of(number) for number in range(posters)]
        threads = [threading.Thread(target=self._repeat, args=(each, stop)) for each in clients]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            for thread in threads:
                thread.join()

    def wait_for(self, successes: int) -> None:
        """Return once so many requests have succeeded; AssertionError once one goes wrong."""
        wait_until(lambda: len(self.successes) >= successes or self.strange, PATIENCE)
        assert self.strange == []

    def _repeat(self, requests: Iterator[Request], stop: threading.Event) -> None:
        client = httpx.Client(base_url=self.base_url, timeout=PATIENCE)
        for request in requests:
            while not self._is_answered(client, request):
                if self.strange:
                    return
                time.sleep(PAUSE)
            request.acknowledged.add(request.name)
            if stop.wait(PAUSE):
                return

    def _is_answered(self, client: httpx.Client, request: Request) -> bool:
        try:
            answer = request.send(client)
        except httpx.TransportError as fault:
            if isinstance(fault, httpx.RemoteProtocolError) and 502 in self.expected:
                self.unknown += 1  # a process was killed between the headers and the body
            else:
                self.strange.append(repr(fault))
            return False
        if answer.is_success:
            self.successes.append(time.monotonic())
            return True
        if answer.status_code == 503 and "Retry-After" in answer.headers:
            self.refusals.append(time.monotonic())
        elif answer.status_code in self.expected:
            self.unknown += 1
        else:
            self.strange.append((answer.status_code, answer.text))
        return False

    def _changes_of(self, user_id: UUID, token: str) -> Iterator[Request]:
        for number in count():
            name = f"{user_id} {number}"
            headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": name}
            change = partial(httpx.Client.patch, json={"first_name": name}, headers=headers)
            yield Request(name, self.changes, partial(change, url=f"/v1/users/{user_id}"))

    def _posts_of(self, poster: int) -> Iterator[Request]:
        for number in count():
            name = f"msg_{poster}_{number}"
            receiver, kind = EMAIL, "email.opened"
            data = {"message_id": name, "recipient": "ada@acme.example"}
            if number % 10 == 0:
                receiver, kind, data = IDENTITY, "organization.created", {"id": name}
            now = datetime.now(UTC).isoformat()
            body = json.dumps({"type": kind, "timestamp": now, "data": data | {"name": name}})
            post = partial(_post, path=receiver.path, body=body.encode(), name=name)
            yield Request(name, self.receipts, post)


def _post(client: httpx.Client, path: str, body: bytes, name: str) -> httpx.Response:
    signed = sign("standard_webhooks", SECRET, body, time.time(), message_id=name)
    return client.post(path, content=signed.body, headers=signed.headers)


def wait_for_effects(load: Load, endpoint: Endpoint | None = None) -> None:
    """Return once workers, sequencers and senders have done their work.

    ``endpoint`` gets the events of users, if there are any.
    """
    assert load.strange == []
    wait_until(lambda: not query(UNFINISHED), PATIENCE)
    wait_until(lambda: endpoint is None or len({*endpoint.ids}) >= len(load.changes), PATIENCE)


def check_effects(load: Load, endpoint: Endpoint | None = None) -> None:
    """Each acknowledged change and receipt has had its effect exactly once, and nothing else has.

    A delivery may come twice, with the same id.
    """
    audited = Counter(name for (name,) in query(NAMES_SET))
    stored = Counter(name for (name,) in query("SELECT external_id FROM webhook_events"))
    opened = Counter(name for (name,) in query("SELECT message_id FROM email_events"))
    made = Counter(name for (name,) in query(TENANTS_MADE))
    received = () if endpoint is None else endpoint.received
    delivered = {one.id: json.loads(one.body)["data"]["first_name"] for one in received}
    assert audited == Counter(load.changes)
    assert stored == Counter(load.receipts)
    assert opened + made == Counter(load.receipts)
    assert Counter(delivered.values()) == Counter(load.changes)

"""A client of ``python -m tests.faults holds``, in a process of its own.

It writes each request into a journal before it sends it, and then the answer. Until it is answered, it
sends the same request again. After a kill another process continues the journal: it first sends the
last request again. It does not know the holds of the killed one, so these expire.
"""

import json
import random
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import httpx

FEATURES = ("calls", "images", "tokens")
ACTIONS = (*2 * ["consume"], *4 * ["hold"], "extend", *2 * ["settle"], "release")
WITH_KEY = ("usage/consume", "usage/holds")  # in the body
PAUSE = 0.02  # seconds
TIMEOUT = 60  # seconds
TTL = 2  # seconds, at most
LOW = 100  # credits


class Exchange(NamedTuple):
    """A request and its answer.

    It is ``certain`` that a refused request has no effect if it was sent only once.
    """

    method: str
    path: str
    body: dict[str, Any]
    status: int
    answer: dict[str, Any]
    is_certain: bool

    @property
    def action(self) -> str:
        last = self.path.partition("?")[0].split("/")[-1]
        return "release" if self.method == "DELETE" else last

    @property
    def target(self) -> str:
        """The id in the path."""
        return self.path.split("/")[2]

    @property
    def data(self) -> Any:
        """What is shown; empty after a refusal that shows nothing."""
        return self.answer.get("data", {})


class Client:
    """Sends requests, and writes the journal."""

    def __init__(self, url: str, key: str, journal: Path) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        self._http = httpx.Client(base_url=f"{url}/v1/", headers=headers, timeout=TIMEOUT)
        known = _lines(journal) if journal.exists() else []
        self._file = journal.open("ab", buffering=0)
        self._name, self._number = journal.stem, len(known) // 2
        if len(known) % 2:
            self._finish(*known[-1], certain=False)

    def send(self, method: str, path: str, **body: Any) -> Any:
        """The ``data`` of a success; None after a refusal."""
        if path in WITH_KEY:
            body["idempotency_key"] = self._key
        self._write([method, path, body])
        return self._finish(method, path, body)

    @property
    def _key(self) -> str:
        return f"{self._name}-{self._number}"

    def _finish(self, method: str, path: str, body: dict[str, Any], *, certain: bool = True) -> Any:
        while (answer := self._attempt(method, path, body)) is None:
            certain = False
            time.sleep(PAUSE)
        found = answer.json() if answer.content else {}
        self._write([answer.status_code, found, certain])
        self._number += 1
        return found.get("data") if answer.is_success else None

    def _attempt(self, method: str, path: str, body: dict[str, Any]) -> httpx.Response | None:
        """The answer; None if the request has to be sent again."""
        headers = {"Idempotency-Key": self._key} if path.startswith("credits/") else {}
        with suppress(httpx.TransportError):  # a process was killed
            answer = self._http.request(method, path, json=body or None, headers=headers)
            if answer.status_code != 503 and b'"idempotency_in_progress"' not in answer.content:
                return answer
        return None

    def _write(self, line: list[Any]) -> None:
        self._file.write(json.dumps(line).encode() + b"\n")


def use(url: str, key: str, journal: Path, ended: Path) -> None:
    """Consume, hold, extend, settle and release, until there is the file ``ended``."""
    client, held = Client(url, key, journal), []
    while not ended.exists():
        time.sleep(random.uniform(0, 2 * PAUSE))
        taken = {"feature": random.choice(FEATURES), "amount": random.randint(1, 9)}
        place = random.randrange(len(held)) if held else None
        match random.choice(ACTIONS):
            case "consume":
                if taken["feature"] == "calls" and random.random() < 0.6:
                    taken["amount"] *= -1  # else the limit would soon be used up
                client.send("POST", "usage/consume", **taken)
            case "hold":
                hold = client.send(
                    "POST", "usage/holds", **taken, ttl_seconds=random.randint(1, TTL)
                )
                held += [] if hold is None else [hold["id"]]
            case _ if place is None:
                pass
            case "extend":
                path = f"usage/holds/{held[place]}/extend"
                client.send("POST", path, ttl_seconds=random.randint(1, TTL))
            case "settle":
                path = f"usage/holds/{held.pop(place)}/settle"
                client.send("POST", path, amount=random.randint(0, 12))
            case "release":
                client.send("DELETE", f"usage/holds/{held.pop(place)}")


def grant(url: str, key: str, journal: Path, ended: Path, tenant_id: str) -> None:
    """Grant credits when few are left, and revoke some, until there is the file ``ended``."""
    client = Client(url, key, journal)
    while not ended.exists():
        time.sleep(random.uniform(0, 10 * PAUSE))
        (credits,) = client.send("GET", f"credits?tenant_id={tenant_id}&feature=tokens")
        if credits["balance"] > LOW:
            continue
        body = {"amount": random.randint(20, 100), "priority": random.randint(99, 101)}
        if random.random() < 0.5:
            ends = datetime.now(UTC) + timedelta(seconds=random.uniform(1, 3))
            body["expires_at"] = ends.isoformat()
        body |= {"feature": "tokens", "source": "promotion", "tenant_id": tenant_id}
        lot = client.send("POST", "credits/grants", **body)
        if lot is not None and random.random() < 0.3:
            path = f"credits/grants/{lot['id']}/revoke"
            client.send("POST", path, amount=random.randint(1, 50), reason="test")


def exchanges(journal: Path) -> Iterator[Exchange]:
    """What a journal says; each request in it is answered."""
    lines = _lines(journal)
    for sent, answered in zip(lines[::2], lines[1::2], strict=True):
        yield Exchange(*sent, *answered)


def _lines(journal: Path) -> list[Any]:
    return [json.loads(line) for line in journal.read_bytes().splitlines()]

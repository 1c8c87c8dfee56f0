"""Many tenants at once on two connections, amid errors, time-outs and clients that go away.

One gunicorn process with 16 threads shares 2 connections, so each of them changes hands all the
time: between tenants, and with the platform's credential, which sees everything. Whatever a tenant's
credential is shown must be its own; what it wrote must be in its own rows.
"""

import http.client
import itertools
import json
import random
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select

from app.dev.engines.instance import APPLICATION_ROLE
from app.extensions import db
from app.users.models import User
from tests import factories
from tests.hostile.installation import Installation
from tests.ports import free_port

THREADS, CONNECTIONS = 16, 2
MARK = re.compile(rb"mark-(\d+)\.")
SETTINGS = {
    "DB_POOL_SIZE": str(CONNECTIONS),
    "DB_POOL_TIMEOUT": "1",
    "RATELIMIT_ENABLED": "0",
    "LOG_LEVEL": "ERROR",
}


@dataclass
class Resident:
    """One tenant: its credentials, its rows, and the mark that all of them bear."""

    number: int
    credentials: list[str]
    paths: list[str]
    user: str

    @property
    def mark(self) -> str:
        return f"mark-{self.number}."


@dataclass
class Report:
    requests: int = 0
    answers: Counter[int] = field(default_factory=Counter)
    aborted: int = 0
    marks_seen: int = 0
    sabotages: Counter[str] = field(default_factory=Counter)
    foreign: list[Any] = field(default_factory=list)
    strange: list[Any] = field(default_factory=list)
    seconds: float = 0

    def __str__(self) -> str:
        counted = ", ".join(f"{count} x {status}" for status, count in sorted(self.answers.items()))
        return (
            f"{self.requests} requests ({counted}, {self.aborted} aborted), amid"
            f" {dict(self.sabotages)}: {self.marks_seen} rows seen, {len(self.foreign)} of them"
            f" foreign, {len(self.strange)} strange answers, {self.seconds:.0f} s"
        )


def prove(
    service: Installation, *, requests: int, tenants: int, deadline: float = float("inf")
) -> Report:
    """Send so many requests, or what the time allows; the factories must be bound to ``service``."""
    residents = [create_resident(number) for number in range(tenants)]
    platform = factories.platform_token()
    report, started = Report(), time.monotonic()
    port = free_port()
    options = (f"--threads={THREADS}", "--workers=1")
    with service.served(port, *options, **SETTINGS), sabotage(service, report):
        numbers = itertools.count()
        lock = threading.Lock()

        def work(seed: int) -> None:
            client = Client(port, random.Random(seed), residents, platform, report, lock)
            while next(numbers) < requests and time.monotonic() < deadline - 10:
                client.ask()
            client.close()

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    report.seconds = time.monotonic() - started
    report.foreign += written_elsewhere(service, residents)
    return report


def create_resident(number: int) -> Resident:
    mark = f"mark-{number}."
    tenant = factories.create_tenant(primary_contact_name=mark)
    preset = factories.create_preset(f"preset-{tenant.slug}", flag="")
    tokens = [
        factories.create_member(tenant, role, first_name=mark)[2] for role in ("owner", "admin")
    ]
    key = factories.create_api_key(tenant, ["users:read", "users:write"], name=mark)
    user = factories.create_user(tenant, first_name=mark, meta_data={"mark": mark})
    membership = factories.create_membership(tenant, user, "viewer", idp_membership_id=mark)
    subscription = factories.create_subscription(tenant, billing_contact_name=mark)
    override = factories.create_override(tenant, preset, "flag", mark)
    paths = [
        f"/v1/tenants/{tenant.id}",
        f"/v1/users/{user.id}",
        f"/v1/memberships/tenant/{membership.id}",
        f"/v1/billing/subscriptions/{subscription.id}",
        f"/v1/billing/flags/overrides/{override.id}",
    ]
    return Resident(number, [*tokens, key], paths, str(user.id))


LISTS = (
    "/v1/users",
    "/v1/memberships/tenant",
    "/v1/billing/subscriptions",
    "/v1/billing/flags/overrides",
    "/v1/audit-events",
    "/v1/api-keys",
)


class Client:
    """One caller at a time is this or that tenant, or the platform."""

    def __init__(
        self,
        port: int,
        dice: random.Random,
        residents: list[Resident],
        platform: str,
        report: Report,
        lock: threading.Lock,
    ) -> None:
        self._port = port
        self._dice = dice
        self._residents = residents
        self._platform = platform
        self._report = report
        self._lock = lock
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        kinds: dict[Callable[[Resident], None], int] = {
            self._read: 25,
            self._list: 25,
            self._write: 15,
            self._look_elsewhere: 12,
            self._err: 8,
            self._ask_as_platform: 10,
            self._abort: 5,
        }
        self._kinds, self._weights = list(kinds), list(kinds.values())

    def ask(self) -> None:
        resident = self._dice.choice(self._residents)
        self._dice.choices(self._kinds, self._weights)[0](resident)

    def close(self) -> None:
        self._connection.close()

    def _read(self, resident: Resident) -> None:
        self._judge(resident, "GET", self._dice.choice(resident.paths))

    def _list(self, resident: Resident) -> None:
        self._judge(
            resident, "GET", f"{self._dice.choice(LISTS)}?limit={self._dice.choice((5, 100))}"
        )

    def _write(self, resident: Resident) -> None:
        body = {"patches": {"mark": resident.mark, f"key{self._dice.randrange(5)}": resident.mark}}
        self._judge(resident, "PATCH", f"/v1/users/{resident.user}/meta_data", body)

    def _look_elsewhere(self, resident: Resident) -> None:
        """Another tenant's row, by its id: it does not exist, to read or to write."""
        other = self._dice.choice([one for one in self._residents if one is not resident])
        if self._dice.random() < 0.5:
            status = self._judge(resident, "GET", self._dice.choice(other.paths))
        else:
            body = {"patches": {"mark": resident.mark}}
            status = self._judge(resident, "PATCH", f"/v1/users/{other.user}/meta_data", body)
        if status not in (404, 403, 503):
            self._note_strange(resident, "look elsewhere", status)

    def _err(self, resident: Resident) -> None:
        path = f"/v1/users/{resident.user}"
        self._dice.choice(
            (
                lambda: self._judge(resident, "PATCH", path, {"email": "no address"}),
                lambda: self._judge(resident, "PATCH", path, {"unknown": 1}),
                lambda: self._judge(resident, "GET", f"{path}x"),
                lambda: self._judge(resident, "GET", "/v1/users?cursor=x"),
                lambda: self._judge(resident, "DELETE", path),
                lambda: self._judge(resident, "GET", "/v1/webhooks/events"),
            )
        )()

    def _ask_as_platform(self, resident: Resident) -> None:
        """The caller before and after whom a connection has most to forget."""
        status, _ = self._send("GET", self._dice.choice(LISTS), self._platform)
        if status not in (200, 503):
            self._note_strange(resident, "platform", status)

    def _abort(self, resident: Resident) -> None:
        """Go away in the midst of the body, or before the answer."""
        body = json.dumps({"patches": {"mark": resident.mark}}).encode()
        head = (
            f"PATCH /v1/users/{resident.user}/meta_data HTTP/1.1\r\nHost: localhost\r\n"
            f"Authorization: Bearer {self._dice.choice(resident.credentials)}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode()
        sent = head + body[: self._dice.choice((0, len(body) // 2, len(body)))]
        with suppress(OSError), socket.create_connection(("127.0.0.1", self._port), 30) as wire:
            wire.sendall(sent)
            time.sleep(self._dice.random() * 0.01)
        with self._lock:
            self._report.requests += 1
            self._report.aborted += 1

    def _judge(self, resident: Resident, method: str, path: str, body: Any = None) -> int:
        credential = self._dice.choice(resident.credentials)
        status, content = self._send(method, path, credential, body)
        marks = [int(mark) for mark in MARK.findall(content)]
        with self._lock:
            self._report.marks_seen += len(marks)
            self._report.foreign += [
                (resident.number, mark, method, path) for mark in marks if mark != resident.number
            ]
        return status

    def _send(self, method: str, path: str, credential: str, body: Any = None) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {credential}", "Content-Type": "application/json"}
        content = None if body is None else json.dumps(body).encode()
        try:
            self._connection.request(method, path, content, headers)
            response = self._connection.getresponse()
            status, answer = response.status, response.read()
        except (OSError, http.client.HTTPException) as fault:
            self._connection.close()
            status, answer = 0, repr(fault).encode()
        with self._lock:
            self._report.requests += 1
            self._report.answers[status] += 1
            if status == 0 or (status >= 500 and status != 503):
                self._report.strange.append((method, path, status, answer[:200]))
        return status, answer

    def _note_strange(self, resident: Resident, what: str, status: int) -> None:
        with self._lock:
            self._report.strange.append((resident.number, what, status))


@contextmanager
def sabotage(service: Installation, report: Report) -> Iterator[None]:
    """Now and then, rows are locked for longer than a statement may take, or connections end."""
    done = threading.Event()

    def lock_rows() -> None:
        with service.superuser() as cursor:
            cursor.execute("BEGIN; SELECT id FROM users ORDER BY random() LIMIT 20 FOR UPDATE")
            done.wait(1.3)
            cursor.execute("ROLLBACK")

    def end_connections() -> None:
        with service.superuser() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s"
                " ORDER BY random() LIMIT 1",
                [APPLICATION_ROLE],
            )

    def work() -> None:
        dice = random.Random(1)
        while not done.wait(0.3):
            act = dice.choice((lock_rows, end_connections))
            act()
            report.sabotages[act.__name__] += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def written_elsewhere(service: Installation, residents: list[Resident]) -> list[Any]:
    """What stands in a user's metadata and is not of the user's own tenant."""
    marks = {resident.user: resident.mark for resident in residents}
    with service.app.app_context():
        db.engine.dispose()  # the sabotage has ended this process' connections, too
    with factories.platform_transaction():
        rows = db.session.execute(select(User.id, User.meta_data)).all()
    return [
        (str(user_id), meta_data)
        for user_id, meta_data in rows
        if str(user_id) in marks and set(meta_data.values()) != {marks[str(user_id)]}
    ]

"""A simulated billing provider: its state, its clock, its webhooks, and its API on loopback.

The lives of subscriptions are the same for all: :class:`Simulated` changes them, and each provider
writes them in its own form. A change produces the events that the real provider sends, with the state
of that moment. The test delivers them, loses them, doubles them, or changes their order.
"""

import json
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.message import Message
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, NamedTuple, Self
from urllib.parse import parse_qsl, urlsplit

from app.subscriptions.statuses import StatusClass

Json = dict[str, Any]
START = datetime(2026, 11, 1, 8, tzinfo=UTC)
DUNNING = timedelta(days=14)
"""How long a subscription is past due before it ends."""


class Status(StrEnum):
    """The state of a subscription; each provider has words for those that it knows."""

    INCOMPLETE = "incomplete"
    TRIALING = "trialing"
    ACTIVE = "active"
    PAST_DUE = "past_due"
    UNPAID = "unpaid"
    PAUSED = "paused"
    ENDED = "ended"
    EXPIRED = "incomplete_expired"
    """Ended without a first payment."""


CLASSES = {
    Status.INCOMPLETE: StatusClass.PENDING,
    Status.TRIALING: StatusClass.LIVE,
    Status.ACTIVE: StatusClass.LIVE,
    Status.PAST_DUE: StatusClass.PAST_DUE,
    Status.UNPAID: StatusClass.PAST_DUE,
    Status.PAUSED: StatusClass.PAUSED,
    Status.ENDED: StatusClass.ENDED,
    Status.EXPIRED: StatusClass.ENDED,
}
STARTED = (Status.TRIALING, Status.ACTIVE, Status.PAST_DUE, Status.UNPAID, Status.PAUSED)
LIVE = (Status.TRIALING, Status.ACTIVE)
CHANGES: dict[str, tuple[tuple[Status, ...], Status | None]] = {
    "activate": ((Status.INCOMPLETE,), Status.ACTIVE),
    "expire": ((Status.INCOMPLETE,), Status.EXPIRED),
    "fail": (LIVE, Status.PAST_DUE),
    "give_up": ((Status.PAST_DUE,), Status.UNPAID),
    "recover": ((Status.PAST_DUE, Status.UNPAID), Status.ACTIVE),
    "pause": (LIVE, Status.PAUSED),
    "resume": ((Status.PAUSED,), Status.ACTIVE),
    "pause_collection": (LIVE, None),
    "resume_collection": (LIVE, None),
    "cancel_at_period_end": ((*LIVE, Status.PAST_DUE), None),
    "withdraw_cancellation": ((*LIVE, Status.PAST_DUE), None),
    "end": (STARTED, Status.ENDED),
}
"""Change -> the states that it can happen in, and the state after it (None: the same)."""


class Line(NamedTuple):
    """An item: ``amount`` is the price of one. ``quantity`` is None for a metered price."""

    price: str
    quantity: int | None = 1
    amount: int = 1000


@dataclass(slots=True)
class Customer:
    id: str
    created_at: datetime
    changed_at: datetime
    tenant: str = ""
    is_deleted: bool = False
    declines: bool = False
    """Whether its payments fail."""


@dataclass(slots=True)
class Subscription:
    id: str
    number: int
    customer: Customer
    lines: tuple[Line, ...]
    status: Status
    created_at: datetime
    changed_at: datetime
    period_start: datetime
    period_end: datetime
    tenant: str = ""
    trial_end: datetime | None = None
    ends_with_period: bool = False
    canceled_at: datetime | None = None
    ended_at: datetime | None = None
    past_due_since: datetime | None = None
    collection_is_paused: bool = False

    @property
    def status_class(self) -> StatusClass:
        return CLASSES[self.status]

    @property
    def has_ended(self) -> bool:
        return self.status_class is StatusClass.ENDED

    @property
    def amount(self) -> int | None:
        """What one period costs; None with a metered price."""
        if any(line.quantity is None for line in self.lines):
            return None
        return sum(line.amount * (line.quantity or 0) for line in self.lines)

    @property
    def due_at(self) -> datetime | None:
        """When the provider changes it by itself."""
        match self.status:
            case Status.TRIALING | Status.ACTIVE:
                return self.period_end
            case Status.PAST_DUE if self.past_due_since:
                return self.past_due_since + DUNNING
            case _:
                return None


@dataclass(frozen=True, slots=True)
class Event:
    """One event that the provider sends until it is received."""

    id: str
    kind: str
    body: bytes
    subscription_id: str | None


class Request(NamedTuple):
    """A request that the API received."""

    path: str
    headers: Mapping[str, str]
    at: float


Fault = int | str
"""A status, or ``rubbish`` (200 that is not JSON), ``reset`` (no answer) or ``silence``."""


@dataclass
class Api:
    """How the API behaves. ``next_faults`` are those of the next requests, one each."""

    delay: float = 0.0
    outage: Fault | None = None
    next_faults: deque[Fault] = field(default_factory=deque)
    retry_after: str | None = "1"
    requests: list[Request] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0


class Simulated:
    """One account at a provider. Its clock stands still, except for a millisecond per change."""

    name: ClassVar[str]
    statuses: ClassVar[Mapping[Status, str]]
    left_out: ClassVar[frozenset[str]] = frozenset()
    """Changes that the provider does not have."""
    most_lines: ClassVar[int] = 30
    has_metered_prices: ClassVar[bool] = False
    renews_before_failing: ClassVar[bool] = False
    """Whether a failed renewal is first reported as active."""
    can_be_due_and_cancelled: ClassVar[bool] = True
    currency: ClassVar[str] = "EUR"
    """What the API says; empty where it says none."""
    has_metadata: ClassVar[bool] = True
    """Whether the API says the tenant of a subscription and of a customer."""
    api_path: ClassVar[str] = ""

    def __init__(
        self, *, secret: str = "secret", api_key: str = "key", now: datetime = START, first: int = 1
    ) -> None:
        """``first`` is the number of the first id, so that two accounts can have different ids."""
        self.secret = secret
        self.api_key = api_key
        self.now = now
        self.lock = threading.RLock()
        self.api = Api()
        self.customers: dict[str, Customer] = {}
        self.subscriptions: dict[str, Subscription] = {}
        self.in_order: list[Subscription] = []
        self.events: list[Event] = []
        self.url = ""
        self._first = first
        self._counts: dict[str, int] = {}
        self._closing = threading.Event()

    # The forms of the provider.

    def price_id(self, price: str) -> str:
        """The id of the price, or of what stands for it, that an item of this name has."""
        return price

    def period_end(self, subscription: Subscription) -> datetime | None:
        """The end of the period, where the provider says one in this state."""
        return subscription.period_end

    def id_of(self, kind: str, number: int) -> str:
        """The id of the ``number``-th ``customer``, ``subscription`` or ``event``."""
        raise NotImplementedError

    def write_subscription(self, subscription: Subscription) -> Json:
        raise NotImplementedError

    def write_customer(self, customer: Customer) -> Json:
        raise NotImplementedError

    def kinds_of(self, change: str) -> tuple[str, ...]:
        """The types of the events of a change: of CHANGES, ``create``, ``renew`` or ``change``."""
        raise NotImplementedError

    def customer_kind(self, change: str) -> str:
        """The type of the event of a customer that was ``created``, ``updated`` or ``deleted``."""
        return f"customer.{change}"

    def write_event(self, id_: str, kind: str, of: Subscription | Customer) -> Json:
        raise NotImplementedError

    def sign(self, event: Event, now: float) -> dict[str, str]:
        raise NotImplementedError

    def answer(self, path: str, query: dict[str, str]) -> Json | None:
        """The answer to a GET; None if there is no such object."""
        raise NotImplementedError

    def error(self, status: int) -> Json:
        return {"error": {"status": status}}

    def is_allowed(self, headers: Message) -> bool:
        return headers.get("Authorization") == f"Bearer {self.api_key}"

    # The lives of subscriptions and customers.

    def create_customer(self, *, tenant: str = "", is_told: bool = True) -> Customer:
        with self.lock:
            id_ = self._next_id("customer")
            customer = Customer(id_, self._tick(), self.now, tenant)
            self.customers[id_] = customer
            if is_told:
                self._tell(self.customer_kind("created"), customer)
            return customer

    def change_customer(self, customer: Customer, *, tenant: str) -> None:
        with self.lock:
            customer.tenant, customer.changed_at = tenant, self._tick()
            self._tell(self.customer_kind("updated"), customer)

    def delete_customer(self, customer: Customer) -> None:
        """Its subscriptions end at once."""
        with self.lock:
            for subscription in self.in_order:
                if subscription.customer is customer and not subscription.has_ended:
                    self.apply("end", subscription)
            customer.is_deleted, customer.changed_at = True, self._tick()
            self._tell(self.customer_kind("deleted"), customer)

    def create(
        self,
        *lines: Line,
        tenant: str = "",
        customer: Customer | None = None,
        trial: timedelta | None = None,
        status: Status | None = None,
        is_told: bool = True,
    ) -> Subscription:
        """A new subscription: in a trial, or ``status``, or active. Its customer is new as well.

        With ``is_told=False`` there is no event, as for one that is older than the webhook.
        """
        with self.lock:
            customer = customer or self.create_customer(is_told=is_told)
            number = self._count("subscription")
            at = self._tick()
            subscription = Subscription(
                id=self.id_of("subscription", number),
                number=number - self._first + 1,
                customer=customer,
                lines=lines or (Line("basic"),),
                status=Status.TRIALING if trial else status or Status.ACTIVE,
                created_at=at,
                changed_at=at,
                period_start=at,
                period_end=at + trial if trial else next_month(at),
                tenant=tenant,
                trial_end=at + trial if trial else None,
            )
            self.subscriptions[subscription.id] = subscription
            self.in_order.append(subscription)
            if is_told:
                self._tell_all("create", subscription)
            return subscription

    def change(
        self,
        subscription: Subscription,
        *lines: Line,
        tenant: str | None = None,
        is_told: bool = True,
    ) -> None:
        """Other items, or another tenant in the metadata."""
        with self.lock:
            subscription.lines = lines or subscription.lines
            subscription.tenant = subscription.tenant if tenant is None else tenant
            subscription.changed_at = self._tick()
            if is_told:
                self._tell_all("change", subscription)

    def possible(self, subscription: Subscription) -> list[str]:
        """The names of the changes that :meth:`apply` can make now."""
        found = [
            name
            for name, (before, after) in CHANGES.items()
            if subscription.status in before
            and name not in self.left_out
            and (after is None or after in self.statuses)
        ]
        unfit = {
            "pause_collection": subscription.collection_is_paused,
            "resume_collection": not subscription.collection_is_paused,
            "cancel_at_period_end": subscription.ends_with_period,
            "withdraw_cancellation": not subscription.ends_with_period,
        }
        if not self.can_be_due_and_cancelled:
            unfit["fail"] = subscription.ends_with_period
            unfit["cancel_at_period_end"] |= subscription.status is Status.PAST_DUE
        return [name for name in found if not unfit.get(name)]

    def apply(self, change: str, subscription: Subscription, *, is_told: bool = True) -> None:
        """Make one of CHANGES."""
        with self.lock:
            assert change in self.possible(subscription), (change, subscription)
            at = self._tick()
            subscription.changed_at = at
            subscription.status = CHANGES[change][1] or subscription.status
            match change:
                case "activate":
                    subscription.period_start, subscription.period_end = at, next_month(at)
                case "fail":
                    subscription.past_due_since = at
                case "recover" | "resume":
                    subscription.past_due_since = None
                    if subscription.period_end <= at:
                        subscription.period_start, subscription.period_end = at, next_month(at)
                case "pause" | "end" | "expire":
                    ended = None if change == "pause" else at
                    subscription.ended_at = ended
                    subscription.canceled_at = ended and (subscription.canceled_at or ended)
                    subscription.ends_with_period &= ended is not None
                case "pause_collection" | "resume_collection":
                    subscription.collection_is_paused = change == "pause_collection"
                case "cancel_at_period_end" | "withdraw_cancellation":
                    is_canceled = change == "cancel_at_period_end"
                    subscription.ends_with_period = is_canceled
                    subscription.canceled_at = at if is_canceled else None
            if is_told:
                self._tell_all(change, subscription)

    def advance(self, by: timedelta) -> None:
        """Move the clock; what is due on the way happens at its time."""
        with self.lock:
            until = self.now + by
            while due := min(
                (
                    (one.due_at, one.number, one)
                    for one in self.in_order
                    if one.due_at and one.due_at <= until
                ),
                default=None,
            ):
                self.now = max(self.now, due[0])
                self._continue(due[2])
            self.now = max(self.now, until)

    def _continue(self, subscription: Subscription) -> None:
        """What happens at the end of a period, of a trial, or of the attempts to collect."""
        if subscription.status is Status.PAST_DUE or subscription.ends_with_period:
            self.apply("end", subscription)
            return
        declines = subscription.customer.declines
        at = self._tick()
        subscription.period_start = subscription.period_end
        subscription.period_end = next_month(subscription.period_end)
        subscription.changed_at = at
        if not declines or self.renews_before_failing:
            change = "activate" if subscription.status is Status.TRIALING else "renew"
            subscription.status = Status.ACTIVE
            self._tell_all(change, subscription)
        if declines:
            self.apply("fail", subscription)

    # Events.

    def take(self) -> list[Event]:
        """The events since the last call, oldest first."""
        with self.lock:
            events, self.events = self.events, []
            return events

    def headers(self, event: Event, now: float | None = None) -> dict[str, str]:
        """The headers of one delivery. Each attempt is signed anew, by the real time."""
        return {"Content-Type": "application/json", **self.sign(event, now or time.time())}

    def _tell_all(self, change: str, subscription: Subscription) -> None:
        for kind in self.kinds_of(change):
            self._tell(kind, subscription)

    def _tell(self, kind: str, of: Subscription | Customer) -> None:
        id_ = self._next_id("event")
        body = json.dumps(self.write_event(id_, kind, of)).encode()
        self.events.append(Event(id_, kind, body, of.id if isinstance(of, Subscription) else None))

    def _next_id(self, kind: str) -> str:
        return self.id_of(kind, self._count(kind))

    def _count(self, kind: str) -> int:
        number = self._counts[kind] = self._counts.get(kind, self._first - 1) + 1
        return number

    def _tick(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        return self.now

    # The API.

    @contextmanager
    def serving(self) -> Iterator[Self]:
        """Answer at :attr:`url` while the block runs."""
        with _Server(self) as server:
            self.url = f"http://127.0.0.1:{server.server_port}{self.api_path}"
            thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
            thread.start()
            try:
                yield self
            finally:
                self._closing.set()
                server.shutdown()
                thread.join()

    def page(self, found: list[Any], start: int, size: int) -> tuple[list[Any], bool]:
        """``size`` of ``found`` from ``start``, and whether there are more."""
        return found[start : start + size], start + size < len(found)

    def wait_for_the_end(self) -> None:
        """Say nothing until the server ends, or the silence."""
        self._closing.wait(60)

    def end_silence(self) -> None:
        """Close the connections of the requests that were answered with silence."""
        self.api.outage = None
        self._closing.set()


def moment(at: datetime | None) -> str | None:
    """RFC 3339 with microseconds."""
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if at else None


def next_month(at: datetime) -> datetime:
    return at + timedelta(days=30)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, provider: Simulated) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.provider = provider

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a connection that ends with its process."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        provider, api = self.server.provider, self.server.provider.api
        with provider.lock:
            api.requests.append(Request(self.path, dict(self.headers), time.monotonic()))
            api.in_flight += 1
            api.most_in_flight = max(api.most_in_flight, api.in_flight)
            fault = api.next_faults.popleft() if api.next_faults else api.outage
        try:
            if api.delay:
                time.sleep(api.delay)
            self._answer(provider, fault)
        finally:
            with provider.lock:
                api.in_flight -= 1

    def _answer(self, provider: Simulated, fault: Fault | None) -> None:
        if fault == "silence":
            provider.wait_for_the_end()
            self.close_connection = True
        elif fault == "reset":
            self.close_connection = True
        elif fault == "rubbish":
            self._send(200, b"<html>one moment, please</html>")
        elif isinstance(fault, int):
            self._send(fault, json.dumps(provider.error(fault)).encode())
        elif not provider.is_allowed(self.headers):
            self._send(401, json.dumps(provider.error(401)).encode())
        else:
            url = urlsplit(self.path)
            with provider.lock:
                found = provider.answer(url.path, dict(parse_qsl(url.query)))
            status = 200 if found is not None else 404
            self._send(status, json.dumps(provider.error(404) if found is None else found).encode())

    def _send(self, status: int, body: bytes) -> None:
        api = self.server.provider.api
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if status == 429 and api.retry_after is not None:
            self.send_header("Retry-After", api.retry_after)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

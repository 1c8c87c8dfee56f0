"""One open stream: server-sent events (the HTML standard) that wait until their client reads them."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from errno import EPIPE
from typing import TYPE_CHECKING, Any
from uuid import UUID

import psycopg2
from prometheus_client import Counter
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.auth.guard import Requires, current_principal
from app.auth.principals import Principal
from app.auth.proofs import Proof
from app.core import json_text
from app.core.db import tenancy
from app.core.db.transactions import transaction
from app.core.errors import AppError, Forbidden
from app.core.http.request import current_request
from app.events import service
from app.events.schemas import EventSchema

if TYPE_CHECKING:
    from app.streams.hub import Hub

HEARTBEAT = 15.0  # seconds without an event; then a comment is sent
MAX_UNSENT = 256 * 1024  # bytes
SEND_WITHIN = 30.0  # seconds for one part; a client that reads nothing holds no place for longer
RETRY = (1000, 5000)  # milliseconds until a client comes back; at random, so not all at once
PAGE = 20  # events; what a stream keeps while its client does not read them
SENT = Counter("stream_events_total", "Events that changes have sent to streams.", ["kind"])
DROPPED = Counter("streams_dropped_total", "Streams with too much that is not sent.", ["kind"])
HUB_STARTS = 0.1  # seconds
EVENT = EventSchema()
NO_EVENTS = service.FeedPage([], None)


def frame_of(event: Any) -> bytes:
    """A server-sent event of the feed, for a row of it."""
    return f"id: {event.position}\ndata: {json_text.dumps_text(EVENT.dump(event))}\n\n".encode()


class Stream:
    """A stream about one tenant, or about all (None). ``proof`` is its credential."""

    kind = ""
    types: Sequence[str] | None = ()  # the events that the hub must put; None: all

    def __init__(self, hub: Hub, access: Requires, tenant_id: UUID | None) -> None:
        principal, proof = current_principal(), current_request().proof
        assert isinstance(proof, Proof)  # noqa: S101 - the console and commands open no stream
        self.proof = proof
        self.own = principal.tenant_id
        self.actor_id = principal.actor.id.removeprefix("key:")
        self.names = {self.actor_id, str(self.own)}
        self.tenant_id = tenant_id
        self._hub = hub
        self._access = access
        self._unsent: deque[bytes] = deque()
        self._size = 0
        self._woken = threading.Event()
        self._is_ended = False

    def put(self, frame: bytes) -> None:
        """Send ``frame``, unless the stream has ended. Ends it if its client reads too slowly."""
        if self._is_ended:
            return
        self._size += len(frame)
        self._unsent.append(frame)
        SENT.labels(self.kind).inc()
        self._woken.set()
        if self._size > MAX_UNSENT:
            self._is_ended = True
            self._unsent.clear()
            DROPPED.labels(self.kind).inc()

    def wants(self, row: Any) -> bool:
        """Whether the hub must put an event."""
        return self.types is None or row.type in self.types

    def end(self, last: bytes = b"") -> None:
        self.put(last)
        self._is_ended = True

    def check(self, principal: Principal | None) -> None:
        """End the stream if its credential, which now has this principal, is refused."""
        try:
            if principal is None or principal.tenant_id != self.own:
                raise Forbidden
            self._access.check(principal)
        except Forbidden:
            self.end()

    def frames(self) -> Iterator[bytes]:
        """The bytes of the answer. The stream is open while they are iterated."""
        import gevent  # only the stream process has it

        yield b"retry: %d\n\n" % random.randint(*RETRY)  # noqa: S311
        try:
            self._hub.add(self)
        except AppError:  # others have been opened since the request began; the client comes back
            return
        try:
            for part in self._parts():
                with gevent.Timeout(SEND_WITHIN, BrokenPipeError(EPIPE, "It reads nothing.")):
                    yield part
        finally:
            self._hub.remove(self)

    def _parts(self) -> Iterator[bytes]:
        yield from self._first()
        while not self._is_ended or self._unsent:
            if self._woken.wait(HEARTBEAT):
                self._woken.clear()
                sent = b"".join(self._unsent)
                self._unsent.clear()
                self._size = 0
                yield sent
            else:
                yield b":\n\n"

    def _first(self) -> Iterator[bytes]:
        """The frames that are sent before the hub's frames."""
        return iter(())


class FlagStream(Stream):
    """Tells that a tenant's flags have changed (OFREP's ADR 8)."""

    kind = "flags"
    message = "refetchEvaluation"
    tenant_id: UUID

    def __init__(self, *place: Any, fingerprint: str, last_id: str | None) -> None:
        super().__init__(*place)
        self._told = fingerprint
        if last_id != self._tag(fingerprint):
            self.put(self._frame())

    def tell(self, fingerprint: str, named: set[str]) -> None:
        """Note the present flags, and the ids that events have named: rules compare the user."""
        if fingerprint != self._told or self.actor_id in named:
            self._told = fingerprint
            self.put(self._frame())

    def _tag(self, fingerprint: str) -> str:
        return self.proof.tag(fingerprint)

    def _frame(self) -> bytes:
        tag = self._tag(self._told)
        data = json_text.dumps({"type": self.message, "etag": f'"{tag}"'})
        return b"id: %b\nevent: message\ndata: %b\n\n" % (tag.encode(), data)


class AccessStream(FlagStream):
    """Tells that the snapshot of a tenant's decisions has changed."""

    kind = "access"
    message = "refetchSnapshot"

    def tell(self, fingerprint: str, _: set[str]) -> None:
        super().tell(fingerprint, set())

    def _tag(self, fingerprint: str) -> str:
        return fingerprint


class FeedStream(Stream):
    """The event feed after a position: first from the database, then as the hub reads it."""

    kind = "events"

    def __init__(self, *place: Any, types: list[str] | None, first: service.FeedPage) -> None:
        super().__init__(*place)
        self.types = types
        self._is_live = False
        self._page = first
        self._had = service.read_position(first.next_cursor, self.own)

    def wants(self, row: Any) -> bool:
        return self._is_live and row.position > self._had and super().wants(row)

    def _first(self) -> Iterator[bytes]:
        while True:
            page, self._page = self._page, NO_EVENTS
            yield from map(frame_of, page.items)
            position = self._hub.position
            if len(page.items) < PAGE and position is not None and position <= self._had:
                self._is_live = True  # the hub sends all that follows
                return
            if position is None:
                time.sleep(HUB_STARTS)
            try:
                with self._hub.app.app_context(), transaction():
                    tenancy.enter(tenancy.Scope(self.own))
                    self._page = service.list_events(
                        page.next_cursor, types=self.types, tenant_id=self.tenant_id, limit=PAGE
                    )
                    self._had = service.read_position(self._page.next_cursor, self.own)
            except (AppError, psycopg2.Error, PoolTimeout):
                self.end()  # the client comes back with its position
                return


class WaitingRead(Stream):
    """A read of the feed that waits for an event after ``position``, which the hub has told."""

    kind = "wait"

    def wait(self, seconds: float, types: list[str] | None, position: int | None) -> None:
        """Return after an event, after ``seconds``, or when the credential is refused."""
        self.types = types
        self._hub.add(self)
        try:
            if self._hub.position == position:
                self._woken.wait(seconds)
        finally:
            self._hub.remove(self)

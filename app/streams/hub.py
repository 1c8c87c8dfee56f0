"""The hub of a stream process: it reads each change once, and notifies the open streams.

The event feed is the source of truth. The hub reads it after each message of the sequencer, and
every :data:`LOOK_EVERY` seconds, so nothing is lost while Redis is unavailable. An event may change
its tenant's flags, and show that a credential is not valid any more.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import defaultdict
from contextlib import suppress
from typing import Any
from uuid import UUID

from flask import Flask
from prometheus_client import Gauge

from app.access import snapshot
from app.auth.proofs import Proof
from app.config import Config
from app.core.db import tenancy
from app.core.db.transactions import DATABASE_FAULTS, transaction
from app.core.errors import AppError, Forbidden, Unauthenticated, Unavailable
from app.core.jobs.signals import listening
from app.events import service
from app.events.sequencer import SEQUENCED
from app.flags import evaluation
from app.operations.background import LAST_SEEN, SEEN_EVERY
from app.streams.stream import AccessStream, FeedStream, FlagStream, Stream, frame_of

log = logging.getLogger(__name__)

EXTENSION = "streams"
LOOK_EVERY = 1.0  # seconds, without a message
GATHER = 0.05  # seconds; above signals.PAUSE
READ = 200  # events in one transaction
FLAGS_EVERY = 15.0  # seconds; expiries and the ends of trials change flags without an event
CREDENTIALS_EVERY = (25.0, 35.0)  # seconds
CHECKED = 100  # credentials in one turn
PAUSE = 1.0  # seconds, after a fault of PostgreSQL
FINGERPRINTS = {FlagStream: evaluation.fingerprints, AccessStream: snapshot.fingerprints}
OF_ALL_TENANTS = ("plan.", "permission.", "role.")  # events that may change what all streams tell
CREDENTIALS = ("api_key.", "membership.", "tenant.", "user.")  # events that may refuse some

OPEN = Gauge("streams_open", "Open event streams, and reads that wait.", ["kind"])


class StreamsFull(Unavailable):
    code = "streams_full"
    detail = "This process holds STREAM_LIMIT streams, or is ending."


class TooManyStreams(AppError):
    status = 429
    code = "too_many_streams"
    detail = "The tenant has STREAM_TENANT_LIMIT streams."


class Hub:
    """The streams of one process. Its thread, a greenlet under gevent, calls them."""

    def __init__(self, app: Flask) -> None:
        self.app = app
        self.is_stopping = False
        self.position: int | None = None  # of the last event that the streams were told; None: new
        self.streams: set[Stream] = set()
        self._of_tenant: dict[UUID | None, set[Stream]] = defaultdict(set)  # None: of all tenants
        self._of_proof: dict[Proof, set[Stream]] = defaultdict(set)
        self._due: dict[Proof, float] = {}  # when the credential is checked next
        self._changed: set[UUID] = set()  # tenants whose flags may have changed
        self._named: set[str] = set()  # ids of users, keys and tenants that events have named
        self._woken = threading.Event()
        self._flags_due = self._seen_due = 0.0

    def start(self) -> None:
        threading.Thread(target=self._run, daemon=True).start()

    def stop(self) -> None:
        """End all streams; clients come back after a second, to another process."""
        self.is_stopping = True
        for stream in [*self.streams]:
            stream.end(b"retry: 1000\n\n")

    def add(self, stream: Stream) -> None:
        """Hold an open stream; raises as :func:`check_room`."""
        check_room(self, stream.tenant_id)
        self.streams.add(stream)
        self._of_tenant[stream.tenant_id].add(stream)
        self._of_proof[stream.proof].add(stream)
        self._due[stream.proof] = 0.0  # it may have been refused since the request began
        OPEN.labels(stream.kind).inc()
        if isinstance(stream, FlagStream):
            self._changed.add(stream.tenant_id)  # its flags may have changed since they were read
            self._woken.set()

    def count(self, tenant_id: UUID) -> int:
        """How many streams of a tenant are open."""
        return len(self._of_tenant.get(tenant_id, ()))

    def remove(self, stream: Stream) -> None:
        self.streams.remove(stream)
        OPEN.labels(stream.kind).dec()
        self._of_tenant[stream.tenant_id].remove(stream)
        if not self._of_tenant[stream.tenant_id]:
            del self._of_tenant[stream.tenant_id]
        self._of_proof[stream.proof].remove(stream)
        if not self._of_proof[stream.proof]:
            del self._of_proof[stream.proof], self._due[stream.proof]

    def _run(self) -> None:
        with listening(self.app, SEQUENCED, self._woken.set):
            while not self.is_stopping:
                if self._woken.wait(LOOK_EVERY):
                    time.sleep(GATHER)
                self._woken.clear()
                try:
                    with self.app.app_context():
                        self._read_events()
                        self._check_flags()
                        self._check_credentials()
                        self._show_life()
                except DATABASE_FAULTS as fault:
                    log.warning("streams_failed", extra={"reason": type(fault).__name__})
                    time.sleep(PAUSE)
                except Exception:
                    log.exception("streams_failed")
                    self._begin_again()
                    time.sleep(PAUSE)

    def _begin_again(self) -> None:
        """Go on at the feed's end, check everything, and let readers come back with their ids."""
        self.position, self._flags_due = None, 0.0
        for stream in self.streams:
            if isinstance(stream, FeedStream):
                stream.end()

    def _read_events(self) -> None:
        """Tell the streams all events after the last position."""
        has_more = True
        while has_more:
            try:
                with tenancy.platform_transaction():
                    if self.position is None:
                        self.position = service.last_position()
                        self._due = dict.fromkeys(self._due, 0.0)
                    page = service.list_events(str(self.position), limit=READ)
            except AppError:  # after a restore, for example
                self._begin_again()
                continue
            for row in page.items:
                self._tell(row)
            self.position = int(page.next_cursor or 0)
            has_more = len(page.items) == READ

    def _tell(self, row: Any) -> None:
        """Send one event to the streams, and note its consequences for flags and credentials."""
        if row.type.startswith(OF_ALL_TENANTS):
            self._flags_due = 0.0
        self._changed.add(row.tenant_id)
        if row.type.startswith(CREDENTIALS):
            columns = row.data or row.after or {}
            named = filter(None, map(columns.get, ("id", "user_id")))
            self._named.update(map(str, named))
        frames: dict[UUID | None, bytes] = {}  # by tenant, as whom the credential reads; None: all
        for stream in (*self._of_tenant.get(row.tenant_id, ()), *self._of_tenant.get(None, ())):
            if stream.wants(row):
                if stream.own not in frames:
                    frames[stream.own] = frame_of(service.as_seen_by(stream.own, row))
                stream.put(frames[stream.own])

    def _check_flags(self) -> None:
        """Compare flags and decisions of changed tenants with what their streams were told."""
        now = time.monotonic()
        if now >= self._flags_due:
            watched = (one for one in self.streams if isinstance(one, FlagStream))
            self._changed.update(one.tenant_id for one in watched)
            self._flags_due = now + FLAGS_EVERY
        self._changed &= self._of_tenant.keys()
        changed = {*self._changed}
        for kind, find in FINGERPRINTS.items():
            of_kind = {
                tenant_id: streams
                for tenant_id in changed
                if (
                    streams := [
                        one for one in self._of_tenant.get(tenant_id, ()) if type(one) is kind
                    ]
                )
            }
            if of_kind:
                with tenancy.platform_transaction():
                    found = find(of_kind)
                for tenant_id, streams in of_kind.items():
                    for stream in streams:
                        stream.tell(found.get(tenant_id, ""), self._named)
        self._changed -= changed

    def _check_credentials(self) -> None:
        """End the streams whose credential is refused; check the rest of many in the next turn."""
        now, named = time.monotonic(), self._named
        if named:
            for proof, streams in self._of_proof.items():
                if not named.isdisjoint(next(iter(streams)).names):
                    self._due[proof] = now
        self._named = set()
        due = [proof for proof, at in self._due.items() if at <= now]
        for proof in due[:CHECKED]:
            principal = None
            with suppress(Unauthenticated, Forbidden), transaction():
                principal = proof.principal()
            for stream in [*self._of_proof.get(proof, ())]:
                stream.check(principal)
            if proof in self._due:
                self._due[proof] = now + random.uniform(*CREDENTIALS_EVERY)  # noqa: S311
        if len(due) > CHECKED:
            self._woken.set()

    def _show_life(self) -> None:
        if time.monotonic() >= self._seen_due:
            self._seen_due = time.monotonic() + SEEN_EVERY
            LAST_SEEN.put({EXTENSION: time.time()})


def check_room(hub: Hub, tenant_id: UUID | None) -> None:
    """Raise StreamsFull or TooManyStreams if no stream may be opened."""
    config: Config = hub.app.extensions["config"]
    if hub.is_stopping or len(hub.streams) >= config.stream_limit:
        raise StreamsFull
    if tenant_id and hub.count(tenant_id) >= config.stream_tenant_limit:
        raise TooManyStreams(headers={"Retry-After": "60"})

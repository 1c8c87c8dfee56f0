"""What the writer of log streams does in the database: claim, read the next batch, record.

The rows are the truth. Whoever claims a stream has a lease: if its process is killed, another one
claims the stream when the lease is over, and writes the same batch again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import uniform
from typing import Any, NamedTuple
from uuid import UUID

from app.audit.outbox import types_of
from app.core import json_text
from app.core.actors import SYSTEM_JOB
from app.core.clock import utcnow
from app.core.db import queries, tenancy
from app.core.db.statements import Statement
from app.core.db.transactions import transaction
from app.core.json_text import Json
from app.events.schemas import EventSchema
from app.events.service import as_seen_by, read_rows
from app.log_streams.formats import FORMATS
from app.log_streams.kinds import KINDS
from app.log_streams.kinds.kind import Batch, Kind, Limits, Record, Refused, Unavailable
from app.log_streams.models import LogStream, LogStreamProgress, LogStreamState
from app.log_streams.service import RUNNING, set_state
from app.webhooks.endpoints import encryption

TEST = "log_stream.tested"  # the type of a test's record
LEASE = 120  # seconds; more than an attempt takes
FAILURES = 3  # attempts after which the state is `error`
SHORTEST_WAIT, LONGEST_WAIT = 5.0, 3600.0  # seconds until the next attempt
PAGE = 1_000  # events that are read at once
GONE = "Events after its position were removed before they were written; rewind the stream."
EVENT = EventSchema()

CLAIM = Statement(
    "log_stream_progress.claim",
    "WITH due AS MATERIALIZED ("
    "  SELECT p.tenant_id, p.stream_id FROM log_stream_progress p"
    "  LEFT JOIN tenants t ON t.id = p.tenant_id"
    "  WHERE p.next_attempt_at <= now() AND (p.failures > 0) = :are_failing"
    "    AND coalesce(t.is_active, true)"
    "  ORDER BY p.next_attempt_at LIMIT :most FOR UPDATE OF p SKIP LOCKED"
    ") "
    "UPDATE log_stream_progress p SET claim = gen_random_uuid(),"
    "  next_attempt_at = now() + make_interval(secs => :lease)"
    " FROM due WHERE p.tenant_id = due.tenant_id AND p.stream_id = due.stream_id"
    " RETURNING p.tenant_id, p.stream_id, p.claim",
    prepare=False,
)


@dataclass(frozen=True)
class Claim:
    """A stream that this process may write, until its lease ends."""

    tenant_id: UUID
    stream_id: UUID
    claim: UUID

    @property
    def owner(self) -> UUID | None:
        """The stream's tenant; None for the platform."""
        return None if self.tenant_id == tenancy.PLATFORM_TENANT_ID else self.tenant_id


@dataclass(frozen=True)
class Work:
    """A batch to write; ``values`` is the progress after it."""

    kind: Kind
    config: dict[str, Json]
    secrets: dict[str, Json]
    batch: Batch
    values: dict[str, Any]

    def deliver(self) -> None:
        self.kind.deliver(self.batch, self.config, self.secrets)


def claim(most: int, *, are_failing: bool) -> list[Claim]:
    """Claim streams that are due, whose last attempt failed or not. A suspended tenant's wait."""
    with tenancy.platform_transaction():
        rows = CLAIM.all(most=most, are_failing=are_failing, lease=LEASE)
    return [Claim(*row) for row in rows]


def load(one: Claim) -> Work | None:
    """The next batch of a claimed stream, whose extent is fixed from now on; None for no event.

    Raises Refused and Unavailable.
    """
    with _scope_of(one):
        progress = queries.find_row(LogStreamProgress, **vars(one))
        stream = queries.find_row(LogStream, tenant_id=one.tenant_id, id=one.stream_id)
        if stream is None or progress is None:
            return None
        kind, now = KINDS[stream.kind], utcnow()
        batch = _read(one.owner, stream, progress, kind.limits)
        wait = kind.limits.pause if batch.is_full else kind.limits.seconds
        values: dict[str, Any] = {
            "position": batch.end,
            "batch_end": None,
            "batch_name": None,
            "next_attempt_at": now + timedelta(seconds=wait),
            "written_until": batch.until or now,
            "warned_at": None,
        }
        if not batch.records:
            _set(one, values)
            return None
        name = progress.batch_name or f"{now:%Y/%m/%d/%H%M%S.%f}-{batch.first}"
        if progress.batch_end is None:
            _set(one, {"batch_end": batch.end, "batch_name": name})
        values |= {"last_object": name, "last_position": str(batch.last)}
        secrets = _secrets(progress)
    return Work(kind, stream.config, secrets, Batch(name, batch.records), values)


def store(one: Claim, result: Mapping[str, Any] | Refused | Unavailable) -> None:
    """Store what came of an attempt: the progress after it, or why it failed.

    Nothing happens if the stream was rewound or claimed again meanwhile.
    """
    with _scope_of(one):
        stream = queries.find_locked(LogStream, tenant_id=one.tenant_id, id=one.stream_id)
        progress = queries.find_locked(LogStreamProgress, **vars(one))
        if stream is None or progress is None:
            return
        is_running = stream.state in RUNNING
        if isinstance(result, Refused | Unavailable):
            failures = min(progress.failures + 1, 1_000)
            values: dict[str, Any] = {"failures": failures, "last_error": str(result)}
            values["next_attempt_at"] = utcnow() + timedelta(seconds=_wait(failures, result))
            state, error = LogStreamState.ERROR, values["last_error"]
            if isinstance(result, Refused):
                state, values["next_attempt_at"] = LogStreamState.INVALID, None
            elif failures < FAILURES:
                state, error = LogStreamState(stream.state), stream.error
        else:
            state, error = LogStreamState.ACTIVE, None
            values = {**result, "written_at": utcnow(), "failures": 0, "last_error": None}
        if not is_running:  # it was paused meanwhile
            values["next_attempt_at"] = None
        elif stream.state != state:
            set_state(stream, state, error, actor=SYSTEM_JOB)
        _set(one, values)


def test(stream_id: str) -> None:
    """Write a record that says that it is a test, and store what came of it."""
    with tenancy.platform_transaction():
        stream = queries.find_row(LogStream, id=UUID(stream_id))
        progress = queries.find_row(LogStreamProgress, stream_id=UUID(stream_id))
    if stream is None or progress is None:
        return
    now = utcnow()
    text = {"type": TEST, "timestamp": now, "message": f"A test of the log stream {stream_id}."}
    batch = Batch(f"test-{now:%Y%m%dT%H%M%S.%f}", [Record(json_text.dumps(text), TEST, now)])
    error = None
    try:
        KINDS[stream.kind].deliver(batch, stream.config, _secrets(progress))
    except (Refused, Unavailable) as fault:
        error = str(fault)
    with tenancy.platform_transaction():
        key = {"tenant_id": stream.tenant_id, "stream_id": stream.id}
        queries.update_where(LogStreamProgress, key, {"tested_at": now, "test_error": error})


class _Read(NamedTuple):
    """Records, the shown positions of the first and last one, and the position that they end at.

    ``until`` is the last record's time if there may be more events; None: all were read.
    """

    records: list[Record]
    first: Any
    last: Any
    end: int
    until: datetime | None

    @property
    def is_full(self) -> bool:
        return self.until is not None


def _read(
    owner: UUID | None, stream: LogStream, progress: LogStreamProgress, limits: Limits
) -> _Read:
    """Read the events after the position; of a batch whose writing has begun, up to its end."""
    types = None
    if "*" not in stream.types:
        types = sorted({known for pattern in stream.types for known in types_of(pattern)})
    records, size, first, last = list[Record](), 0, None, None
    position, until = progress.position, None
    while True:
        rows = read_rows(position, types=types, tenant_id=owner, limit=PAGE)
        if rows and position < rows[0].removed_position:
            raise Refused(GONE)
        for row in rows:
            if row.id is None or (progress.batch_end or row.position) < row.position:
                continue
            seen = as_seen_by(owner, row)
            line = json_text.dumps(FORMATS[stream.format](EVENT.dump(seen)))
            size += len(line) + 1
            is_over = progress.batch_end is None and records and size > limits.size
            if is_over or len(records) == limits.records:
                return _Read(records, first, last, position, until)
            first, last = first or seen.position, seen.position
            records.append(Record(line, row.type, row.created_at))
            position, until = row.position, row.created_at
        if progress.batch_end is not None and (
            len(rows) < PAGE or rows[-1].position >= progress.batch_end
        ):
            return _Read(records, first, last, progress.batch_end, until or progress.written_until)
        if len(rows) < PAGE:
            end = rows[-1].last_position if rows else position
            return _Read(records, first, last, end, None)


def _wait(failures: int, fault: Exception) -> float:
    """Seconds until the next attempt; an answer can ask for more, up to an hour."""
    step: float = min(SHORTEST_WAIT * 2 ** min(failures - 1, 20), LONGEST_WAIT)
    asked = min(getattr(fault, "retry_after", 0.0), LONGEST_WAIT)
    return max(step * uniform(0.8, 1.0), asked)  # noqa: S311


def _secrets(progress: LogStreamProgress) -> dict[str, Json]:
    try:
        found: dict[str, Json] = json.loads(encryption.decrypt(progress.secrets))
        return found
    except (encryption.Undecryptable, encryption.SecretsKeyMissing):
        raise Unavailable("No key of SECRETS_KEY decrypts the stream's secrets.") from None


def _set(one: Claim, values: Mapping[str, object]) -> None:
    queries.update_where(LogStreamProgress, vars(one), values)


@contextmanager
def _scope_of(one: Claim) -> Iterator[None]:
    """A transaction that sees the rows of the stream's tenant only; all, for the platform's."""
    with transaction():
        tenancy.enter(tenancy.Scope(one.owner))
        yield

"""The writer's work in the database: claim a stream, read the next batch, record the result.

The rows are the truth. Whoever claims a stream has a lease: if its process is killed, another
process claims the stream when the lease is over, and writes the same batch again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from random import uniform
from typing import Any, NamedTuple
from uuid import UUID

from app.audit.outbox import types_of
from app.core import json_text
from app.core.actors import SYSTEM_JOB
from app.core.clock import utcnow
from app.core.db import queries, tenancy
from app.core.db.statements import Statement
from app.core.db.tenancy import owner_of
from app.core.db.transactions import transaction
from app.core.json_text import Json
from app.events.ocsf import to_ocsf
from app.events.schemas import EventSchema
from app.events.service import as_seen_by, read_rows
from app.log_streams.kinds import KINDS
from app.log_streams.kinds.kind import Batch, Failed, Limits, Record, Refused
from app.log_streams.models import RUNNING, LogFormat, LogStream, LogStreamProgress, LogStreamState
from app.log_streams.service import set_progress, set_state
from app.webhooks.endpoints import encryption

TEST = "log_stream.tested"  # the type of a test's record
LEASE = 120  # seconds; more than an attempt takes
FAILURES = 3  # attempts after which the state is `error`
SHORTEST_WAIT, LONGEST_WAIT = 5.0, 3600.0  # seconds until the next attempt
GONE = "Events after its position were removed before they were written; rewind the stream."
EVENT = EventSchema()

CLAIM = Statement(
    "log_stream_progress.claim",
    "WITH due AS MATERIALIZED ("
    "  SELECT p.tenant_id, p.stream_id FROM log_stream_progress p"
    "  LEFT JOIN tenants t ON t.id = p.tenant_id"
    "  WHERE p.next_attempt_at <= now() AND coalesce(t.is_active, true)"
    "  ORDER BY p.failures > 0, p.next_attempt_at LIMIT :most FOR UPDATE OF p SKIP LOCKED"
    ") "
    "UPDATE log_stream_progress p SET claim = gen_random_uuid(),"
    "  next_attempt_at = now() + make_interval(secs => :lease)"
    " FROM due WHERE p.tenant_id = due.tenant_id AND p.stream_id = due.stream_id"
    " RETURNING p.tenant_id, p.stream_id, p.claim",
    prepare=False,
)


class Claim(NamedTuple):
    """A stream that this process may write, until its lease ends."""

    tenant_id: UUID
    stream_id: UUID
    claim: UUID


def claim(most: int) -> list[Claim]:
    """Claim streams that are due, those first that do not fail. A suspended tenant's wait."""
    with tenancy.platform_transaction():
        return [Claim(*row) for row in CLAIM.all(most=most, lease=LEASE)]


def load(one: Claim) -> tuple[Callable[[], None], dict[str, Any]] | None:
    """The next batch of a claimed stream, and the progress after it; None if there is no event.

    The batch's extent is fixed from now on. Nothing is locked while events are read, because
    PostgreSQL never ends the transaction of a frozen process that does not take its result. Raises
    Failed.
    """
    with _scope_of(one):
        progress = queries.find_row(LogStreamProgress, **one._asdict())
        stream = queries.find_row(LogStream, tenant_id=one.tenant_id, id=one.stream_id)
        if stream is None or progress is None:
            return None
        if stream.state not in RUNNING:  # it was paused meanwhile
            _set(one, {"next_attempt_at": None})
            return None
        kind, now = KINDS[stream.kind], utcnow()
        records, end, may_be_more = _read(stream, progress, kind.limits)
        wait = kind.limits.pause if may_be_more else kind.limits.seconds
        values: dict[str, Any] = {
            "position": end,
            "batch_end": None,
            "batch_name": None,
            "next_attempt_at": now + timedelta(seconds=wait),
            "written_until": records[-1].created_at if records and may_be_more else now,
            "warned_at": None,
        }
        if not records:
            _set(one, values)
            return None
        name = progress.batch_name or f"{now:%Y/%m/%d/%H%M%S.%f}-{records[0].position}"
        if not _set(one, {"batch_end": end, "batch_name": name}):
            return None  # the stream was rewound or claimed again meanwhile
        values |= {"last_object": name, "last_position": str(records[-1].position)}
        settings = _settings(stream, progress)
    return partial(kind.deliver, Batch(name, records), settings), values


def store(one: Claim, result: Mapping[str, Any] | Failed) -> None:
    """Store the result of an attempt: the progress, or why it failed.

    Nothing happens if the stream has been rewound or claimed again since.
    """
    with _scope_of(one):
        stream = queries.find_locked(LogStream, tenant_id=one.tenant_id, id=one.stream_id)
        progress = queries.find_locked(LogStreamProgress, **one._asdict())
        if stream is None or progress is None:
            return
        values: dict[str, Any]
        if isinstance(result, Failed):
            failures, error = min(progress.failures + 1, 1_000), str(result)
            due = utcnow() + timedelta(seconds=_wait(failures, result.retry_after))
            values = {"failures": failures, "last_error": error, "next_attempt_at": due}
            state = LogStreamState(stream.state) if failures < FAILURES else LogStreamState.ERROR
            if isinstance(result, Refused):
                state = LogStreamState.INVALID
        else:
            state, error = LogStreamState.ACTIVE, None
            values = {**result, "written_at": utcnow(), "failures": 0, "last_error": None}
        is_running = stream.state in RUNNING  # or it was paused meanwhile
        if is_running and stream.state != state:
            set_state(stream, state, error, actor=SYSTEM_JOB)
        if not is_running or state is LogStreamState.INVALID:
            values["next_attempt_at"] = None
        _set(one, values)


def test(stream_id: str) -> None:
    """Write a record that says that it is a test, and store the result."""
    with tenancy.platform_transaction():
        stream = queries.find_row(LogStream, id=UUID(stream_id))
        progress = queries.find_row(LogStreamProgress, stream_id=UUID(stream_id))
    if stream is None or progress is None:
        return
    now = utcnow()
    text = {"type": TEST, "timestamp": now, "message": f"A test of the log stream {stream_id}."}
    batch = Batch(f"test-{now:%Y%m%dT%H%M%S.%f}", [Record(json_text.dumps(text), TEST, now, "")])
    error = None
    try:
        KINDS[stream.kind].deliver(batch, _settings(stream, progress))
    except Failed as fault:
        error = str(fault)
    with tenancy.platform_transaction():
        set_progress(stream, {"tested_at": now, "test_error": error})


def _read(
    stream: LogStream, progress: LogStreamProgress, limits: Limits
) -> tuple[list[Record], int, bool]:
    """The events after the position, where they end, and whether there may be more.

    If the writing of a batch has begun, the events end where the batch ends.
    """
    types, owner = None, owner_of(stream.tenant_id)
    if "*" not in stream.types:
        types = sorted({known for pattern in stream.types for known in types_of(pattern)})
    position, last = progress.position, progress.batch_end
    rows = read_rows(position, types=types, tenant_id=owner, limit=limits.records)
    if rows and position < rows[0].removed_position:
        raise Refused(GONE)
    to_format = to_ocsf if stream.format == LogFormat.OCSF else dict
    records, size = list[Record](), 0
    for row in rows:
        if row.id is None or row.position > (last or row.position):
            break
        seen = as_seen_by(owner, row)
        line = json_text.dumps(to_format(EVENT.dump(seen)))
        size += len(line) + 1
        if records and size > limits.size and last is None:
            return records, position, True
        records.append(Record(line, row.type, row.created_at, seen.position))
        position = row.position
    if len(records) == limits.records:
        return records, position, True
    if last is not None:
        return records, last, True
    return records, rows[0].last_position if rows else position, False


def _wait(failures: int, asked: float) -> float:
    """Seconds until the next attempt; an answer can ask for more, up to an hour."""
    step: float = min(SHORTEST_WAIT * 2 ** min(failures - 1, 20), LONGEST_WAIT)
    return max(step * uniform(0.8, 1.0), min(asked, LONGEST_WAIT))  # noqa: S311


def _settings(stream: LogStream, progress: LogStreamProgress) -> dict[str, Json]:
    """All settings, with the secrets and the stream's ``owner``. Raises Failed."""
    try:
        secrets = json.loads(encryption.decrypt(progress.secrets))
    except (encryption.Undecryptable, encryption.SecretsKeyMissing):
        raise Failed("No key of SECRETS_KEY decrypts the stream's secrets.") from None
    return {**stream.config, **secrets, "owner": str(owner_of(stream.tenant_id) or "platform")}


def _set(one: Claim, values: Mapping[str, object]) -> int:
    return queries.update_where(LogStreamProgress, one._asdict(), values)


@contextmanager
def _scope_of(one: Claim) -> Iterator[None]:
    """A transaction that sees the rows of the stream's tenant only; all, for the platform's."""
    with transaction():
        tenancy.enter(tenancy.Scope(owner_of(one.tenant_id)))
        yield

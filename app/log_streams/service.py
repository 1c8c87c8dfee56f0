"""Log streams: create, list, change, delete, pause, resume, rewind, test."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from app.audit.service import record, record_creation
from app.config import current_config
from app.core.actors import SYSTEM_JOB, Actor
from app.core.clock import utcnow
from app.core.db import queries
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.db.queries import Change
from app.core.db.statements import Statement
from app.core.db.tenancy import owner_of
from app.core.db.transactions import on_commit
from app.core.db.writes import insert_row
from app.core.errors import Conflict
from app.core.jobs.queues import JOBS
from app.core.json_text import Json
from app.events.service import find_start
from app.log_streams.kinds import load_config
from app.log_streams.models import RUNNING, LogFormat, LogStream, LogStreamProgress, LogStreamState
from app.webhooks.endpoints import encryption
from app.webhooks.endpoints.service import check_types, lock_owner

MAX_STREAMS = 10  # of a tenant, and of the platform
TEST = "app.log_streams.jobs.test_log_stream"
TEST_LASTS = 300  # seconds; the job's time-out
MARK_BEHIND = Statement(
    "log_streams.mark_behind",
    "UPDATE log_stream_progress SET warned_at = now()"
    " WHERE warned_at IS NULL AND written_until < :before RETURNING tenant_id, stream_id AS id",
)


class TooManyLogStreams(Conflict):
    code = "too_many_log_streams"
    detail = f"There can be at most {MAX_STREAMS} log streams; delete one first."


def get_stream(stream_id: UUID | str) -> LogStream:
    return queries.get_row(LogStream, stream_id)


def list_streams(
    paging: Paging = FIRST_PAGE, *, tenant_id: UUID | None = None, **equal: object
) -> Page:
    """One page of a tenant's log streams (of all, for the platform) with these values of columns."""
    return paginate(LogStream, paging, equal=equal, tenant_id=tenant_id)


def create(
    *,
    kind: str,
    config: Mapping[str, Json],
    types: Sequence[str],
    tenant_id: UUID | None = None,
    format: LogFormat = LogFormat.NATIVE,
    description: str = "",
    state: str = LogStreamState.ACTIVE.value,
    start: str | datetime = "now",
    actor: Actor,
) -> LogStream:
    """Create a stream; ``tenant_id`` None makes one of the platform.

    Raises SecretsKeyMissing, NotFound for an unknown tenant, TooManyLogStreams, PositionGone, and
    Invalid for settings, for a place in the feed, and for types that the tenant has no events of.
    """
    shown, secrets = load_config(kind, config)
    encrypted = encryption.encrypt(json.dumps(secrets))
    owner = lock_owner(tenant_id)
    check_types(types, owner)
    if queries.count_where(LogStream, tenant_id=owner) >= MAX_STREAMS:
        raise TooManyLogStreams
    values = {
        "tenant_id": owner,
        "kind": kind,
        "config": shown,
        "format": format.value,
        "types": sorted(set(types)),
        "description": description,
        "state": state,
        **actor.authorship,
    }
    stream = insert_row(LogStream, values)
    progress = {
        "tenant_id": owner,
        "stream_id": stream.id,
        "secrets": encrypted,
        "position": find_start(start, tenant_id),
        "next_attempt_at": utcnow() if state in RUNNING else None,
        "written_until": start if isinstance(start, datetime) else utcnow(),
    }
    insert_row(LogStreamProgress, progress)
    record_creation("log_stream.created", stream, actor=actor)
    return stream


def update(stream_id: UUID | str, values: Mapping[str, Json], *, actor: Actor) -> LogStream:
    """Change fields; a new ``config`` has all settings. Raises what :func:`create` does."""
    stream = queries.lock_row(LogStream, stream_id)
    changed = dict(values)
    if "types" in changed:
        changed["types"] = sorted(set(changed["types"]))
    if "format" in changed:
        changed["format"] = changed["format"].value
    check_types(changed.get("types", ()), stream.tenant_id)
    if "config" in changed:
        changed["config"], secrets = load_config(stream.kind, changed["config"])
        set_progress(stream, {"secrets": encryption.encrypt(json.dumps(secrets))})
    stream, change = queries.update_row(LogStream, stream, changed, actor_id=actor.id)
    if change is None and "config" in changed:
        change = Change({}, {"secrets": "changed"})  # nobody may read them
    record("log_stream.updated", stream, change, actor=actor)
    return stream


def delete(stream_id: UUID | str, *, actor: Actor) -> None:
    """Delete a stream; what it has written stays. Raises NotFound."""
    stream = queries.lock_row(LogStream, stream_id)
    queries.delete_row(LogStream, stream)
    record("log_stream.deleted", stream, Change(stream._asdict(), {}), actor=actor)


def pause(stream_id: UUID | str, *, actor: Actor) -> LogStream:
    """Write nothing until :func:`resume`; a batch whose writing has begun is finished."""
    stream = set_state(queries.lock_row(LogStream, stream_id), LogStreamState.PAUSED, actor=actor)
    set_progress(stream, {"next_attempt_at": None})
    return stream


def resume(stream_id: UUID | str, *, actor: Actor) -> LogStream:
    """Go on after the last written event, at once. Raises NotFound."""
    stream = set_state(queries.lock_row(LogStream, stream_id), LogStreamState.ACTIVE, actor=actor)
    set_progress(stream, {"next_attempt_at": utcnow(), "failures": 0, "last_error": None})
    return stream


def rewind(stream_id: UUID | str, *, start: str | datetime, actor: Actor) -> LogStream:
    """Go on at another place of the feed, with a new batch. Raises NotFound and PositionGone."""
    stream = queries.lock_row(LogStream, stream_id)
    values = {
        "position": find_start(start, owner_of(stream.tenant_id)),
        "batch_end": None,
        "batch_name": None,
        "claim": None,
        "warned_at": None,
        "next_attempt_at": utcnow() if stream.state in RUNNING else None,
    }
    set_progress(stream, values)
    record("log_stream.rewound", stream, Change({}, {"from": start}), actor=actor)
    return stream


def request_test(stream_id: UUID | str, *, actor: Actor) -> LogStream:
    """Queue a job that writes a marked record, in any state, unless a test is under way.

    Raises NotFound.
    """
    stream = queries.lock_row(LogStream, stream_id)
    record("log_stream.tested", stream, Change({}, {"kind": stream.kind}), actor=actor)
    on_commit(partial(JOBS[TEST].push_once, TEST_LASTS, str(stream.id)))
    return stream


ACTIONS = {
    LogStreamState.ACTIVE: "log_stream.resumed",
    LogStreamState.PAUSED: "log_stream.paused",
    LogStreamState.ERROR: "log_stream.failing",
    LogStreamState.INVALID: "log_stream.refused",
}


def set_state(
    stream: LogStream, state: LogStreamState, error: str | None = None, *, actor: Actor
) -> LogStream:
    """Set the state of a locked stream, and record it; nothing if it has this state already."""
    values = {"state": state.value, "error": error}
    stream, change = queries.update_row(LogStream, stream, values, actor_id=actor.id)
    record(ACTIONS[state], stream, change, actor=actor)
    return stream


def warn_behind() -> None:
    """Record once for each stream that events which it has not read will be removed."""
    before = utcnow() - timedelta(days=current_config().event_days)
    change = Change({}, {"kept_days": current_config().log_stream_days})
    for key in MARK_BEHIND.all(before=before):
        stream = queries.find_row(LogStream, **key._asdict())
        record("log_stream.behind", stream, change, actor=SYSTEM_JOB)


def set_progress(stream: LogStream, values: Mapping[str, object]) -> None:
    """Change values of a stream's progress."""
    key = {"tenant_id": stream.tenant_id, "stream_id": stream.id}
    queries.update_where(LogStreamProgress, key, values)

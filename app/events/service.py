"""The event feed: read what comes after a position, and single events."""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, lru_cache
from typing import Any
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from sqlalchemy import ARRAY, Select, Text, Uuid, any_, bindparam, func, select, true
from sqlalchemy.orm import aliased

from app.core.clock import rfc3339, utcnow
from app.core.db.pages import Page
from app.core.db.queries import visible_id
from app.core.db.statements import Statement
from app.core.db.tenancy import current_scope, in_platform_scope
from app.core.errors import AppError, Invalid, Location, NotFound, value_error
from app.core.json_text import Json
from app.events.models import Event, EventFeed
from app.invitations.derived_tokens import pending_tokens
from app.tenants.models import Tenant

PREFIX = "evt_"  # of an event's id; its UUID's 32 hexadecimal digits follow
DEFAULT_LIMIT, MAX_LIMIT = 100, 1000
HIDDEN_ACTOR = "platform"  # what a tenant sees in place of the platform's people and keys

AFTER, FROM = ("query", "after"), ("body", "from")
WITH_TOKENS = ("invitation.created", "invitation.resent")
NONCE_SIZE = 6  # bytes; with it a cursor needs no padding in base 64
cipher = lru_cache(maxsize=4)(AESSIV)

FIND_FEED = Statement("event_feed.find", select(EventFeed))
# Ids begin with a time. Events of transactions that commit late have lower ids and higher positions.
FIND_FIRST_OF = Statement(
    "events.find_first_of",
    "SELECT min(position) FROM (SELECT position FROM events"
    " WHERE id >= CAST(:id AS uuid) ORDER BY id LIMIT 1000) AS first",
)
COLUMNS = (*Event.__table__.columns, Tenant.slug, Tenant.idp_org_id)
FIND_EVENTS = Statement(
    "events.find_many",
    select(*COLUMNS, EventFeed.cursor_key)
    .select_from(Event)
    .join(EventFeed, true())
    .outerjoin(Tenant, Tenant.id == Event.tenant_id)
    .where(Event.id == any_(bindparam("ids", type_=ARRAY(Uuid)))),
)


class PositionGone(AppError):
    """410: events after the position have been removed for their age; ``oldest`` is the first left."""

    status = 410
    code = "position_gone"
    keys = {
        "oldest": {
            "type": ["integer", "string"],
            "description": "The oldest position that is left.",
        }
    }

    def __init__(self, oldest: int | str = 1234) -> None:
        super().__init__(
            "Events after this position are older than EVENT_DAYS and have been removed."
            f" The oldest position is {oldest}; without `after` the feed begins there."
        )
        self.oldest = oldest

    def body(self) -> dict[str, Json]:
        return {**super().body(), "oldest": self.oldest}


@dataclass(frozen=True)
class FeedPage(Page):
    """Events in the order of their positions.

    ``next_cursor`` is the ``after`` of the next page, also on the last page that there is.
    """

    def first(self, count: int) -> Page:
        if count >= len(self.items):
            return self
        items = self.items[:count]
        return replace(self, items=items, next_cursor=str(items[-1].position))


def list_events(
    after: str | None = None,
    *,
    types: Sequence[str] | None = None,
    tenant_id: UUID | None = None,
    limit: int = DEFAULT_LIMIT,
) -> FeedPage:
    """The first events after a position, at most ``limit``; otherwise the oldest events.

    ``next_cursor`` also moves on where other events have taken positions. Raises Invalid for a text
    that is not a position, and for a position that no event has yet (after a restore, for example);
    PositionGone; and NotFound for another tenant than the scope's.
    """
    own = current_scope().tenant_id
    shown = own if tenant_id is None else visible_id(tenant_id)
    start = read_position(after, own)
    found = read_rows(start, types=types, tenant_id=shown, limit=limit)
    if not found:
        return FeedPage([], after, "events")
    feed = found[0]
    if after is not None and start < feed.removed_position:
        oldest = feed.removed_position + 1
        raise PositionGone(_shown_position(oldest, feed.cursor_key, own, is_event=True))
    if start > feed.last_position:
        raise Invalid(value_error(AFTER, "no event has this position yet", after))
    rows = _with_tokens([row for row in found if row.id is not None])
    items = [as_seen_by(own, row) for row in rows]
    if len(items) == limit:
        end = items[-1].position
    else:
        end = _shown_position(feed.last_position, feed.cursor_key, own, is_event=False)
    return FeedPage(items, str(end), "events")


def read_rows(
    position: int, *, types: Sequence[str] | None, tenant_id: UUID | None, limit: int
) -> list[Any]:
    """The first rows after a position, without tokens. Each has the state of the feed too.

    Where no event follows, one row has only that state; there is none before the first event.
    """
    values: dict[str, object] = {"after": position, "limit": limit}
    if tenant_id is not None:
        values["tenant_id"] = tenant_id
    if types is not None:
        values["types"] = list(types)
    return _feed(of_tenant=tenant_id is not None, of_types=types is not None).all(**values)


def find_start(start: str | datetime, tenant_id: UUID | None) -> int:
    """The position after which a reader begins: ``now``, ``beginning``, a position, or a time.

    For a time the reader also gets some events of the minute before it. Raises Invalid, also for a
    time in the future, and PositionGone.
    """
    if isinstance(start, datetime) and start > utcnow():
        raise Invalid(value_error(FROM, "must not be in the future", rfc3339(start)))
    feed: EventFeed | None = FIND_FEED.first()
    if feed is None or start == "beginning":
        return 0 if feed is None else feed.removed_position
    if isinstance(start, datetime):
        milliseconds = max(0, int((start.timestamp() - 60) * 1000))
        with in_platform_scope():  # the index has the events of all tenants
            found = FIND_FIRST_OF.scalar(id=str(UUID(int=milliseconds << 80)))
        return feed.last_position if found is None else found - 1
    if start == "now":
        return feed.last_position
    position = read_position(start, tenant_id, FROM)
    if position > feed.last_position:
        raise Invalid(value_error(FROM, "no event has this position yet", start))
    if position < feed.removed_position:
        oldest = feed.removed_position + 1
        raise PositionGone(_shown_position(oldest, feed.cursor_key, tenant_id, is_event=True))
    return position


def get_event(event_id: str) -> Any:
    """The event; raises NotFound, also for an event without a position."""
    own = current_scope().tenant_id
    found = FIND_EVENTS.first(ids=[_parse_id(event_id)])
    if found is None or own not in (None, found.tenant_id):
        raise NotFound.of("event")
    return as_seen_by(own, *_with_tokens([found]))


def find_events(ids: Sequence[UUID]) -> dict[UUID, Any]:
    """Events by their UUIDs, for :func:`as_seen_by`; those that are gone are absent."""
    return {row.id: row for row in _with_tokens(FIND_EVENTS.all(ids=list(ids)))}


def last_position() -> int:
    """The last position that was given; 0 for none."""
    feed: EventFeed | None = FIND_FEED.first()
    return 0 if feed is None else feed.last_position


def as_seen_by(tenant_id: UUID | None, row: Any) -> Any:
    """The event as its tenant sees it; unchanged for the platform, which is None."""
    if tenant_id is None:
        return row
    return row._replace(
        position=_shown_position(row.position, row.cursor_key, tenant_id, is_event=True),
        actor=HIDDEN_ACTOR if row.is_platform_actor else row.actor,
    )


def _with_tokens(rows: Sequence[Any]) -> Sequence[Any]:
    """The events; those of invitations with the token, which no table has, while it is valid."""
    known = {row.id: row.data or row.after for row in rows if row.type in WITH_TOKENS and row.after}
    if not known:
        return rows
    tokens = pending_tokens([UUID(each["id"]) for each in known.values()])
    for row_id, each in known.items():
        known[row_id] = {**each, **tokens.get((each["id"], each["rotation"]), {})}
    return [row._replace(data=known.get(row.id, row.data)) for row in rows]


def shown_position(position: int, tenant_id: UUID | None) -> int | str:
    """The position as the platform, or a tenant, sees it; :func:`read_position` reads it."""
    feed: EventFeed | None = FIND_FEED.first()
    if feed is None:
        return position
    return _shown_position(position, feed.cursor_key, tenant_id, is_event=False)


def _shown_position(
    position: int, key: bytes, tenant_id: UUID | None, *, is_event: bool
) -> int | str:
    """The position; for a tenant encrypted, because plain positions would reveal others' volume.

    The text for an event is always the same. Any other cursor is a new text each time, so it does
    not reveal whether others' events have taken positions since the last.
    """
    if tenant_id is None:
        return position
    nonce = bytes(NONCE_SIZE) if is_event else secrets.token_bytes(NONCE_SIZE)
    sealed = cipher(key).encrypt(position.to_bytes(8), [tenant_id.bytes, nonce])
    return base64.urlsafe_b64encode(nonce + sealed).decode()


def read_position(after: str | None, tenant_id: UUID | None, loc: Location = AFTER) -> int:
    """The position that a credential of the tenant or the platform has sent; 0 if there is none.

    Raises Invalid.
    """
    if after is None:
        return 0
    if tenant_id is None:
        if after.isascii() and after.isdecimal() and len(after) <= 18:
            return int(after)
        reason = "this is no position; send the next_cursor of an answer"
        raise Invalid(value_error(loc, reason, after))
    feed = FIND_FEED.first()
    if feed is None:
        raise Invalid(value_error(loc, "no event has a position yet", after))
    try:
        sealed = base64.urlsafe_b64decode(after.encode("ascii"))
        nonce, sealed = sealed[:NONCE_SIZE], sealed[NONCE_SIZE:]
        return int.from_bytes(cipher(feed.cursor_key).decrypt(sealed, [tenant_id.bytes, nonce]))
    except (ValueError, binascii.Error, InvalidTag):
        reason = "this is no position that the feed has shown to this tenant; send its next_cursor"
        raise Invalid(value_error(loc, reason, after)) from None


def _parse_id(event_id: str) -> UUID:
    digits = event_id.removeprefix(PREFIX)
    try:
        parsed = UUID(digits)
    except ValueError:
        raise NotFound.of("event") from None
    if event_id != f"{PREFIX}{parsed.hex}":
        raise NotFound.of("event")
    return parsed


@cache
def _feed(*, of_tenant: bool, of_types: bool) -> Statement:
    """Events after a position. Each row has the feed's state; without events there is one row."""
    clause = select(*COLUMNS).outerjoin(Tenant, Tenant.id == Event.tenant_id)
    clause = clause.where(Event.position > bindparam("after"))
    if of_tenant:
        clause = clause.where(Event.tenant_id == bindparam("tenant_id"))
    if of_types:
        clause = clause.where(Event.position.in_(_first_of_types(of_tenant=of_tenant)))
    events = clause.order_by(Event.position).limit(bindparam("limit")).subquery("found")
    columns = [column for column in EventFeed.__table__.columns if column.name != "id"]
    feed = (
        select(*columns, *events.c)
        .select_from(EventFeed.__table__.outerjoin(events, true()))
        .order_by(events.c.position)
    )
    # The best plan for types depends on how many events are wanted.
    return Statement("events.list", feed, prepare=not of_types)


def _first_of_types(*, of_tenant: bool) -> Select[tuple[int]]:
    """The first positions of the types: the first of each type by its index, then the first of all.

    So a type that is rare is found without reading the events of the others.
    """
    types = func.unnest(bindparam("types", type_=ARRAY(Text)))
    wanted = types.table_valued("type", name="wanted").render_derived()
    event = aliased(Event.__table__)
    conditions = [event.c.type == wanted.c.type, event.c.position > bindparam("after")]
    if of_tenant:
        conditions.append(event.c.tenant_id == bindparam("tenant_id"))
    each = (
        select(event.c.position)
        .where(*conditions)
        .order_by(event.c.position)
        .limit(bindparam("limit"))
        .lateral("each")
    )
    return (
        select(each.c.position)
        .select_from(wanted.join(each, true()))
        .order_by(each.c.position)
        .limit(bindparam("limit"))
    )

"""Reading, locking and writing what is known of the identity provider's objects.

Whoever changes an object holds its lock until the transaction ends. Locks are taken in one
order, memberships before users before organizations, so nobody waits in a circle. What connects
a user with an organization is written under the user's lock and at least a shared one of the
organization; an organization's own event holds it alone. Events of different people go on side
by side.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import Any, NamedTuple

from sqlalchemy import Select, bindparam, select, text, tuple_
from sqlalchemy.dialects.postgresql import ARRAY, insert
from sqlalchemy.types import Integer

from app.extensions import db
from app.identity_sync.merge_state import State
from app.webhooks.models import IdentityObject


class Kind(StrEnum):
    """The kinds of objects, in the order in which they are locked."""

    MEMBERSHIP = "membership"
    USER = "user"
    ORGANIZATION = "organization"


class Key(NamedTuple):
    """One object of one source."""

    kind: Kind
    object_id: str


class Pair(NamedTuple):
    """A user and an organization of one source."""

    organization_id: str
    user_id: str


BUCKETS = 1024
"""Locks per kind: objects that share one merely wait for each other. It bounds how many locks a
long list of members takes at once; PostgreSQL has room for some thousands."""
_LOCK_SPACE = 7_301

_LOCK = text(
    "SELECT pg_advisory_xact_lock(space, bucket) FROM unnest(:spaces, :buckets) AS t(space, bucket)"
).bindparams(bindparam("spaces", type_=ARRAY(Integer)), bindparam("buckets", type_=ARRAY(Integer)))
_LOCK_SHARED = text(_LOCK.text.replace("_lock(", "_lock_shared(")).bindparams(
    bindparam("spaces", type_=ARRAY(Integer)), bindparam("buckets", type_=ARRAY(Integer))
)
_new = insert(IdentityObject)
_SAVE = _new.on_conflict_do_update(
    index_elements=["source", "kind", "object_id"],
    set_={
        name: _new.excluded[name]
        for name in (
            "organization_id",
            "user_id",
            "is_deleted",
            "is_waiting",
            "state",
            "updated_at",
        )
    },
)


class Objects:
    """The objects that one delivery is about, with their states before it and now."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.before: dict[Key, State] = {}
        self.now: dict[Key, State] = {}
        self._waiting: set[Key] = set()
        self._changed: set[Key] = set()

    def lock(self, keys: Iterable[Key], *, shared: bool = False) -> None:
        """Wait for the objects' locks."""
        places = sorted({self._lock_place(key) for key in keys})
        if places:
            spaces, buckets = zip(*places, strict=True)
            statement = _LOCK_SHARED if shared else _LOCK
            db.session.execute(statement, {"spaces": list(spaces), "buckets": list(buckets)})

    def load(self, keys: Collection[Key]) -> None:
        """Read what is known; an object that is not known yet has an empty state."""
        missing = [key for key in dict.fromkeys(keys) if key not in self.now]
        wanted = tuple_(IdentityObject.kind, IdentityObject.object_id).in_(
            [(key.kind.value, key.object_id) for key in missing]
        )
        if missing:
            self._read(select(IdentityObject).where(wanted))
        for key in missing:
            if key not in self.now:
                self._remember(key, State())

    def memberships_of_user(self, user_id: str) -> list[Pair]:
        """Read the memberships that a user has or had; their pairs."""
        return self._pairs(
            self._read(select(IdentityObject).where(IdentityObject.user_id == user_id))
        )

    def memberships_of_organization(self, organization_id: str) -> list[Pair]:
        """Read the memberships of an organization; their pairs."""
        return self._pairs(
            self._read(
                select(IdentityObject).where(IdentityObject.organization_id == organization_id)
            )
        )

    def memberships_of_pairs(self, pairs: Collection[Pair]) -> None:
        """Read all memberships that connect these users and organizations."""
        if pairs:
            columns = tuple_(IdentityObject.organization_id, IdentityObject.user_id)
            self._read(select(IdentityObject).where(columns.in_(list(pairs))))

    def connections(self) -> dict[Pair, list[Key]]:
        """The memberships read so far, by what they connect."""
        found: dict[Pair, list[Key]] = {}
        for key, state in self.now.items():
            if key.kind is Kind.MEMBERSHIP and (pair := pair_of(state)) is not None:
                found.setdefault(pair, []).append(key)
        return found

    def mark_changed(self, key: Key) -> None:
        """Have the object written by :meth:`save`."""
        self._changed.add(key)

    def mark_waiting(self, pairs: Collection[Pair], waiting: Collection[Pair]) -> None:
        """Remember which of these pairs' memberships cannot be shown yet."""
        connections = self.connections()
        for pair in pairs:
            for key in connections.get(pair, []):
                if (key in self._waiting) is not (pair in waiting):
                    self._changed.add(key)
                    self._waiting ^= {key}

    def save(self) -> None:
        """Write the objects that changed."""
        if self._changed:
            db.session.execute(_SAVE, [self._row(key) for key in sorted(self._changed)])

    def _row(self, key: Key) -> dict[str, Any]:
        state = self.now[key]
        pair = pair_of(state) if key.kind is Kind.MEMBERSHIP else None
        return {
            "source": self.source,
            "kind": key.kind.value,
            "object_id": key.object_id,
            "organization_id": pair.organization_id if pair else None,
            "user_id": pair.user_id if pair else None,
            "is_deleted": state.place is not None and not state.exists,
            "is_waiting": key in self._waiting,
            "state": state.as_json(),
        }

    def _lock_place(self, key: Key) -> tuple[int, int]:
        name = f"{self.source} {key.object_id}".encode()
        return _LOCK_SPACE + list(Kind).index(key.kind), zlib.crc32(name) % BUCKETS

    def _read(self, statement: Select[Any]) -> list[Key]:
        of_source = statement.where(IdentityObject.source == self.source)
        found = []
        for row in db.session.execute(
            of_source.execution_options(populate_existing=True)
        ).scalars():
            key = Key(Kind(row.kind), row.object_id)
            found.append(key)
            if key not in self.now:
                self._remember(key, State.from_json(row.state))
                self._waiting |= {key} if row.is_waiting else set()
        return found

    def _remember(self, key: Key, state: State) -> None:
        self.before[key] = state
        self.now[key] = state.copy()

    def _pairs(self, keys: Iterable[Key]) -> list[Pair]:
        pairs = (pair_of(self.now[key]) for key in keys)
        return list(dict.fromkeys(pair for pair in pairs if pair is not None))


def pair_of(membership: State) -> Pair | None:
    """What a membership connects, once both are known."""
    organization_id, user_id = membership.get("organization_id"), membership.get("user_id")
    return Pair(organization_id, user_id) if organization_id and user_id else None

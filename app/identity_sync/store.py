"""Locks, reads and writes :class:`IdentityObject`, the known states of a provider's objects.

An event's locks are taken by one statement, in one order: the source (exclusive for an
organization's event, else shared), then memberships, users, invitations and SSO connections. So the
events of different people are applied side by side, and an organization's event sees all that waits
for it.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, replace
from enum import StrEnum
from typing import NamedTuple

from app.core.clock import utcnow
from app.core.db.bulk import as_arrays
from app.core.db.statements import Statement
from app.core.db.writes import insert_arrays
from app.domains.domain_names import domain_of, with_reversed_labels
from app.identity_sync.merge_state import State, verified_email
from app.identity_sync.models import IdentityObject

LOCK = Statement(
    "identity_objects.lock",
    """
        SELECT
            CASE WHEN shared THEN CAST(pg_advisory_xact_lock_shared(space, bucket) AS text)
                ELSE CAST(pg_advisory_xact_lock(space, bucket) AS text) END,
            ARRAY(
                SELECT idp_org_id FROM deleted_organizations
                WHERE idp_org_id = ANY (CAST(:organization_ids AS text[]))
            ) AS deleted_organization_ids
        FROM unnest(
            CAST(:spaces AS integer[]), CAST(:buckets AS integer[]), CAST(:shared AS boolean[])
        ) AS lock (space, bucket, shared)
        """,
)
# The last part of the union: of an organization without a tenant, the memberships and their users.
LOAD = Statement(
    "identity_objects.load",
    """
        SELECT kind, object_id, is_waiting, state FROM identity_objects
        WHERE source = :source AND (kind, object_id) IN (
            SELECT * FROM unnest(CAST(:kinds AS text[]), CAST(:object_ids AS text[])) AS named
            UNION
            SELECT kind, object_id FROM identity_objects JOIN unnest(
                CAST(:pair_organization_ids AS text[]), CAST(:pair_user_ids AS text[])
            ) AS pair (organization_id, user_id) USING (organization_id, user_id)
            WHERE source = :source
            UNION
            SELECT kind, object_id FROM identity_objects
            WHERE source = :source AND user_id = ANY (CAST(:user_ids AS text[]))
            UNION
            SELECT wanted.* FROM identity_objects AS stored CROSS JOIN LATERAL (
                VALUES (stored.kind, stored.object_id), ('user', stored.user_id)
            ) AS wanted
            WHERE source = :source AND organization_id = ANY (CAST(:organization_ids AS text[]))
                AND NOT EXISTS (SELECT FROM tenants WHERE idp_org_id = stored.organization_id)
        )
        """,
)
_new = insert_arrays(IdentityObject.__table__)
SAVE = Statement(
    "identity_objects.save",
    _new.on_conflict_do_update(
        index_elements=["source", "kind", "object_id"],
        set_={
            column.name: column
            for column in _new.excluded
            if column.name not in ("source", "kind", "object_id", "created_at")
        },
    ),
)


class Kind(StrEnum):
    """The kinds of objects of an identity provider, in the order in which they are locked."""

    MEMBERSHIP = "membership"
    USER = "user"
    INVITATION = "invitation"
    SSO_CONNECTION = "sso_connection"
    ORGANIZATION = "organization"


class Key(NamedTuple):
    """One object of a source."""

    kind: Kind
    object_id: str


class Pair(NamedTuple):
    """An organization and a user of a source: a membership connects them."""

    organization_id: str
    user_id: str


BUCKETS = 1024
"""Advisory locks per kind. Objects in one bucket wait for each other. PostgreSQL has room for some
thousands of locks, and one event may list many members."""
LOCK_SPACE = 7_301
KINDS_AFTER_SOURCE = {kind: LOCK_SPACE + place for place, kind in enumerate(Kind, start=1)}
MIRRORED = (Kind.INVITATION, Kind.SSO_CONNECTION)
"""What an organization has besides members. ``user_id`` is who has accepted an invitation."""


class Objects:
    """The objects that a delivery is about, with their states before it (``before``) and ``now``."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.before: dict[Key, State] = {}
        self.now: dict[Key, State] = {}
        self.changed: set[Key] = set()  # what :meth:`save` writes
        self.waiting: set[Key] = set()  # those that wait for another object

    def take(
        self,
        keys: Iterable[Key],
        pairs: Collection[Pair] = (),
        organization_ids: Collection[str] = (),
    ) -> set[str]:
        """Lock and read the objects ``keys``, and the users and all memberships of ``pairs``.

        All memberships are read of each user among the keys, and all memberships with their users
        of each organization without a tenant. Unknown objects are empty. The locks last until the
        transaction ends. Returns those of ``organization_ids`` whose tenant was deleted.
        """
        keys = list(keys)
        users = [Key(Kind.USER, pair.user_id) for pair in pairs]
        wanted = list(dict.fromkeys([*keys, *users]))
        deleted = self._lock(wanted, organization_ids)
        organizations = [key.object_id for key in keys if key.kind is Kind.ORGANIZATION]
        rows = LOAD.all(
            source=self.source,
            kinds=[key.kind.value for key in wanted],
            object_ids=[key.object_id for key in wanted],
            pair_organization_ids=[pair.organization_id for pair in pairs],
            pair_user_ids=[pair.user_id for pair in pairs],
            user_ids=[key.object_id for key in keys if key.kind is Kind.USER],
            organization_ids=organizations,
        )
        for row in rows:
            key = Key(Kind(row.kind), row.object_id)
            if row.is_waiting and key not in self.now:
                self.waiting.add(key)
            self._add(key, State.from_json(row.state))
        of_new = [pair for id_ in organizations for pair in self.pairs_of_organization(id_)]
        for key in [*wanted, *(Key(Kind.USER, pair.user_id) for pair in of_new)]:
            self._add(key, State())
        return deleted

    def connections(self) -> dict[Pair, list[Key]]:
        """The memberships that are loaded, by what they connect."""
        found: dict[Pair, list[Key]] = {}
        for key, state in self.now.items():
            if key.kind is Kind.MEMBERSHIP and (pair := pair_of(state)) is not None:
                found.setdefault(pair, []).append(key)
        return found

    def pairs_of_organization(self, organization_id: str) -> list[Pair]:
        """The organizations and users that the loaded memberships of an organization connect."""
        return [pair for pair in self.connections() if pair.organization_id == organization_id]

    def mark_waiting(self, pairs: Collection[Pair], waiting: Collection[Pair]) -> None:
        """Record which memberships of ``pairs`` wait, and which loaded users have no membership."""
        connections = self.connections()
        for pair in pairs:
            for key in connections.get(pair, []):
                self.set_waiting(key, pair in waiting)
        members = {pair.user_id for pair in connections}
        for key, state in self.now.items():
            if key.kind is Kind.USER:
                self.set_waiting(key, state.exists and key.object_id not in members)

    def set_waiting(self, key: Key, is_waiting: bool) -> None:
        """Record whether an object waits for another object."""
        if (key in self.waiting) is not is_waiting:
            self.changed.add(key)
            self.waiting ^= {key}

    def save(self) -> None:
        if self.changed:
            SAVE.execute(**as_arrays([self._row(key) for key in sorted(self.changed)]))

    def _lock(self, keys: Sequence[Key], organization_ids: Collection[str]) -> set[str]:
        is_shared = all(key.kind is not Kind.ORGANIZATION for key in keys)
        places = {
            (KINDS_AFTER_SOURCE[key.kind], self._bucket(key.object_id))
            for key in keys
            if key.kind is not Kind.ORGANIZATION
        }
        locks = [
            {"spaces": LOCK_SPACE, "buckets": self._bucket(""), "shared": is_shared},
            *(
                {"spaces": space, "buckets": bucket, "shared": False}
                for space, bucket in sorted(places)
            ),
        ]
        row = LOCK.one(**as_arrays(locks), organization_ids=list(organization_ids))
        return set(row.deleted_organization_ids)

    def _row(self, key: Key) -> dict[str, object]:
        state, now = self.now[key], utcnow()
        pair = pair_of(state) if key.kind is Kind.MEMBERSHIP else None
        if key.kind in MIRRORED:
            pair = Pair(state.get("organization_id"), state.get("accepted_user_id"))
        email = verified_email(state) if key.kind is Kind.USER else None
        domain = email and domain_of(email)
        return {
            "source": self.source,
            "kind": key.kind.value,
            "object_id": key.object_id,
            "organization_id": pair.organization_id if pair else None,
            "user_id": pair.user_id if pair else None,
            "verified_domain": with_reversed_labels(domain) if domain else None,
            "is_deleted": state.place is not None and not state.exists,
            "is_waiting": key in self.waiting,
            "state": asdict(state),
            "created_at": now,
            "updated_at": now,
        }

    def _bucket(self, object_id: str) -> int:
        return zlib.crc32(f"{self.source} {object_id}".encode()) % BUCKETS

    def _add(self, key: Key, state: State) -> None:
        """Take over an object's state, unless it is already loaded."""
        if key not in self.now:
            self.before[key] = state
            self.now[key] = replace(state, attributes=dict(state.attributes))


def pair_of(membership: State) -> Pair | None:
    """The organization and the user of a membership, once both are known."""
    organization_id, user_id = membership.get("organization_id"), membership.get("user_id")
    return Pair(organization_id, user_id) if organization_id and user_id else None

"""Connections: create, find, change, rotate the token, delete."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from sqlalchemy import bindparam, func, select

from app.audit.service import record, record_creation
from app.auth.keys import digest_of
from app.auth.permissions import ALL, Permission, Role
from app.connections.models import ScimAccessToken, ScimConnection, ScimRequest
from app.core.actors import Actor
from app.core.clock import utcnow
from app.core.db import queries
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.db.queries import Change, check_precondition, visible_id
from app.core.db.statements import Statement
from app.core.db.writes import insert_row
from app.core.errors import Conflict, Invalid, PermissionDenied, value_error
from app.memberships import owners
from app.roles import authority, role_assignments
from app.scim.models import ScimGroup, ScimUser
from app.tenants.models import Tenant

TOKEN_PREFIX = "scim_"  # noqa: S105
PREFIX_LENGTH = 12  # characters
MAX_CONNECTIONS = 10  # of a tenant
HIDDEN = frozenset((
    "digest", "old_digest", "last_request_at", "request_count", "error_count", "last_error",
    "last_error_at",
))  # fmt: skip
"""Columns that the audit trail does not have: secrets, and what each request changes."""
EXERCISED = (Permission.USERS_WRITE, Permission.MEMBERSHIPS_WRITE)
"""What whoever holds a connection's token can do by it."""
GIVING = {"default_role", "group_roles", "public_keys"}
"""Fields that give a connection, or who signs for it, more than it had."""


def _count(model: Any, *conditions: Any) -> Any:
    of_connection = (
        model.tenant_id == ScimConnection.tenant_id,
        model.connection_id == ScimConnection.id,
    )
    return select(func.count()).where(*of_connection, *conditions).scalar_subquery()


COUNTS = (
    _count(ScimUser, ScimUser.deleted_at.is_(None)).label("user_count"),
    _count(ScimGroup).label("group_count"),
)

LIST_REQUESTS = Statement(
    "scim_requests.list",
    select(ScimRequest)
    .where(
        ScimRequest.tenant_id == bindparam("tenant_id"),
        ScimRequest.connection_id == bindparam("connection_id"),
    )
    .order_by(ScimRequest.sent_at.desc()),
)


class TooManyConnections(Conflict):
    code = "too_many_scim_connections"
    detail = f"A tenant can have at most {MAX_CONNECTIONS} SCIM connections; delete one first."


def get_connection(connection_id: UUID | str) -> SimpleNamespace:
    """The connection with the numbers of its users and groups; raises NotFound."""
    return _as_answer(*queries.get_with(ScimConnection, connection_id, *COUNTS))


def list_connections(paging: Paging = FIRST_PAGE, *, tenant_id: UUID | None = None) -> Page:
    """One page of a tenant's connections (of all, for the platform), as :func:`get_connection`."""
    return paginate(ScimConnection, paging, tenant_id=tenant_id, further=COUNTS)


def create(
    tenant_id: UUID, values: Mapping[str, Any], *, actor: Actor, held: Collection[Permission] = ALL
) -> SimpleNamespace:
    """Create a connection; returned with its bearer ``token``, which is not stored.

    ``held`` are the creator's permissions. The connection makes its changes with the creator's
    role, or as an owner. Raises NotFound for an unknown tenant, PermissionDenied, RoleAboveOwn and
    TooManyConnections.
    """
    _check_gift(tenant_id, values, actor, held)
    queries.lock_with(Tenant, visible_id(tenant_id))  # so no other request adds a connection
    if queries.count_where(ScimConnection, tenant_id=tenant_id) >= MAX_CONNECTIONS:
        raise TooManyConnections
    token = new_token()
    connection = insert_row(
        ScimConnection,
        {
            **values,
            "tenant_id": tenant_id,
            "acts_as": str(actor.role or Role.OWNER),
            **_stored_token(token),
            **actor.authorship,
        },
    )
    record_creation("scim_connection.created", connection, actor=actor, hidden=HIDDEN)
    return _as_answer(connection, (0, 0), token=token)


def update(
    connection_id: UUID | str,
    values: Mapping[str, Any],
    *,
    actor: Actor,
    held: Collection[Permission] = ALL,
) -> SimpleNamespace:
    """Change a connection. Roles of members follow a new mapping when their groups next change.

    Other public keys end the access tokens. Raises NotFound, OwnerOnly, PermissionDenied and
    RoleAboveOwn.
    """
    connection, counts = _lock(connection_id, actor)
    if not GIVING.isdisjoint(values):
        _check_gift(connection.tenant_id, values, actor, held)
    connection, change = queries.update_row(ScimConnection, connection, values, actor_id=actor.id)
    if change is not None:
        if "public_keys" in change.after:
            _end_access_tokens(connection)
        record("scim_connection.updated", connection, change, actor=actor)
    return _as_answer(connection, counts)


def rotate(
    connection_id: UUID | str,
    *,
    overlap: timedelta,
    actor: Actor,
    held: Collection[Permission] = ALL,
) -> SimpleNamespace:
    """Give the connection a new bearer ``token``; the present token stays valid for ``overlap``.

    A token that an earlier rotation left valid ends at once, so at most two are valid. Without an
    overlap the access tokens end as well. Raises NotFound, OwnerOnly and PermissionDenied.
    """
    connection, counts = _lock(connection_id, actor)
    _check_gift(connection.tenant_id, {}, actor, held)
    token = new_token()
    expires_at = utcnow() + overlap
    values = {**_stored_token(token), "old_digest": connection.digest, "old_expires_at": expires_at}
    if not overlap:
        _end_access_tokens(connection)
    rotated, _ = queries.update_row(ScimConnection, connection, values, actor_id=actor.id)
    change = Change(
        {"prefix": connection.prefix}, {"prefix": rotated.prefix, "old_expires_at": expires_at}
    )
    record("scim_connection.rotated", rotated, change, actor=actor)
    return _as_answer(rotated, counts, token=token)


def delete(connection_id: UUID | str, *, actor: Actor) -> None:
    """Delete a connection. Its users stay, and can be edited again; roles of its groups end.

    Raises NotFound and OwnerOnly.
    """
    connection, _ = _lock(connection_id, actor)
    tenant_id = connection.tenant_id
    role_assignments.end("connection_id", connection.id, tenant_id=tenant_id, actor=actor)
    queries.delete_row(ScimConnection, connection)
    before = {name: value for name, value in connection._asdict().items() if name not in HIDDEN}
    record("scim_connection.deleted", connection, Change(before, {}), actor=actor)


def list_requests(connection_id: UUID | str) -> Sequence[ScimRequest]:
    """The last requests of a connection, the newest first. Raises NotFound."""
    connection = get_connection(connection_id)
    return LIST_REQUESTS.all(tenant_id=connection.tenant_id, connection_id=connection.id)


def _as_answer(
    connection: ScimConnection, counts: Sequence[int], **further: str
) -> SimpleNamespace:
    """The connection's columns, the numbers of its users and groups, and ``further`` values."""
    users, groups = counts
    columns = connection._asdict()
    return SimpleNamespace(**columns, user_count=users, group_count=groups, **further)


def _lock(connection_id: UUID | str, actor: Actor) -> tuple[ScimConnection, Sequence[int]]:
    """The locked connection and its counts.

    Raises OwnerOnly if the connection acts as an owner and the actor is not an owner: its token
    would give the actor an owner's rights.
    """
    connection, counts = queries.lock_with(ScimConnection, connection_id, *COUNTS)
    if connection.acts_as == Role.OWNER:
        owners.check_may_change_owner(actor=actor)
    check_precondition(connection)
    return connection, counts


def _end_access_tokens(connection: ScimConnection) -> None:
    key = {"tenant_id": connection.tenant_id, "connection_id": connection.id}
    queries.delete_where(ScimAccessToken, **key)


def _check_gift(
    tenant_id: UUID, values: Mapping[str, Any], actor: Actor, held: Collection[Permission]
) -> None:
    """Raise if the connection, with these values, could do more than its editor.

    PermissionDenied without the permissions that it exercises, RoleAboveOwn for a role that the
    actor could not give, and Invalid for a role that the tenant does not have.
    """
    given = {key: name for name, key in values.get("group_roles", {}).items()}
    assigned = given.keys() - {*Role}
    for permission in (*EXERCISED, *([Permission.ROLES_WRITE] if assigned else ())):
        if permission not in held:
            raise PermissionDenied(f"This needs the permission {permission}.")
    for role in {values.get("default_role", Role.VIEWER), *given} - assigned:
        owners.check_may_grant(role, actor=actor)
    if not assigned:
        return
    roles = authority.lock(tenant_id)
    for key in assigned:
        if key not in roles.by_key:
            place = ["body", "group_roles", given[key]]
            raise Invalid(value_error(place, "there is no role of this key", key))
        authority.check_may_give(roles.by_key[key], roles, tenant_id, actor=actor)


def new_token() -> str:
    """A new bearer token of 256 random bits."""
    return TOKEN_PREFIX + secrets.token_urlsafe(32)


def _stored_token(token: str) -> dict[str, str]:
    return {"digest": digest_of(token), "prefix": token[:PREFIX_LENGTH]}

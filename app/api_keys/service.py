"""API keys: what services authenticate with."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, and_, false, func, not_, or_

from app.audit.service import record, record_creation
from app.auth.keys import KEY_PREFIX, digest_of
from app.auth.models import ApiKey
from app.auth.permissions import ALL, PLATFORM_ONLY, Permission
from app.core.actors import Actor
from app.core.clock import utcnow
from app.core.db import queries
from app.core.db.tenancy import current_scope
from app.core.errors import Forbidden, Invalid, NotFound, value_error
from app.core.http.pagination import Page, paginate
from app.extensions import db
from app.tenants.service import get_tenant

PREFIX_LENGTH = 10
SECRET = frozenset({"digest"})


def get_key(key_id: UUID | str) -> ApiKey:
    """The key; NotFound where the scope does not show it."""
    return _shown(queries.get_row(ApiKey, key_id))


def list_keys(
    *,
    limit: int,
    cursor: str | None = None,
    tenant_id: UUID | None = None,
    is_active: bool | None = None,
) -> Page:
    """One page of a tenant's keys (of all keys, for the platform), revoked ones included."""
    fits = _visible(tenant_id)
    if is_active is not None:
        usable = and_(
            ApiKey.revoked_at.is_(None),
            or_(ApiKey.expires_at.is_(None), ApiKey.expires_at > func.now()),
        )
        fits = [*fits, usable if is_active else not_(usable)]
    return paginate(ApiKey, *fits, limit=limit, cursor=cursor)


def create(
    *,
    name: str,
    permissions: Collection[Permission],
    tenant_id: UUID | None = None,
    expires_at: datetime | None = None,
    held: Collection[Permission] = ALL,
    actor: Actor,
) -> tuple[ApiKey, str]:
    """A new key and its secret, which is stored nowhere.

    ``tenant_id`` None makes a platform key. Raises NotFound for an unknown tenant, Forbidden
    ``permission_beyond_own`` where the creator, who holds ``held``, lacks one of ``permissions``,
    Invalid for a moment in the past and for permissions that no tenant's key can have.
    """
    _check_expiry(expires_at)
    if tenant_id is not None:
        get_tenant(tenant_id)
    wanted = sorted(set(permissions))
    _check_permissions(wanted, held, of_tenant=tenant_id is not None)
    secret = KEY_PREFIX + secrets.token_urlsafe(32)
    key = ApiKey(
        tenant_id=tenant_id,
        name=name,
        digest=digest_of(secret),
        prefix=secret[:PREFIX_LENGTH],
        permissions=[str(permission) for permission in wanted],
        expires_at=expires_at,
        created_by_user_id=actor.id,
        updated_by_user_id=actor.id,
    )
    db.session.add(key)
    db.session.flush()
    record_creation("api_key.created", key, actor=actor, hidden=SECRET)
    return key, secret


def revoke(key_id: UUID | str, *, actor: Actor) -> ApiKey:
    """End a key, from the next request on; a second time changes nothing."""
    get_key(key_id)
    key = queries.lock_row(ApiKey, key_id)
    if key.revoked_at is not None:
        return key
    change = key.assign({"revoked_at": utcnow()}, actor_id=actor.id)
    if change is not None:
        record("api_key.revoked", key, change, actor=actor)
    return key


def _shown(key: ApiKey) -> ApiKey:
    own = current_scope().tenant_id
    if own is not None and key.tenant_id != own:
        raise NotFound
    return key


def _visible(tenant_id: UUID | None) -> list[ColumnElement[bool]]:
    """The table is global, so these conditions alone keep tenants apart."""
    own = current_scope().tenant_id
    if own is not None and tenant_id not in (None, own):
        return [false()]
    shown = tenant_id or own
    return [] if shown is None else [ApiKey.tenant_id == shown]


def _check_permissions(
    wanted: Collection[Permission], held: Collection[Permission], *, of_tenant: bool
) -> None:
    beyond = [str(permission) for permission in wanted if permission not in held]
    if beyond:
        raise Forbidden(
            f"A key has no permission that its creator lacks: {', '.join(beyond)}.",
            code="permission_beyond_own",
        )
    for permission in wanted:
        if of_tenant and permission in PLATFORM_ONLY:
            raise _invalid("permissions", f"no tenant's key can have {permission}", str(permission))


def _check_expiry(expires_at: datetime | None) -> None:
    if expires_at is not None and expires_at <= utcnow():
        raise _invalid("expires_at", "the moment has passed", expires_at.isoformat())


def _invalid(field: str, message: str, value: str) -> Invalid:
    return Invalid(value_error(["body", field], message, value))

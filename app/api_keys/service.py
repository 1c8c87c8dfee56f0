"""API keys: create, find, revoke."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from sqlalchemy import and_, bindparam, false, func, not_, or_, select

from app.audit.service import record, record_creation
from app.auth.keys import KEY_PREFIX, digest_of
from app.auth.models import ApiKey
from app.auth.permissions import ALL, GRANTED_BY_PLATFORM, PLATFORM_ONLY, Permission
from app.core.actors import Actor
from app.core.clock import check_future, rfc3339, utcnow
from app.core.db import queries
from app.core.db.list_conditions import Condition
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.db.queries import visible_id
from app.core.db.statements import Statement
from app.core.db.tenancy import current_scope
from app.core.db.writes import insert_row
from app.core.errors import Conflict, Forbidden, Invalid, NotFound, value_error
from app.roles import authority, role_assignments
from app.tenants.models import Tenant

PREFIX_LENGTH = 10  # characters
MAX_KEYS = 100  # active ones of a tenant
SECRET = frozenset({"digest"})

_is_usable = and_(
    ApiKey.revoked_at.is_(None), or_(ApiKey.expires_at.is_(None), ApiKey.expires_at > func.now())
)
USABLE = Condition(_is_usable, {})
ENDED = Condition(not_(_is_usable), {})
NONE = Condition(false(), {})
COUNT_USABLE = Statement(
    "api_keys.count_usable",
    select(func.count()).where(ApiKey.tenant_id == bindparam("tenant_id"), _is_usable),
)


class PermissionBeyondOwn(Forbidden):
    code = "permission_beyond_own"
    detail = "You cannot give a key permissions that you do not have."


class ExpiryBeyondOwn(Forbidden):
    code = "expiry_beyond_own"
    detail = "A key cannot be valid for longer than the key that creates it."


class TooManyKeys(Conflict):
    code = "too_many_api_keys"
    detail = f"A tenant can have at most {MAX_KEYS} active API keys; revoke one first."


def get_key(key_id: UUID | str) -> ApiKey:
    return _visible(queries.get_row(ApiKey, key_id))


def list_keys(
    paging: Paging = FIRST_PAGE, *, tenant_id: UUID | None = None, is_active: bool | None = None
) -> Page:
    """One page of a tenant's keys (of all keys, for the platform), including revoked keys."""
    conditions = [] if is_active is None else [USABLE if is_active else ENDED]
    own = current_scope().tenant_id
    if own is not None and tenant_id not in (None, own):
        conditions.append(NONE)  # the table has no row-level security
    return paginate(ApiKey, paging, *conditions, tenant_id=tenant_id)


def create(
    *,
    name: str,
    permissions: Collection[Permission],
    tenant_id: UUID | None = None,
    expires_at: datetime | None = None,
    held: Collection[Permission] = ALL,
    held_until: datetime | None = None,
    actor: Actor,
) -> tuple[ApiKey, str]:
    """Create a key; returns it and its secret, which is not stored.

    ``tenant_id`` None makes a platform key. ``held`` are the creator's permissions, and
    ``held_until`` is the end of the creator, if that is a key that expires. Raises
    NotFound for an unknown tenant, PermissionBeyondOwn for permissions that the creator lacks, has
    for less time than the key, or only the platform can grant, ExpiryBeyondOwn for a later end than the creator's, and TooManyKeys at
    :data:`MAX_KEYS`. Raises Invalid for an ``expires_at`` in the past, and for
    permissions that a tenant's key cannot have.
    """
    check_future(expires_at, ["body", "expires_at"])
    if tenant_id is not None:
        queries.lock_with(Tenant, visible_id(tenant_id))  # so no other request adds a key
        held = authority.held_until(expires_at, tenant_id, actor=actor, held=held)
    wanted = sorted(set(permissions))
    if not actor.is_platform:
        held = set(held) - GRANTED_BY_PLATFORM
    _check_permissions(wanted, held, of_tenant=tenant_id is not None)
    if held_until is not None and (expires_at is None or expires_at > held_until):
        reason = f"{ExpiryBeyondOwn.detail[:-1]}, which expires at {rfc3339(held_until)}."
        raise ExpiryBeyondOwn(reason)
    if tenant_id is not None and COUNT_USABLE.scalar(tenant_id=tenant_id) >= MAX_KEYS:
        raise TooManyKeys
    secret = KEY_PREFIX + secrets.token_urlsafe(32)
    values = {
        "tenant_id": tenant_id,
        "name": name,
        "digest": digest_of(secret),
        "prefix": secret[:PREFIX_LENGTH],
        "permissions": [str(permission) for permission in wanted],
        "expires_at": expires_at,
        **actor.authorship,
    }
    key = insert_row(ApiKey, values)
    record_creation("api_key.created", key, actor=actor, hidden=SECRET)
    return key, secret


def revoke(key_id: UUID | str, *, actor: Actor) -> ApiKey:
    """Revoke a key, and end its roles: the next request with it is refused. Raises NotFound.

    A second revocation changes nothing.
    """
    get_key(key_id)
    key = queries.lock_row(ApiKey, key_id)
    if key.revoked_at is not None:
        return key
    key, change = queries.update_row(ApiKey, key, {"revoked_at": utcnow()}, actor_id=actor.id)
    if key.tenant_id is not None:
        role_assignments.end("api_key_id", key.id, tenant_id=key.tenant_id, actor=actor)
    record("api_key.revoked", key, change, actor=actor, hidden=SECRET)
    return key


def _visible(key: ApiKey) -> ApiKey:
    """The key; raises NotFound if it is another tenant's. The table has no row-level security."""
    own = current_scope().tenant_id
    if own is not None and key.tenant_id != own:
        raise NotFound.of(ApiKey)
    return key


def _check_permissions(
    wanted: Collection[Permission], held: Collection[Permission], *, of_tenant: bool
) -> None:
    beyond = [str(permission) for permission in wanted if permission not in held]
    if beyond:
        raise PermissionBeyondOwn(f"{PermissionBeyondOwn.detail[:-1]}: {', '.join(beyond)}.")
    for permission in wanted:
        if of_tenant and permission in PLATFORM_ONLY:
            reason = f"no tenant's key can have {permission}"
            raise Invalid(value_error(["body", "permissions"], reason, str(permission)))

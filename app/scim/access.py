"""The sender of a SCIM request: the connection of the bearer token."""

from __future__ import annotations

from typing import Any

from app.auth.guard import TenantSuspended, bearer_of
from app.auth.keys import digest_of
from app.auth.permissions import Permission
from app.auth.principals import Principal
from app.connections import activity
from app.connections.models import Connection, ConnectionStatus
from app.connections.service import TOKEN_PREFIX
from app.core.actors import Actor
from app.core.db import tenancy
from app.core.db.statements import Statement
from app.core.errors import Forbidden, Unauthenticated
from app.core.http.endpoint import SAFE_METHODS, Access
from app.core.http.rate_limit import rate_limits
from app.core.http.request import Request
from app.core.observability.logs import add_facts

AUTHENTICATE = Statement(
    "auth.authenticate_scim",
    "SELECT id, tenant_id, acts_as, status, default_role, group_roles, deactivate,"
    " tenant_is_active FROM authenticate_scim(:digest)",
)


class ConnectionDisabled(Forbidden):
    detail = "This SCIM connection is disabled."


class ConnectionTesting(Forbidden):
    detail = "This SCIM connection is not active yet: before its test, it only answers reads."


class ConnectionAccess(Access):
    """The decorator of the endpoints below /scim: they need the token of an active connection."""

    permission = Permission.SCIM_WRITE


with_token = ConnectionAccess()


def enter(request: Request) -> Connection:
    """Authenticate; returns the connection, and the request has its principal and scope.

    Raises Unauthenticated, TooManyRequests, ConnectionDisabled and ConnectionTesting. A suspended tenant's connection
    gets in, because it may end memberships.
    """
    try:
        found = _authenticate(request)
    except Unauthenticated:
        rate_limits().count_failed_authentication(request)
        raise
    actor = Actor(f"scim:{found.id}", found.acts_as)
    request.principal = Principal(
        actor, frozenset(), found.tenant_id, actor.id, is_suspended=not found.tenant_is_active
    )
    tenancy.note(tenancy.Scope(found.tenant_id))
    add_facts(tenant=str(found.tenant_id), principal=actor.id, scim_connection=str(found.id))
    if activity.note(found):  # the first attempt of this request
        rate_limits().count_scim_connection(request, found.id)
    if found.status == ConnectionStatus.DISABLED:
        raise ConnectionDisabled
    if found.status == ConnectionStatus.TESTING and request.method not in SAFE_METHODS:
        raise ConnectionTesting
    connection: Connection = found
    return connection


def check_not_suspended(principal: Principal) -> None:
    if principal.is_suspended:
        raise TenantSuspended


def _authenticate(request: Request) -> Any:
    token = bearer_of(request)
    if not token:
        raise Unauthenticated(reason="credential_missing")
    add_facts(credential="scim_token")
    if not token.startswith(TOKEN_PREFIX):
        raise Unauthenticated(reason="scim_token_invalid")
    with rate_limits().looking_up(request):
        found = AUTHENTICATE.first(digest=digest_of(token))
        if found is None:
            raise Unauthenticated(reason="scim_token_invalid")
    return found

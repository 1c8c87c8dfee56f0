"""Access to endpoints: ``@requires(permission)``, ``@requires_user_token`` or ``@public``.

A view without such a decorator is refused.

The decorators only mark the view: :func:`app.core.http.endpoint.serve` calls :meth:`enter` at the
start of the request's transaction.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass
from uuid import UUID

import flask
from flask import current_app

from app.auth import setup_sessions
from app.auth.keys import KEY_PREFIX
from app.auth.permissions import Permission
from app.auth.principals import NoMembership, Principal, operator_principal, user_principal
from app.auth.proofs import Proof, proof_of
from app.auth.setup_sessions import SetupClaims
from app.auth.tokens import Claims, KeysUnavailable, TokenVerifier
from app.core.actors import Actor
from app.core.db import tenancy
from app.core.errors import Forbidden, PermissionDenied, ProviderField, Unauthenticated
from app.core.http.endpoint import Access
from app.core.http.rate_limit import rate_limits
from app.core.http.request import Request, current_request
from app.core.observability.logs import add_facts

CLAIMS = "controlplane.claims"
"""A key of the WSGI environment: the console sets it when it calls the API for a session.

The value is the session's :class:`Claims`, and no token is needed. A client cannot set the key,
because headers get keys that begin with ``HTTP_``.
"""
PAGE_TENANT = "controlplane.page_tenant"
"""A key of the WSGI environment: the id of the tenant whose page in the console calls the API.

Such a call sees only this tenant's rows, even if the session is a superadmin's.
"""

OPERATOR = "controlplane.operator"
"""A key of the WSGI environment: an operator's command sets it when it calls the API.

The value is the :class:`Actor`, who has every permission. A client cannot set it.
"""


class TenantSuspended(Forbidden):
    code = "tenant_suspended"
    detail = "This tenant is suspended."


@dataclass(frozen=True)
class Requires(Access):
    """Decorator: allow a view only for a principal with ``permission``.

    ``platform_only`` refuses all tenant credentials. ``while_suspended`` also allows credentials of
    a suspended tenant. ``provider_only`` refuses tenant credentials with the code
    ``provider_field``, before the request's body is validated.
    """

    credentials = ("user_token", "api_key")

    permission: Permission
    _: KW_ONLY
    platform_only: bool = False
    while_suspended: bool = False
    provider_only: bool = False

    def __post_init__(self) -> None:
        suspended = () if self.while_suspended else (TenantSuspended,)
        provider = (ProviderField,) if self.provider_only else ()
        kind = " of a platform credential" if self.platform_only else ""
        vars(self).update(
            errors=(PermissionDenied, NoMembership, *suspended, *provider, KeysUnavailable),
            description=f"Requires the permission `{self.permission}`{kind}.",
        )

    def enter(self, request: Request) -> None:
        """Authenticate, then authorise. Afterwards ``request.principal`` is set.

        Raises Unauthenticated or one of :attr:`errors`.
        """
        try:
            principal = authenticate(request)
        except Unauthenticated:
            rate_limits().count_failed_authentication(request)
            raise
        rate_limits().set_limit_of_credential(request, is_platform=principal.is_platform)
        request.principal = principal
        request.credential = principal.credential
        request.api_key_id = principal.key_id
        add_facts(tenant=str(principal.tenant_id or ""), principal=principal.credential)
        self.check(principal)

    def check(self, principal: Principal) -> None:
        """Raise TenantSuspended, PermissionDenied or ProviderField if the principal is refused."""
        if principal.is_suspended and not self.while_suspended:
            raise TenantSuspended
        if self.platform_only and not principal.is_platform:
            raise PermissionDenied("This needs a platform credential.")
        principal.check(self.permission)
        if self.provider_only and not principal.is_platform:
            raise ProviderField

    def require(self, permission: str) -> None:
        """Raise PermissionDenied if the request's principal lacks ``permission``."""
        current_principal().check(Permission(permission))


class RequiresUserToken(Access):
    """Decorator: allow a view for every valid user token, also of a person without a membership.

    It sets no tenant scope. :func:`current_claims` are the token's claims.
    """

    credentials = ("user_token",)
    errors = (PermissionDenied, KeysUnavailable)
    description = "Requires a user token; no membership is needed."

    def enter(self, request: Request) -> None:
        """Verify the token; raises Unauthenticated or one of :attr:`errors`."""
        claims: Claims | None = request.environ.get(CLAIMS)
        if claims is None or isinstance(claims, SetupClaims):
            token = bearer_of(request)
            if token.startswith(KEY_PREFIX) or OPERATOR in request.environ:
                raise PermissionDenied("This needs a user token.")
            verifier: TokenVerifier = current_app.extensions["token_verifier"]
            try:
                claims = verifier.verify(token)
            except Unauthenticated:
                rate_limits().count_failed_authentication(request)
                raise
        request.principal = claims
        request.credential = f"subject:{claims.subject}"


requires = Requires
requires_user_token = RequiresUserToken()
public = Access()


def bearer_of(request: flask.Request) -> str:
    """The credential of the ``Authorization: Bearer`` header; ``""`` if there is none."""
    scheme, _, credential = request.headers.get("Authorization", "").partition(" ")
    return credential.strip() if scheme.lower() == "bearer" else ""


def authenticate(request: Request) -> Principal:
    """The principal of the ``Authorization: Bearer`` header, the console's session or a command.

    Raises Unauthenticated if there is no valid credential; also NoMembership or KeysUnavailable.
    """
    operator: Actor | None = request.environ.get(OPERATOR)
    if operator is not None:
        return operator_principal(operator)
    claims: Claims | None = request.environ.get(CLAIMS)
    if isinstance(claims, SetupClaims):
        return setup_sessions.authenticate(claims, request.path)
    if claims is not None:
        add_facts(credential="console_session")
        principal = user_principal(claims)
        page_tenant = request.environ.get(PAGE_TENANT)
        if principal.is_platform and page_tenant is not None:
            tenancy.enter(tenancy.Scope(page_tenant))
        return principal
    proof = request.proof
    if not isinstance(proof, Proof):
        verifier: TokenVerifier = current_app.extensions["token_verifier"]
        proof = request.proof = proof_of(bearer_of(request), verifier)
    with rate_limits().looking_up(request) if proof.is_key else nullcontext():
        return proof.principal()


def current_principal() -> Principal:
    """The principal of the current request; RuntimeError for a public endpoint."""
    principal = current_request().principal
    if not isinstance(principal, Principal):
        raise RuntimeError("no principal: the endpoint is public")
    return principal


def current_claims() -> Claims:
    """The claims of the current request's user token; for views with ``@requires_user_token``."""
    claims = current_request().principal
    if not isinstance(claims, Claims):
        raise RuntimeError("the endpoint does not require a user token")
    return claims


def current_actor() -> Actor:
    """The actor that the audit trail records for the current request."""
    return current_principal().actor


def home_tenant_id() -> UUID | None:
    """The tenant of a request without ``?tenant_id=``: the credential's own tenant, or None."""
    principal = current_principal()
    return principal.tenant_id or principal.home_tenant_id

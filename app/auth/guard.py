"""What stands before every endpoint: ``@requires(permission)`` or ``@public``, else nothing passes.

The decorators only mark the view; :class:`app.core.http.blueprint.Blueprint` runs the mark's
:meth:`enter` first thing inside the request's transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from flask import Request, current_app

from app.auth import key_use
from app.auth.keys import KEY_PREFIX
from app.auth.permissions import Permission
from app.auth.principals import Principal, key_principal, user_principal
from app.auth.tokens import TokenVerifier
from app.core.actors import Actor
from app.core.db import transactions
from app.core.errors import Forbidden, Unauthenticated
from app.core.http.rate_limit import rate_limits
from app.core.observability.logs import add_facts

View = TypeVar("View", bound=Callable[..., Any])


@dataclass(frozen=True)
class Requires:
    """An endpoint's demand: a permission, perhaps of a platform credential, perhaps while suspended."""

    permission: Permission
    platform_only: bool = False
    while_suspended: bool = False

    def enter(self, request: Request) -> None:
        """Authenticate, then authorise; the principal holds until the transaction ends.

        Raises Unauthenticated (401) or Forbidden (403 ``no_membership``, ``tenant_suspended``,
        ``permission_denied``).
        """
        try:
            principal = authenticate(request)
        except Unauthenticated:
            rate_limits().count_failed_authentication()
            raise
        rate_limits().set_limit_of_credential(is_platform=principal.is_platform)
        key_use.note(principal)
        facts = transactions.context()
        facts["principal"] = principal
        facts["credential"] = principal.credential
        add_facts(tenant=str(principal.tenant_id or ""), principal=principal.credential)
        if principal.is_suspended and not self.while_suspended:
            raise Forbidden("This tenant is suspended.", code="tenant_suspended")
        if self.platform_only and not principal.is_platform:
            raise Forbidden("This needs a platform credential.", code="permission_denied")
        if not principal.has(self.permission):
            raise Forbidden(
                f"This needs the permission {self.permission}.", code="permission_denied"
            )

    @property
    def description(self) -> str:
        """One sentence for the OpenAPI document."""
        kind = " of a platform credential" if self.platform_only else ""
        return f"Needs the permission `{self.permission}`{kind}."


@dataclass(frozen=True)
class Public:
    """An endpoint that asks for no credential."""

    def enter(self, request: Request) -> None:
        """Nothing to check."""

    @property
    def description(self) -> str:
        """One sentence for the OpenAPI document."""
        return "Public: no credential is asked for."


def requires(
    permission: Permission,
    *,
    platform_only: bool = False,
    while_suspended: bool = False,
) -> Callable[[View], View]:
    """Mark a view: only a principal with ``permission`` comes in.

    ``platform_only`` refuses tenant credentials even where their role would do;
    ``while_suspended`` lets a suspended tenant's credentials in.
    """

    def mark(view: View) -> View:
        view.access = Requires(permission, platform_only, while_suspended)  # type: ignore[attr-defined]
        return view

    return mark


def public(view: View) -> View:
    """Mark a view that everybody may call."""
    view.access = Public()  # type: ignore[attr-defined]
    return view


def authenticate(request: Request) -> Principal:
    """The principal of the request's ``Authorization: Bearer`` header; 401 without a good one."""
    scheme, _, credential = request.headers.get("Authorization", "").partition(" ")
    credential = credential.strip()
    if scheme.lower() != "bearer" or not credential:
        raise Unauthenticated
    if credential.startswith(KEY_PREFIX):
        return key_principal(credential)
    verifier: TokenVerifier = current_app.extensions["token_verifier"]
    return user_principal(verifier.verify(credential))


def current_principal() -> Principal:
    """Who asks; RuntimeError outside a guarded request."""
    principal = transactions.context().get("principal")
    if principal is None:
        raise RuntimeError("no principal: the endpoint is public, or this is no request")
    return principal  # type: ignore[no-any-return]


def current_actor() -> Actor:
    """Who is recorded as doing what this request does."""
    return current_principal().actor


def home_tenant_id() -> UUID | None:
    """The tenant a request without ``?tenant_id=`` means: the credential's own, or None."""
    principal = current_principal()
    return principal.tenant_id or principal.home_tenant_id

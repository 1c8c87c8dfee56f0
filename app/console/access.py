"""The signed-in person: the session's cookie, the check against forged requests, the headers."""

from __future__ import annotations

import gzip
import re
import secrets
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flask import Response, current_app, g, redirect, request, url_for
from itsdangerous import Signer
from werkzeug.wrappers import Response as AnyResponse

from app.auth import sessions, setup_sessions
from app.auth.guard import public
from app.auth.principals import NoMembership, Principal, user_principal
from app.auth.setup_sessions import SetupClaims
from app.auth.tokens import Claims
from app.config import current_config
from app.console.cookies import cookie_name, set_cookie
from app.console.next_page import set_notice
from app.core.db import retries
from app.core.errors import AppError
from app.core.http.endpoint import Access, Guarded
from app.core.http.rate_limit import rate_limits
from app.core.http.request import current_request
from app.core.observability.logs import add_facts

SAFE_METHODS = ("GET", "HEAD")
OWN_PAGE = re.compile(
    r"/console(?:[/?][!-\[\]-~]{0,2000})?"
)  # no backslash, space or control character
ENDED = "Your session has ended, or you have no active membership here. Sign in again."
SETUP_SECONDS = 168 * 3_600  # for which the browser stores secrets; each link has its own end
MOST_SETUPS = 5  # links that a browser can continue with
SETUP_ENDED = "This setup has ended. Ask for a new link."
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; object-src 'none';"
    " base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Forged(AppError):
    """403: another site sent the request, or nothing shows that it did not."""

    status = 403
    detail = "This request did not come from a page of the console. Load the page and try again."


@dataclass(frozen=True)
class SignedIn(Access):
    """Access of a console page: a session. The API decides what the person may do."""

    needs_tenant: bool = True
    is_setup: bool = False  # the session of a setup link, which no other page takes


signed_in_without_tenant = SignedIn(needs_tenant=False)


@dataclass(frozen=True)
class Session:
    """A browser that is signed in. ``principal`` is None until a tenant is chosen."""

    secret: str
    claims: Claims
    principal: Principal | None
    link: Any = None  # the setup link whose session this is

    def can(self, permission: str) -> bool:
        """Whether the person has a permission, so that the page offers what needs it."""
        return self.principal is not None and permission in self.principal.permissions

    @property
    def tenant_id(self) -> UUID | None:
        """The tenant whose rows the person sees; None for platform superadmins."""
        return self.principal.tenant_id if self.principal else None

    @property
    def is_platform(self) -> bool:
        return self.principal is not None and self.principal.is_platform


def current_session() -> Session:
    """The session of the current request; RuntimeError on a page that needs none."""
    session: Session | None = g.get("session")
    if session is None:
        raise RuntimeError("this page needs no session")
    return session


def admit() -> AnyResponse | None:
    """Before each request: refuse forged requests, find the session, or redirect to the sign-in.

    Raises Forged, and TooManyRequests beyond the session's rate limit.
    """
    g.session = None
    view = current_app.view_functions[request.endpoint or ""]
    access = view.access if isinstance(view, Guarded) else None
    if access is public:
        return None
    is_setup = isinstance(access, SignedIn) and access.is_setup
    secret = request.cookies.get(cookie_name(), "")
    if is_setup:
        secret = next(iter(_setup_secrets()), "")
    find = _find_setup if is_setup else _find_session
    entry = "console.confirm_setup_link" if is_setup else "console.sign_in"
    current, limits = current_request(), rate_limits()
    limits.count_request(current, f"console:{secret}" if secret else "")
    g.session = retries.run(lambda: find(secret)) if secret else None
    if g.session is None and secret:
        limits.count_failed_authentication(current)
        return set_notice(_lead_to(entry), SETUP_ENDED if is_setup else ENDED)
    if g.session is None:
        return _lead_to(entry)
    if request.method not in SAFE_METHODS:
        check_origin(secret)
        if is_setup and not _is_sealed(secret):
            raise Forged("This browser has opened another setup link. Nothing was changed.")
    if g.session.principal is None:
        needs_tenant = not isinstance(access, SignedIn) or access.needs_tenant
        return _lead_to("console.choose_tenant") if needs_tenant else None
    principal = g.session.principal
    limits.set_limit_of_credential(current, is_platform=principal.is_platform)
    add_facts(
        tenant=str(principal.tenant_id or ""),
        principal=principal.credential,
        credential="setup_link" if is_setup else "console_session",
    )
    return None


def add_headers(response: Response) -> Response:
    """After each request: the headers that protect the page; pages are not stored by caches."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers.setdefault("Cache-Control", "no-store")
    response.vary.add("Cookie")
    if response.mimetype == "text/html" and request.accept_encodings.quality("gzip") > 0:
        # Attackers learn no token from the length: each page has a different token (csrf_token).
        response.vary.add("Accept-Encoding")
        response.content_encoding = "gzip"
        response.data = gzip.compress(response.get_data(), 5)
    return response


def begin_session(
    response: AnyResponse, subject: str, org_id: str | None, email: str | None = None
) -> AnyResponse:
    """Sign in: a new session, whose secret goes into the cookie. One that exists is ended."""
    old = request.cookies.get(cookie_name())

    def work() -> str:
        if old:
            sessions.end(old)
        return sessions.start(subject, org_id, email)

    set_cookie(response, cookie_name(), retries.run(work), int(sessions.LIFETIME.total_seconds()))
    return response


def end_session(response: AnyResponse) -> AnyResponse:
    secret = g.session.secret
    retries.run(lambda: sessions.end(secret))
    set_cookie(response, cookie_name(), "", 0)
    return response


def begin_setup(response: AnyResponse, token: str) -> AnyResponse | None:
    """Let this browser use a setup link that it opens now, or has opened before; None otherwise."""
    resumed = resume_setup(response, token)
    if resumed is None and (secret := retries.run(lambda: setup_sessions.open_link(token))):
        return _use_setup(response, secret)
    return resumed


def resume_setup(response: AnyResponse, token: str) -> AnyResponse | None:
    """Let this browser continue with the link of this token; None if it has not opened the link."""
    known = _setup_secrets()
    secret = retries.run(lambda: setup_sessions.secret_of(token, known))
    return None if secret is None else _use_setup(response, secret)


def _use_setup(response: AnyResponse, secret: str) -> AnyResponse:
    """Store the secret before those of the other links that this browser has opened."""
    known = [secret, *(each for each in _setup_secrets() if each != secret)]
    set_cookie(response, setup_cookie_name(), ".".join(known[:MOST_SETUPS]), SETUP_SECONDS)
    return response


def _setup_secrets() -> list[str]:
    """The secrets of the links that this browser has opened; the first is that of the pages."""
    stored = request.cookies.get(setup_cookie_name(), "")
    return [secret for secret in stored.split(".")[:MOST_SETUPS] if secret]


def remember_state(response: AnyResponse, state: str) -> AnyResponse:
    """Store the state of a sign-in in this browser; an empty one removes it."""
    seconds = int(sessions.TICKET_LIFETIME.total_seconds()) if state else 0
    set_cookie(response, f"{cookie_name()}-state", state, seconds)
    return response


def remembered_state() -> str:
    """The state that :func:`remember_state` stored."""
    return request.cookies.get(f"{cookie_name()}-state", "")


def setup_cookie_name() -> str:
    """Another cookie than that of people who are signed in, so neither opens the other's pages."""
    return f"{cookie_name()}-setup"


def csrf_token(secret: str) -> str:
    """A token that only pages for the owner of ``secret`` contain; each page has its own token."""
    return Signer(secret, "csrf").sign(secrets.token_urlsafe(12)).decode()


def check_origin(secret: str) -> None:
    """Raise Forged unless a page of the console sent this request.

    ``Sec-Fetch-Site`` decides. Browsers without it send ``Origin``, and where both are missing the
    request needs the form's token.
    """
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    if site is not None:
        is_own = site == "same-origin"
    elif origin is not None:
        public_url = current_config().public_url
        is_own = origin in {address.rstrip("/") for address in (request.host_url, public_url)}
    else:
        is_own = _is_sealed(secret)
    if not is_own:
        raise Forged


def safe_target(target: str) -> str:
    """``target`` if it is a page of the console, otherwise its first page."""
    return target if OWN_PAGE.fullmatch(target) else url_for("console.search")


def _find_session(secret: str) -> Session | None:
    claims = sessions.find(secret)
    if claims is None:
        return None
    try:
        principal = user_principal(claims)
    except NoMembership:
        if claims.org_id is None:
            return Session(secret, claims, None)
        sessions.end(secret)
        return None
    if principal.is_suspended:
        sessions.end(secret)
        return None
    return Session(secret, claims, principal)


def _find_setup(secret: str) -> Session | None:
    link = setup_sessions.find(secret)
    if link is None:
        return None
    principal = setup_sessions.principal_of(link)
    return Session(secret, SetupClaims(secret=secret), principal, link)


def _lead_to(endpoint: str) -> AnyResponse:
    """Redirect to a page that returns to this one; htmx makes the browser go there."""
    is_fragment = "HX-Request" in request.headers
    here = request.full_path.rstrip("?") if request.method in SAFE_METHODS else ""
    address = url_for(endpoint, next=here or None)
    if is_fragment:
        return Response(status=401, headers={"HX-Redirect": url_for(endpoint)})
    return redirect(address, 303)


def _is_sealed(secret: str) -> bool:
    """Whether the form that was sent has a :func:`csrf_token` of ``secret``."""
    return Signer(secret, "csrf").validate(request.form.get("csrf_token", ""))

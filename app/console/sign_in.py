"""Signing in by a one-time link or by OpenID Connect, choosing a tenant, signing out."""

from __future__ import annotations

import hmac
from dataclasses import asdict
from functools import partial

from flask import current_app, g, make_response, redirect, render_template, request, url_for
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response

from app.auth import oidc, sessions
from app.auth.guard import public
from app.console.access import (
    begin_session,
    check_origin,
    csrf_token,
    end_session,
    remember_state,
    remembered_state,
    safe_target,
    signed_in_without_tenant,
)
from app.console.blueprint import Shown, console
from app.core.db import retries
from app.core.errors import Unauthenticated
from app.core.http.rate_limit import rate_limits
from app.core.http.request import current_request
from app.core.http.routing import own_address

LINK = "link"  # the purpose of a sign-in link's ticket
OIDC = "oidc"  # the purpose of the state of a sign-in by OpenID Connect


@console.get("/sign-in")
@public
def sign_in() -> str:
    return _sign_in_page()


@console.get("/sign-in/link")
@public
def confirm_link() -> str:
    """Ask before a sign-in link is used, because browsers and mail programs open links by themselves."""
    secret = request.args.get("token", "")
    values = {"token": secret, "link_csrf_token": csrf_token(secret)}
    return render_template("console/sign_in_link.html", title="Sign in", **values)


@console.post("/sign-in/link")
@public
def use_link() -> Shown:
    """Sign in by a link, which cannot be used again."""
    secret = request.form.get("token", "")
    check_origin(secret)
    ticket = retries.run(lambda: sessions.use_ticket(LINK, secret))
    if ticket is None or ticket.subject is None:
        return _refused("This link has been used already, or is older than ten minutes.")
    to = safe_target(request.form.get("next", ""))
    return begin_session(redirect(to, 303), ticket.subject, ticket.org_id)


@console.get("/sign-in/oidc")
@public
def begin_oidc() -> Response:
    """Lead to the identity provider. The state is a ticket, and this browser's cookie has it too."""
    # For the address, because each attempt is stored.
    rate_limits().count_request(current_request(), "")
    provider = _provider()
    attempt = oidc.Attempt()
    data = {**asdict(attempt), "next": safe_target(request.args.get("next", ""))}
    state = retries.run(lambda: sessions.create_ticket(OIDC, data=data))
    response = redirect(provider.authorization_url(attempt, state, _callback_url()), 303)
    return remember_state(response, state)


@console.get("/sign-in/callback")
@public
def finish_oidc() -> Shown:
    """Sign in the person whom the identity provider has sent back to this browser."""
    provider = _provider()
    state = request.args.get("state", "")
    is_own = hmac.compare_digest(remembered_state().encode(), state.encode())
    code = request.args.get("code", "")
    with provider.waiting():
        ticket = retries.run(lambda: sessions.use_ticket(OIDC, state)) if is_own else None
        if ticket is None or not code:
            return _refused("The identity provider did not sign you in. Try again.")
        attempt = oidc.Attempt(nonce=ticket.data["nonce"], verifier=ticket.data["verifier"])
        try:
            claims = provider.redeem(code, attempt, _callback_url())
        except Unauthenticated:
            return _refused("The identity provider's answer is not valid. Try again.")
    if claims.email is not None:  # a domain of a tenant may let the person in
        admit = current_app.extensions["admit_signed_in"]
        retries.run(partial(admit, claims.subject, claims.email))
    response = redirect(safe_target(ticket.data["next"]), 303)
    response = remember_state(response, "")
    return begin_session(response, claims.subject, claims.org_id, claims.email)


@console.route("/choose-tenant", methods=["GET", "POST"])
@signed_in_without_tenant
def choose_tenant() -> Shown:
    """Choose a tenant that the person is a member of, or change to another later."""
    claims = g.session.claims
    found = retries.run(lambda: sessions.organizations(claims.subject))
    if request.method == "POST":
        org_id = request.form.get("org_id", "")
        if org_id in {each.idp_org_id for each in found}:
            to = safe_target(request.form.get("next", ""))
            return begin_session(redirect(to, 303), claims.subject, org_id, claims.email)
    values = {"organizations": found, "next": request.args.get("next", "")}
    return render_template("console/choose_tenant.html", title="Choose a tenant", **values)


@console.post("/sign-out")
@signed_in_without_tenant
def sign_out() -> Response:
    return end_session(redirect(url_for("console.sign_in"), 303))


def _sign_in_page(problem: str = "") -> str:
    oidc_url = ""
    if current_app.extensions["identity_provider"].is_configured:
        oidc_url = url_for("console.begin_oidc", next=request.args.get("next") or None)
    return render_template(
        "console/sign_in.html", title="Sign in", problem=problem, oidc_url=oidc_url
    )


def _refused(problem: str) -> Response:
    rate_limits().count_failed_authentication(current_request())
    return make_response(_sign_in_page(problem), 403)


def _provider() -> oidc.IdentityProvider:
    provider: oidc.IdentityProvider = current_app.extensions["identity_provider"]
    if not provider.is_configured:
        raise NotFound
    return provider


def _callback_url() -> str:
    return own_address(request) + url_for("console.finish_oidc")


def link_url(base_url: str, secret: str) -> str:
    """The address that signs a person in once."""
    return f"{base_url.rstrip('/')}/console/sign-in/link?token={secret}"

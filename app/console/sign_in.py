"""Signing in by a one-time link, choosing a tenant, signing out."""

from __future__ import annotations

from typing import Any

from flask import current_app, g, make_response, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from app.auth import sessions
from app.auth.guard import public
from app.console.access import (
    begin_session,
    check_origin,
    csrf_token,
    end_session,
    safe_target,
    signed_in_without_tenant,
)
from app.console.blueprint import console
from app.core.db import transactions
from app.core.http.rate_limit import rate_limits

LINK = "link"  # the purpose of a sign-in link's ticket


@console.get("/sign-in")
@public
def sign_in() -> str:
    """Show the ways to sign in."""
    return render_template(
        "console/sign_in.html", title="Sign in", next=request.args.get("next", "")
    )


@console.get("/sign-in/link")
@public
def confirm_link() -> str:
    """Ask before a sign-in link is used, because browsers and mail programs open links by themselves."""
    secret = request.args.get("token", "")
    return render_template(
        "console/sign_in_link.html",
        title="Sign in",
        token=secret,
        link_csrf_token=csrf_token(secret),
    )


@console.post("/sign-in/link")
@public
def use_link() -> Any:
    """Sign in by a link, which cannot be used again."""
    secret = request.form.get("token", "")
    check_origin(secret)
    ticket = transactions.run(lambda: sessions.use_ticket(LINK, secret))
    if ticket is None or ticket.subject is None:
        rate_limits().count_failed_authentication()
        page = render_template(
            "console/sign_in.html",
            title="Sign in",
            problem="This link has been used already, or is older than ten minutes.",
        )
        return make_response(page, 403)
    to = safe_target(request.form.get("next", ""))
    return begin_session(redirect(to, 303), ticket.subject, ticket.org_id)


@console.route("/choose-tenant", methods=["GET", "POST"])
@signed_in_without_tenant
def choose_tenant() -> Any:
    """Choose one of the tenants that the person is a member of, or another one later."""
    subject = g.session.claims.subject
    found = transactions.run(lambda: sessions.organizations(subject))
    if request.method == "POST":
        org_id = request.form.get("org_id", "")
        if org_id in {each.idp_org_id for each in found}:
            to = safe_target(request.form.get("next", ""))
            return begin_session(redirect(to, 303), subject, org_id)
    return render_template(
        "console/choose_tenant.html",
        title="Choose a tenant",
        organizations=found,
        next=request.args.get("next", ""),
    )


@console.post("/sign-out")
@signed_in_without_tenant
def sign_out() -> Response:
    """End the session."""
    return end_session(redirect(url_for("console.sign_in"), 303))


def link_url(base_url: str, secret: str) -> str:
    """The address that signs a person in once."""
    return f"{base_url.rstrip('/')}/console/sign-in/link?token={secret}"


def public_url() -> str:
    """The address of the service that links begin with."""
    return current_app.extensions["config"].public_url or "http://127.0.0.1:8000"

"""Domains of a tenant and who joins by them, single sign-on, and links to set these up."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from flask import request, url_for

from app.console import api
from app.console.blueprint import Shown, form_page, page, render
from app.console.fields import Field, choices
from app.console.forms import Form, row_form
from app.console.lists import Filter, list_page
from app.console.next_page import Notice
from app.console.pages.common import SOON, recent_history, secret_page, tenant_slug
from app.console.pages.joining import REQUESTS, offered_roles
from app.core.clock import rfc3339, utcnow
from app.core.json_text import Json

DOMAINS, LINKS, SSO = "/v1/domains", "/v1/setup-links", "/v1/sso-connections"
PLACE = "/tenants/<uuid:tenant_id>/domains"
NEAR = timedelta(days=30)  # the end of a certificate
COLUMNS = "id tenant.name name state error join join_role enforce_sso checked_at created_at"
STATES = Filter("state", "State", choices("pending", "verified", "failed", "lapsed"))
RULES = {
    "off": "do not join by this domain",
    "suggest": "wait until an owner or admin accepts them",
    "auto": "join at once while a seat is free",
}
SCOPES = {
    "scim": "directory (SCIM)",
    "domains": "domains",
    "sso": "single sign-on",
    "webhook_endpoints": "webhook endpoint",
    "log_streams": "log stream",
}
ENDS = Filter("certificate_ends_before", "Certificate ends until", kind="date")
NAME = Field("name", "Domain", help="Such as example.com.", is_required=True)
JOIN = Field("join", "New people", "select", choices=list(RULES.items()), is_required=True)
FIELDS = (
    Field("include_subdomains", "Also its subdomains", "boolean"),
    JOIN,
    Field("join_role", "Their role", "select", choices=offered_roles, is_required=True),
    Field("enforce_sso", "The identity provider requires single sign-on", "boolean"),
)
LINK = (
    Field("scopes", "Tasks", "checks", choices=list(SCOPES.items())),
    Field("contact", "E-mail of whom it is for", "email", help="Nothing is sent there."),
    Field("expires_in_hours", "Hours until it ends", "integer", "1 to 168.", is_required=True),
)

LIST = ("/domains", "domains", "Domains", DOMAINS, COLUMNS, (STATES,))
list_page(*LIST, also_of_tenant=True, shown={"rules": RULES}, include="tenant")


def wants_attention(tenant_id: UUID) -> dict[str, Json]:
    """Join requests that wait, domains that lapsed, certificates near their end."""
    ending = {"state": "active", "certificate_ends_before": rfc3339(utcnow() + NEAR)}
    found = {
        "join_requests": api.find(REQUESTS, tenant_id=tenant_id, state="pending"),
        "lapsed_domains": api.find(DOMAINS, tenant_id=tenant_id, state="lapsed"),
        "ending_certificates": api.find(SSO, tenant_id=tenant_id, **ending),
    }
    return {name: answer.data for name, answer in found.items() if answer and answer.data}


@form_page(f"{PLACE}/new")
def create_domain(tenant_id: UUID) -> Shown:
    form = Form("Add a domain", (NAME, *FIELDS), values={"join": "off", "join_role": "member"})
    query, done = {"tenant_id": tenant_id}, "Set the record below, then check it."
    return form.send("POST", DOMAINS, query=query, done=done, to=form.new_row)


@page(f"{PLACE}/<uuid:domain_id>")
def show_domain(tenant_id: UUID, domain_id: UUID) -> Shown:
    path = f"{DOMAINS}/{domain_id}"
    one = api.get(path).data
    due, has_failed = one["next_check_at"], bool(one["error"])
    text = "The record does not verify the domain." if has_failed else "The record was found."
    return render(
        "domain",
        one["display_name"],
        domain=one,
        rules=RULES,
        is_underway=due is not None and datetime.fromisoformat(due) < utcnow() + SOON,
        outcome=Notice(text, is_bad=has_failed),
        history=recent_history(path),
    )


@form_page(f"{PLACE}/<uuid:domain_id>/verify")
def verify_domain(tenant_id: UUID, domain_id: UUID) -> Shown:
    form = Form("Check the record", row=f"{DOMAINS}/{domain_id}")
    return form.send("POST", "/verify", done="The record is looked for now.")


@form_page(f"{PLACE}/<uuid:domain_id>/edit")
def edit_domain(tenant_id: UUID, domain_id: UUID) -> Shown:
    form = Form("Edit the domain", FIELDS, row=f"{DOMAINS}/{domain_id}")
    return form.send("PATCH", done="The domain was changed.", changed_only=True)


@form_page(f"{PLACE}/<uuid:domain_id>/sweep")
def sweep_domain(tenant_id: UUID, domain_id: UUID) -> Shown:
    """Take in the people who were known before the rule; a page takes in some of many."""
    path = f"{DOMAINS}/{domain_id}"
    form = Form("Take in known people", row=path, template="domain_sweep", submit="Take them in")
    query = {"after": request.args.get("after", "")}
    return form.send("POST", "/sweep", query=query, dry_run="preview", done=_swept, to=_next_sweep)


def _swept(answer: api.Answer) -> str:
    people = answer.data["people"]
    joined = sum(one["state"] == "accepted" for one in people)
    more = " There are more people: take in the next." if answer.data["next_after"] else ""
    return f"Joined: {joined:,}. Waiting for an answer: {len(people) - joined:,}.{more}"


def _next_sweep(answer: api.Answer) -> str:
    after = answer.data["next_after"]
    name = "console.sweep_domain" if after else "console.show_domain"
    return url_for(name, **(request.view_args or {}), after=after)


@form_page(f"{PLACE}/<uuid:domain_id>/delete")
def delete_domain(tenant_id: UUID, domain_id: UUID) -> Shown:
    intro = "Nobody joins by it any more, and another tenant can verify it. Members stay."
    form = row_form(DOMAINS, domain_id, "Delete the domain", intro, confirmation=tenant_slug)
    return form.send("DELETE", done="The domain was deleted.", to=form.above)


SSO_COLUMNS = "id tenant.name name provider type state domains certificate_ends_at created_at"
SSO_FILTERS = (Filter("state", "State", choices("active", "inactive", "draft")), ENDS)
SSO_LIST = ("/domains/sso", "sso_connections", "Single sign-on", SSO, SSO_COLUMNS, SSO_FILTERS)
list_page(*SSO_LIST, also_of_tenant=True, include="tenant")

LINK_COLUMNS = "id contact scopes state expires_at opened_at created_at"
LINK_STATES = Filter("state", "State", choices("unopened", "opened", "revoked", "expired"))
LINK_LIST = ("setup_links", "Setup links", LINKS, LINK_COLUMNS, (LINK_STATES,))
list_page(f"{PLACE}/setup-links", *LINK_LIST, shown={"scopes": SCOPES})


@form_page(f"{PLACE}/setup-links/new")
def create_setup_link(tenant_id: UUID) -> Shown:
    form = Form("New setup link", LINK, values={"expires_in_hours": 72}, submit="Create")
    form.intro = "The first browser that opens it can do these tasks, without an account."
    own = {"tenant_id": str(tenant_id)}
    body = lambda values: own | {name: one for name, one in values.items() if one}  # noqa: E731
    show = partial(secret_page, "The link", name="contact", key="url", what="link", back=form.back)
    return form.send("POST", LINKS, body=body, show=show)


@form_page(f"{PLACE}/setup-links/<uuid:link_id>/revoke")
def revoke_setup_link(tenant_id: UUID, link_id: UUID) -> Shown:
    intro = "The link and the session of its browser end at once. What was set up stays."
    form = row_form(LINKS, link_id, "Revoke the setup link", intro)
    return form.send("DELETE", done="The setup link was revoked.")

"""API keys: create one, whose secret is shown once; revoke."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import make_response, render_template, url_for

from app.auth.permissions import PLATFORM_ONLY, Permission
from app.console import api
from app.console.access import current_session, signed_in
from app.console.blueprint import console
from app.console.forms import Field, Form
from app.console.lists import Filter, list_rows
from app.console.pages.common import get_row, get_tenant

FILTERS = (Filter("is_active", "State", [("true", "valid"), ("false", "revoked or expired")]),)


@console.get("/api-keys")
@console.get("/tenants/<uuid:tenant_id>/api-keys")
@signed_in
def list_api_keys(tenant_id: UUID | None = None) -> str:
    """List API keys, of one tenant or of all and the platform."""
    return render_template(
        "console/api_keys.html",
        title="API keys",
        tenant=get_tenant(tenant_id),
        listing=list_rows("/v1/api-keys", FILTERS, tenant_id=tenant_id, include="tenant"),
    )


@console.route("/api-keys/new", methods=["GET", "POST"])
@console.route("/tenants/<uuid:tenant_id>/api-keys/new", methods=["GET", "POST"])
@signed_in
def create_api_key(tenant_id: UUID | None = None) -> Any:
    """Create an API key and show its secret once."""
    tenant = get_tenant(tenant_id)
    back = _list(tenant_id)
    session = current_session()
    offered = [
        each
        for each in Permission
        if session.can(each) and (tenant_id is None or each not in PLATFORM_ONLY)
    ]
    form = Form(
        "New API key",
        (
            Field("name", "Name", help="What uses the key.", is_required=True),
            Field("permissions", "Permissions", "checks", choices=[(p, p) for p in offered]),
            Field(
                "expires_at",
                "Expires at",
                "datetime-local",
                help="In UTC. Empty: it does not expire.",
                is_nullable=True,
            ),
        ),
        submit="Create the key",
        back=back,
        context={"tenant": tenant},
    )

    def show(answer: api.Answer) -> Any:
        page = render_template(
            "console/secret.html",
            title="The new API key",
            tenant=tenant,
            secret=answer.data.get("secret"),
            name=answer.data["name"],
            back=back,
        )
        return make_response(page, 201)

    return form.run(
        lambda values, _: api.call(
            "POST", "/v1/api-keys", query={"tenant_id": tenant_id}, body=values
        ),
        done="",
        to=back,
        show=show,
    )


@console.route("/api-keys/<uuid:key_id>/revoke", methods=["GET", "POST"])
@console.route("/tenants/<uuid:tenant_id>/api-keys/<uuid:key_id>/revoke", methods=["GET", "POST"])
@signed_in
def revoke_api_key(key_id: UUID, tenant_id: UUID | None = None) -> Any:
    """Revoke an API key."""
    path = f"/v1/api-keys/{key_id}"
    found = api.get(path) if tenant_id is None else get_row(tenant_id, path)
    form = Form(
        f"Revoke the key {found.data['name']}",
        version=found.etag,
        intro="The next request with this key is refused. This cannot be undone.",
        submit="Revoke",
        is_dangerous=True,
        confirmation=found.data["prefix"],
        back=_list(tenant_id),
        context={"tenant": get_tenant(tenant_id)},
    )
    return form.run(
        lambda _, version: api.call("DELETE", path, if_match=version),
        done="The key was revoked.",
        to=_list(tenant_id),
    )


def _list(tenant_id: UUID | None) -> str:
    return url_for("console.list_api_keys", tenant_id=tenant_id)

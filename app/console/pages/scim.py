"""SCIM connections: a customer's directory that provisions people, and how to set it up."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import make_response, render_template, request, url_for

from app.auth.permissions import Role
from app.config import current_config
from app.console import api
from app.console.access import signed_in
from app.console.blueprint import console
from app.console.forms import Field, Form, choices
from app.console.lists import list_rows
from app.console.pages.common import delete, edit, get_tenant, recent_history, rotate

PATH = "/v1/scim-connections"
PROVIDERS = {
    "okta": "Okta",
    "entra": "Entra ID",
    "onelogin": "OneLogin",
    "google": "Google Workspace",
    "jumpcloud": "JumpCloud",
    "generic": "another",
}
FIELDS = (
    Field("name", "Name", is_required=True),
    Field("provider", "Directory", "select", choices=list(PROVIDERS.items()), is_required=True),
    Field(
        "default_role",
        "Role of new people",
        "select",
        choices=choices(*Role),
        is_required=True,
    ),
    Field(
        "group_roles",
        "Roles of groups",
        "json",
        help='Such as {"Finance": "billing"}. Of several groups the highest role counts.',
    ),
    Field(
        "deactivate",
        "The end of a person in the directory",
        "select",
        choices=[("membership", "ends the membership"), ("user", "also deactivates the user")],
        is_required=True,
    ),
)
STATUS = Field("status", "State", "select", choices=choices("active", "disabled"), is_required=True)


@console.get("/tenants/<uuid:tenant_id>/scim")
@signed_in
def list_connections(tenant_id: UUID) -> str:
    """List a tenant's SCIM connections."""
    return render_template(
        "console/connections.html",
        title="SCIM",
        tenant=get_tenant(tenant_id),
        listing=list_rows(PATH, tenant_id=tenant_id),
    )


@console.route("/tenants/<uuid:tenant_id>/scim/new", methods=["GET", "POST"])
@signed_in
def create_connection(tenant_id: UUID) -> Any:
    """Create a connection, and show its token once."""
    form = Form(
        "New SCIM connection",
        FIELDS,
        values={"default_role": "member", "deactivate": "membership", "group_roles": {}},
        submit="Create",
        back=_list(tenant_id),
        context={"tenant": get_tenant(tenant_id)},
    )
    return form.run(
        lambda values, _: api.call("POST", PATH, query={"tenant_id": tenant_id}, body=values),
        done="",
        to=_list(tenant_id),
        show=lambda answer: _token(tenant_id, answer),
    )


@console.get("/tenants/<uuid:tenant_id>/scim/<uuid:connection_id>")
@signed_in
def show_connection(tenant_id: UUID, connection_id: UUID) -> str:
    """Show a connection, and how to set up the directory."""
    path = f"{PATH}/{connection_id}"
    connection = api.get(path).data
    return render_template(
        "console/connection.html",
        title=connection["name"],
        tenant=get_tenant(tenant_id),
        connection=connection,
        **_setup(connection),
        history=recent_history(path),
    )


@console.route("/tenants/<uuid:tenant_id>/scim/<uuid:connection_id>/edit", methods=["GET", "POST"])
@signed_in
def edit_connection(tenant_id: UUID, connection_id: UUID) -> Any:
    """Change a connection."""
    return edit(
        f"{PATH}/{connection_id}",
        "Edit the connection",
        (*FIELDS, STATUS),
        done="The connection was changed.",
        **_options(tenant_id, connection_id),
    )


@console.route(
    "/tenants/<uuid:tenant_id>/scim/<uuid:connection_id>/rotate", methods=["GET", "POST"]
)
@signed_in
def rotate_connection(tenant_id: UUID, connection_id: UUID) -> Any:
    """Give a connection a new token, and show it once."""
    return rotate(
        f"{PATH}/{connection_id}",
        "Replace the token",
        intro="The old token stays valid for 24 hours.",
        show=lambda answer: _token(tenant_id, answer),
        **_options(tenant_id, connection_id),
    )


@console.route(
    "/tenants/<uuid:tenant_id>/scim/<uuid:connection_id>/delete", methods=["GET", "POST"]
)
@signed_in
def delete_connection(tenant_id: UUID, connection_id: UUID) -> Any:
    """Delete a connection."""
    options = _options(tenant_id, connection_id)
    return delete(
        f"{PATH}/{connection_id}",
        "Delete the connection",
        intro="The directory can change nothing any more. The people stay as they are.",
        confirmation=options["context"]["tenant"]["slug"],
        done="The connection was deleted.",
        to=_list(tenant_id),
        **options,
    )


def _options(tenant_id: UUID, connection_id: UUID) -> dict[str, Any]:
    """The options of a connection's forms."""
    page = url_for("console.show_connection", tenant_id=tenant_id, connection_id=connection_id)
    return {"back": page, "context": {"tenant": get_tenant(tenant_id)}}


def _token(tenant_id: UUID, answer: api.Answer) -> Any:
    page = render_template(
        "console/secret.html",
        title="The connection's token",
        tenant=get_tenant(tenant_id),
        secret=answer.data.get("token"),
        name=answer.data["name"],
        **_setup(answer.data, answer.data.get("token") or ""),
        back=_list(tenant_id),
    )
    return make_response(page, answer.status)


def _setup(connection: Any, token: str = "") -> dict[str, Any]:
    """The connection's directory, and what to paste there."""
    base = current_config().public_url or request.host_url
    provider = connection["provider"]
    return {
        "provider": provider,
        "directory": PROVIDERS[provider],
        "base_url": f"{base.rstrip('/')}/scim/v2",
        "token": token,
    }


def _list(tenant_id: UUID) -> str:
    return url_for("console.list_connections", tenant_id=tenant_id)

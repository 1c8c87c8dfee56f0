"""SCIM connections: a customer's directory that provisions people, and how to set it up."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from flask import request

from app.auth.permissions import Role
from app.console import api
from app.console.blueprint import Shown, form_page, page, render
from app.console.fields import Field, Inputs, Sent, choices
from app.console.forms import Form, row_form
from app.console.lists import list_page
from app.console.pages.common import recent_history, secret_page, tenant_slug
from app.console.pages.roles import offered_roles
from app.core.http.routing import own_address
from app.core.json_text import Json

PATH, PLACE = "/v1/scim-connections", "/tenants/<uuid:tenant_id>/scim"
CONNECTION = f"{PLACE}/<uuid:connection_id>"
COLUMNS = "id name provider status user_count group_count last_request_at created_at"
PROVIDERS = {
    "okta": "Okta",
    "entra": "Entra ID",
    "onelogin": "OneLogin",
    "google": "Google Workspace",
    "jumpcloud": "JumpCloud",
    "generic": "another",
}


class GroupRoles(Field):
    """The roles of groups, one group in a row; a row without a group is left out."""

    def read(self, form: Sent) -> Json:
        """The roles by their groups; raises ValueError for a group with two roles."""
        pairs = self.typed(form)
        if len(dict(pairs)) < len(pairs):
            raise ValueError("A group is named twice.")
        return dict(pairs)

    def typed(self, form: Sent) -> Json:
        groups, roles = (form.getlist(name) for name in self.inputs([]))
        pairs = zip(groups, roles, strict=False)
        return [(group.strip(), role) for group, role in pairs if group.strip()]

    def shown(self, value: Json) -> Json:
        return list((value or {}).items())

    def inputs(self, shown: Json) -> Inputs:
        return {
            f"{self.name}_group": [group for group, _ in shown],
            f"{self.name}_role": [role for _, role in shown],
        }


GROUPS = (
    "A group of the directory, and its role. Of the five roles of members the highest counts; other"
    " roles are added. A row without a group is left out; saving adds empty rows."
)
LEAVES = "When a person leaves the directory"
ENDS = [("membership", "end the membership"), ("user", "also deactivate the user")]
OFFERED = list(PROVIDERS.items())
DIRECTORY = Field("provider", "Directory", "select", choices=OFFERED, is_required=True)
FIELDS = (
    Field("name", "Name", is_required=True),
    DIRECTORY,
    Field("default_role", "Role of new people", "select", choices=choices(*Role), is_required=True),
    GroupRoles("group_roles", "Roles of groups", "pairs", help=GROUPS, choices=offered_roles),
    Field("deactivate", LEAVES, "select", choices=ENDS, is_required=True),
)
STATUS = Field("status", "State", "select", choices=choices("active", "disabled"), is_required=True)

list_page(PLACE, "connections", "SCIM", PATH, COLUMNS)


@form_page(f"{PLACE}/new")
def create_connection(tenant_id: UUID) -> Shown:
    values = {"default_role": "member", "deactivate": "membership", "group_roles": {}}
    form = Form("New SCIM connection", FIELDS, values=values, submit="Create")
    return form.send("POST", PATH, query={"tenant_id": tenant_id}, show=partial(_token, form.back))


@page(CONNECTION)
def show_connection(tenant_id: UUID, connection_id: UUID) -> Shown:
    path = f"{PATH}/{connection_id}"
    connection = api.get(path).data
    values = {"connection": connection, **_setup(connection), "history": recent_history(path)}
    return render("connection", connection["name"], **values)


@form_page(f"{CONNECTION}/edit")
def edit_connection(tenant_id: UUID, connection_id: UUID) -> Shown:
    form = Form("Edit the connection", (*FIELDS, STATUS), row=f"{PATH}/{connection_id}")
    return form.send("PATCH", done="The connection was changed.", changed_only=True)


@form_page(f"{CONNECTION}/rotate")
def rotate_connection(tenant_id: UUID, connection_id: UUID) -> Shown:
    intro = "The old token stays valid for 24 hours."
    form = row_form(PATH, connection_id, "Replace the token", intro)
    return form.send("POST", "/rotate", body={}, show=partial(_token, form.above))


@form_page(f"{CONNECTION}/delete")
def delete_connection(tenant_id: UUID, connection_id: UUID) -> Shown:
    intro = "The directory can change nothing any more. People stay; roles of its groups end."
    title = "Delete the connection"
    form = row_form(PATH, connection_id, title, intro, confirmation=tenant_slug)
    return form.send("DELETE", done="The connection was deleted.", to=form.above)


def _token(back: str, answer: api.Answer) -> Shown:
    setup, title = _setup(answer.data, answer.data.get("token") or ""), "The connection's token"
    return secret_page(title, answer, name="name", key="token", back=back, **setup)


def _setup(connection: Json, token: str = "") -> dict[str, str]:
    """The connection's directory, and what to paste there."""
    provider = connection["provider"]
    return {
        "provider": provider,
        "directory": PROVIDERS[provider],
        "base_url": f"{own_address(request)}/scim/v2",
        "token": token,
    }

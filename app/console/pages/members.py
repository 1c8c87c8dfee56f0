"""Members: their roles, and why a person is refused."""

from __future__ import annotations

from uuid import UUID

from flask import request

from app.auth.permissions import TENANT, Permission, Role
from app.console import api, words
from app.console.blueprint import Shown, form_page, page, render
from app.console.fields import Field, choices
from app.console.forms import Form
from app.console.lists import DATES, NAME, Filter, list_rows, show_list
from app.console.pages.common import RowName, recent_history
from app.core.json_text import Json

ROLE = Field("role", "Role", "select", choices=choices(*Role), is_required=True)
PERSON = RowName("user_id", "User", help="Name, e-mail address or id.", is_required=True, of="user")
FILTERS = (
    NAME,
    Filter("role", "Role", choices(*Role)),
    Filter("is_active", "State", [("true", "active"), ("false", "ended")]),
    *DATES,
)
COLUMNS = "id user.first_name user.last_name user.email role is_active user.is_active created_at"
PATH = "/v1/memberships/tenant"


@page("/tenants/<uuid:tenant_id>/members")
def list_members(tenant_id: UUID) -> Shown:
    listing = list_rows(PATH, FILTERS, tenant_id=tenant_id, include="user")
    return show_list("members", "Members", listing, COLUMNS)


@form_page("/tenants/<uuid:tenant_id>/members/new")
def create_member(tenant_id: UUID) -> Shown:
    """Add a member; ``person`` in the URL is a name, an address or an id to begin with."""
    form = Form(
        "Add a member",
        (PERSON, ROLE),
        values={"user_id": request.args.get("person"), "role": Role.MEMBER},
        submit="Add the member",
    )
    return form.send(
        "POST",
        PATH,
        query={"tenant_id": tenant_id},
        done="The user is a member.",
        to=lambda answer: f"{form.back}/{answer.data['id']}",
    )


@page("/tenants/<uuid:tenant_id>/members/<uuid:membership_id>")
def show_member(tenant_id: UUID, membership_id: UUID) -> Shown:
    """Show a membership, its history, and with ``permission`` why the person has it or not."""
    path = f"{PATH}/{membership_id}"
    member = api.get(path, include="user").data
    permission = request.args.get("permission", "")
    explanation = None
    if permission:
        explanation = api.get(
            "/v1/access/explain",
            permission=permission,
            user_id=member["user_id"],
            tenant_id=tenant_id,
        ).data
    return render(
        "member",
        words.person(member["user"]),
        member=member,
        permission=permission,
        permissions=[each for each in Permission if each in TENANT],
        explanation=explanation,
        history=recent_history(path),
    )


@form_page("/tenants/<uuid:tenant_id>/members/<uuid:membership_id>/role")
def change_member_role(tenant_id: UUID, membership_id: UUID) -> Shown:
    form = Form(
        "Change the role of {}",
        (ROLE,),
        row=f"{PATH}/{membership_id}",
        name=_name,
        submit="Change the role",
    )
    return form.send("PATCH", "/role", in_query=True, done="The role was changed.", undo="role")


@form_page("/tenants/<uuid:tenant_id>/members/<uuid:membership_id>/end")
def end_member(tenant_id: UUID, membership_id: UUID) -> Shown:
    form = Form(
        "End the membership of {}",
        row=f"{PATH}/{membership_id}",
        name=_name,
        intro="The person cannot use this tenant until the membership is activated again.",
        submit="End the membership",
        is_dangerous=True,
    )
    query = {"is_active": False}
    return form.send(
        "PATCH", "/active", query=query, done="The membership has ended.", undo="activate"
    )


@form_page("/tenants/<uuid:tenant_id>/members/<uuid:membership_id>/activate")
def activate_member(tenant_id: UUID, membership_id: UUID) -> Shown:
    form = Form(
        "Activate the membership of {}",
        row=f"{PATH}/{membership_id}",
        name=_name,
        intro="The person can use this tenant again, with the role that the membership has.",
    )
    query = {"is_active": True}
    return form.send("PATCH", "/active", query=query, done="The membership is active.", undo="end")


def _name(member: Json) -> str:
    return words.person(api.get_once(f"/v1/users/{member['user_id']}").data)

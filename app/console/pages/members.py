"""Members and their roles."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from flask import request

from app.auth.permissions import Role
from app.console import api, words
from app.console.blueprint import Shown, form_page, page, render
from app.console.fields import Field, choices
from app.console.forms import Form, row_form
from app.console.lists import DATES, NAME, Filter, list_page
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
PATH, PLACE = "/v1/memberships/tenant", "/tenants/<uuid:tenant_id>/members"
MEMBER = f"{PLACE}/<uuid:membership_id>"


def _name(member: Json) -> str:
    return words.person(api.get_once(f"/v1/users/{member['user_id']}").data)


_form = partial(row_form, PATH, name=_name)

list_page(PLACE, "members", "Members", PATH, COLUMNS, FILTERS, include="user")


@form_page(f"{PLACE}/new")
def create_member(tenant_id: UUID) -> Shown:
    """Add a member; ``person`` in the URL is a name, an address or an id to begin with."""
    values = {"user_id": request.args.get("person"), "role": Role.MEMBER}
    form = Form("Add a member", (PERSON, ROLE), values=values, submit="Add the member")
    query, done = {"tenant_id": tenant_id}, "The user is a member."
    return form.send("POST", PATH, query=query, done=done, to=form.new_row)


@page(MEMBER)
def show_member(tenant_id: UUID, membership_id: UUID) -> Shown:
    path = f"{PATH}/{membership_id}"
    member, history = api.get(path, include="user").data, recent_history(path)
    return render("member", words.person(member["user"]), member=member, history=history)


@form_page(f"{MEMBER}/role")
def change_member_role(tenant_id: UUID, membership_id: UUID) -> Shown:
    title = "Change the role of {}"
    form = _form(membership_id, title, fields=(ROLE,), submit="Change the role")
    return form.send("PATCH", "/role", in_query=True, done="The role was changed.", undo="role")


@form_page(f"{MEMBER}/end")
def end_member(tenant_id: UUID, membership_id: UUID) -> Shown:
    intro = "The person cannot use this tenant until the membership is activated again."
    title, submit = "End the membership of {}", "End the membership"
    form = _form(membership_id, title, intro, submit=submit, is_dangerous=True)
    query, done = {"is_active": False}, "The membership has ended."
    return form.send("PATCH", "/active", query=query, done=done, undo="activate")


@form_page(f"{MEMBER}/activate")
def activate_member(tenant_id: UUID, membership_id: UUID) -> Shown:
    intro = "The person can use this tenant again, with the role that the membership has."
    form = _form(membership_id, "Activate the membership of {}", intro)
    query, done = {"is_active": True}, "The membership is active."
    return form.send("PATCH", "/active", query=query, done=done, undo="end")

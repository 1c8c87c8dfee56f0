"""Members: their roles, and why a person is refused."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import render_template, request, url_for

from app.auth.permissions import TENANT, Permission, Role
from app.console import api
from app.console.access import signed_in
from app.console.blueprint import console
from app.console.forms import Field, Form, choices
from app.console.lists import Filter, list_rows
from app.console.pages.common import get_row, get_tenant, recent_history, row_form

ROLE = Field("role", "Role", "select", choices=choices(*Role), is_required=True)
FILTERS = (
    Filter("role", "Role", choices(*Role)),
    Filter("is_active", "State", [("true", "active"), ("false", "ended")]),
)
PATH = "/v1/memberships/tenant"


@console.get("/tenants/<uuid:tenant_id>/members")
@signed_in
def list_members(tenant_id: UUID) -> str:
    """List the members of a tenant with their roles."""
    return render_template(
        "console/members.html",
        title="Members",
        tenant=get_tenant(tenant_id),
        listing=list_rows(PATH, FILTERS, tenant_id=tenant_id, include="user"),
    )


@console.get("/tenants/<uuid:tenant_id>/members/<uuid:membership_id>")
@signed_in
def show_member(tenant_id: UUID, membership_id: UUID) -> str:
    """Show a membership, its history, and with ``permission`` why the person has it or not."""
    tenant = get_tenant(tenant_id)
    member = get_row(tenant_id, f"{PATH}/{membership_id}", include="user").data
    permission = request.args.get("permission", "")
    explanation = None
    if permission:
        explanation = api.get(
            "/v1/access/explain",
            permission=permission,
            user_id=member["user_id"],
            tenant_id=tenant_id,
        ).data
    return render_template(
        "console/member.html",
        title=_name(member["user"]),
        tenant=tenant,
        member=member,
        permission=permission,
        permissions=[each for each in Permission if each in TENANT],
        explanation=explanation,
        history=recent_history(f"{PATH}/{membership_id}"),
    )


@console.route(
    "/tenants/<uuid:tenant_id>/members/<uuid:membership_id>/role", methods=["GET", "POST"]
)
@signed_in
def change_member_role(tenant_id: UUID, membership_id: UUID) -> Any:
    """Give a member another role."""
    form = _form(
        tenant_id, membership_id, "Change the role", fields=(ROLE,), submit="Change the role"
    )
    return form.run(
        lambda values, version: api.call(
            "PATCH", f"{PATH}/{membership_id}/role", query=values, if_match=version
        ),
        done="The role was changed.",
        to=form.back,
    )


@console.route(
    "/tenants/<uuid:tenant_id>/members/<uuid:membership_id>/end", methods=["GET", "POST"]
)
@signed_in
def end_member(tenant_id: UUID, membership_id: UUID) -> Any:
    """End a membership."""
    return _set_active(
        tenant_id,
        membership_id,
        is_active=False,
        title="End the membership",
        intro="The person cannot use this tenant until the membership is activated again.",
        submit="End the membership",
        done="The membership has ended.",
    )


@console.route(
    "/tenants/<uuid:tenant_id>/members/<uuid:membership_id>/activate", methods=["GET", "POST"]
)
@signed_in
def activate_member(tenant_id: UUID, membership_id: UUID) -> Any:
    """Activate a membership that has ended."""
    return _set_active(
        tenant_id,
        membership_id,
        is_active=True,
        title="Activate the membership",
        intro="The person can use this tenant again, with the role that the membership has.",
        submit="Activate",
        done="The membership is active.",
    )


@console.route("/tenants/<uuid:tenant_id>/users/<uuid:user_id>/member", methods=["GET", "POST"])
@signed_in
def add_member(tenant_id: UUID, user_id: UUID) -> Any:
    """Make a user a member of the tenant."""
    get_row(tenant_id, f"/v1/users/{user_id}")
    form = Form(
        "Make the user a member",
        (ROLE,),
        values={"role": Role.MEMBER},
        submit="Add the member",
        back=url_for("console.show_user", tenant_id=tenant_id, user_id=user_id),
        context={"tenant": get_tenant(tenant_id)},
    )
    return form.run(
        lambda values, _: api.call(
            "POST", PATH, query={"tenant_id": tenant_id}, body={**values, "user_id": str(user_id)}
        ),
        done="The user is a member.",
        to=lambda answer: _page(tenant_id, answer.data["id"]),
    )


def _set_active(
    tenant_id: UUID, membership_id: UUID, *, is_active: bool, done: str, **texts: Any
) -> Any:
    form = _form(tenant_id, membership_id, is_dangerous=not is_active, **texts)
    return form.run(
        lambda _, version: api.call(
            "PATCH",
            f"{PATH}/{membership_id}/active",
            query={"is_active": is_active},
            if_match=version,
        ),
        done=done,
        to=form.back,
    )


def _form(tenant_id: UUID, membership_id: UUID, title: str, **options: Any) -> Form:
    page = _page(tenant_id, membership_id)
    return row_form(title, tenant_id, f"{PATH}/{membership_id}", back=page, **options)


def _name(user: Any) -> str:
    return f"{user['first_name']} {user['last_name']}".strip() or user["email"]


def _page(tenant_id: UUID, membership_id: object) -> str:
    return url_for("console.show_member", tenant_id=tenant_id, membership_id=membership_id)

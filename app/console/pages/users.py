"""Users: profile, metadata, tenants, whether e-mail reaches them; deactivate and erase."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from flask import Response, render_template, url_for

from app.auth.permissions import Permission
from app.console import api
from app.console.access import current_session, signed_in
from app.console.blueprint import console
from app.console.forms import Field, Form
from app.console.lists import STATE, Filter, list_rows
from app.console.metadata import metadata_facts, metadata_fields, metadata_patches
from app.console.pages.common import get_row, get_tenant, recent_history, row_form

FILTERS = (Filter("email", "E-mail address"), STATE)
PROFILE = (
    Field("first_name", "First name"),
    Field("last_name", "Last name"),
    Field("email", "E-mail address", "email", is_required=True),
)
SUBJECT = Field("idp_user_id", "User id of the identity provider", is_required=True)


@console.get("/users")
@console.get("/tenants/<uuid:tenant_id>/users")
@signed_in
def list_users(tenant_id: UUID | None = None) -> str:
    """List users, of one tenant or of all."""
    return render_template(
        "console/users.html",
        title="Users",
        tenant=get_tenant(tenant_id),
        listing=list_rows("/v1/users", FILTERS, tenant_id=tenant_id, include="tenant"),
    )


@console.route("/tenants/<uuid:tenant_id>/users/new", methods=["GET", "POST"])
@signed_in
def create_user(tenant_id: UUID) -> Any:
    """Create a user in a tenant."""
    form = Form(
        "New user",
        (SUBJECT, *PROFILE),
        submit="Create",
        back=url_for("console.list_users", tenant_id=tenant_id),
        context={"tenant": get_tenant(tenant_id)},
    )
    return form.run(
        lambda values, _: api.call(
            "POST", "/v1/users", query={"tenant_id": tenant_id}, body=values
        ),
        done="The user was created.",
        to=lambda answer: _page(tenant_id, answer.data["id"]),
    )


@console.get("/tenants/<uuid:tenant_id>/users/<uuid:user_id>")
@signed_in
def show_user(tenant_id: UUID, user_id: UUID) -> str:
    """Show a user."""
    tenant = get_tenant(tenant_id)
    path = f"/v1/users/{user_id}"
    user = get_row(tenant_id, path).data
    memberships = api.find("/v1/memberships/tenant", user_id=user_id, tenant_id=tenant_id)
    return render_template(
        "console/user.html",
        title=f"{user['first_name']} {user['last_name']}".strip() or user["email"] or "User",
        tenant=tenant,
        user=user,
        memberships=memberships.data if memberships else [],
        meta_data=metadata_facts(tenant_id, "user", user["meta_data"]),
        mail=_mail(user["email"]),
        history=recent_history(path),
    )


@console.route("/tenants/<uuid:tenant_id>/users/<uuid:user_id>/edit", methods=["GET", "POST"])
@signed_in
def edit_user(tenant_id: UUID, user_id: UUID) -> Any:
    """Change a user's profile."""
    return _change(
        tenant_id, user_id, "Edit the profile", fields=PROFILE, done="The profile was changed."
    )


@console.route("/tenants/<uuid:tenant_id>/users/<uuid:user_id>/metadata", methods=["GET", "POST"])
@signed_in
def edit_user_metadata(tenant_id: UUID, user_id: UUID) -> Any:
    """Change a user's metadata, by a form of the tenant's custom fields."""
    fields = metadata_fields(tenant_id, "user")
    form = _form(
        tenant_id,
        user_id,
        "Edit the metadata",
        fields=fields,
        intro="" if fields else "This tenant has no custom fields of the type user.",
    )
    form.values = form.values["meta_data"]
    return form.run(
        lambda values, version: api.call(
            "PATCH",
            f"/v1/users/{user_id}/meta_data",
            body={"patches": metadata_patches(values)},
            if_match=version,
        ),
        done="The metadata was changed.",
        to=form.back,
        changed_only=True,
    )


@console.route("/tenants/<uuid:tenant_id>/users/<uuid:user_id>/deactivate", methods=["GET", "POST"])
@signed_in
def deactivate_user(tenant_id: UUID, user_id: UUID) -> Any:
    """Deactivate a user."""
    return _change(
        tenant_id,
        user_id,
        "Deactivate the user",
        done="The user is deactivated.",
        also={"is_active": False},
        intro="All requests of this person are refused in this tenant, and the sessions end.",
        submit="Deactivate",
        is_dangerous=True,
    )


@console.route("/tenants/<uuid:tenant_id>/users/<uuid:user_id>/activate", methods=["GET", "POST"])
@signed_in
def activate_user(tenant_id: UUID, user_id: UUID) -> Any:
    """Activate a user who was deactivated."""
    return _change(
        tenant_id,
        user_id,
        "Activate the user",
        done="The user is active.",
        also={"is_active": True},
        intro="The person can use this tenant again, where the membership is active.",
        submit="Activate",
    )


@console.route("/tenants/<uuid:tenant_id>/users/<uuid:user_id>/export", methods=["GET", "POST"])
@signed_in
def export_user(tenant_id: UUID, user_id: UUID) -> Any:
    """Download what is stored about a user."""
    form = _form(
        tenant_id,
        user_id,
        "Export the user",
        intro="A file with what this tenant has about the person, table by table. The audit trail"
        " records the export.",
        submit="Download",
    )
    return form.run(
        lambda *_: api.call("POST", f"/v1/users/{user_id}/export"),
        done="",
        to=form.back,
        show=lambda answer: _download(user_id, answer),
    )


@console.route("/tenants/<uuid:tenant_id>/users/<uuid:user_id>/erase", methods=["GET", "POST"])
@signed_in
def erase_user(tenant_id: UUID, user_id: UUID) -> Any:
    """Erase a user's personal data in this tenant."""
    form = _form(tenant_id, user_id, "Erase the user", submit="Erase the user", is_dangerous=True)
    form.intro = (
        f"The personal data of {form.values['email']} in this tenant is deleted or redacted."
        " This cannot be undone."
    )
    form.confirmation = form.context["tenant"]["slug"]
    return form.run(
        lambda _, version: api.call("DELETE", f"/v1/users/{user_id}", if_match=version),
        done="The user is deactivated, and is being erased.",
        to=form.back,
    )


def _change(
    tenant_id: UUID,
    user_id: UUID,
    title: str,
    *,
    done: str,
    also: dict[str, Any] | None = None,
    **options: Any,
) -> Any:
    form = _form(tenant_id, user_id, title, **options)
    return form.run(
        lambda values, version: api.call(
            "PATCH", f"/v1/users/{user_id}", body={**values, **(also or {})}, if_match=version
        ),
        done=done,
        to=form.back,
        changed_only=True,
    )


def _form(tenant_id: UUID, user_id: UUID, title: str, **options: Any) -> Form:
    page = _page(tenant_id, user_id)
    return row_form(title, tenant_id, f"/v1/users/{user_id}", back=page, **options)


def _download(user_id: UUID, answer: api.Answer) -> Response:
    return Response(
        json.dumps(answer.data, ensure_ascii=False, indent=2),
        content_type="application/json",
        headers={"Content-Disposition": f'attachment; filename="user-{user_id}.json"'},
    )


def _mail(address: str) -> Any:
    """What is known of e-mail to an address; None where the person may not read it."""
    if not address or not current_session().can(Permission.WEBHOOKS_READ):
        return None
    emails = "/v1/app-communications"
    suppressions = api.call("GET", f"{emails}/suppressions", query={"address": address})
    query = {"recipient": address, "limit": 5, "order": "-created_at"}
    messages = api.call("GET", f"{emails}/email-messages", query=query)
    return {
        "suppressions": suppressions.data if suppressions.is_ok else [],
        "messages": messages.data if messages.is_ok else [],
    }


def _page(tenant_id: UUID, user_id: object) -> str:
    return url_for("console.show_user", tenant_id=tenant_id, user_id=user_id)

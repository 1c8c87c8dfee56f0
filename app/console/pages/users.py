"""Users: profile, metadata, tenants, whether e-mail reaches them; deactivate and erase."""

from __future__ import annotations

import json
from functools import partial
from uuid import UUID

from flask import Response

from app.auth.permissions import Permission
from app.console import api, words
from app.console.access import current_session
from app.console.blueprint import Shown, form_page, page, render
from app.console.fields import Field
from app.console.forms import Form
from app.console.lists import DATES, NAME, STATE, Filter, list_rows, show_list
from app.console.metadata import metadata_facts, metadata_form, metadata_patches
from app.console.pages.common import recent_history
from app.core.json_text import Json

FILTERS = (NAME, STATE, Filter("email", "E-mail address", is_rare=True), *DATES)
COLUMNS = "id first_name last_name email tenant.name is_active created_at"
PATH = "/v1/users"
PROFILE = (
    Field("first_name", "First name"),
    Field("last_name", "Last name"),
    Field("email", "E-mail address", "email", is_required=True),
)
SUBJECT = Field("idp_user_id", "User id of the identity provider", is_required=True)


@page("/users", also_of_tenant=True)
def list_users(tenant_id: UUID | None = None) -> Shown:
    listing = list_rows(PATH, FILTERS, tenant_id=tenant_id, include="tenant")
    return show_list("users", "Users", listing, COLUMNS)


@form_page("/tenants/<uuid:tenant_id>/users/new")
def create_user(tenant_id: UUID) -> Shown:
    form = Form("New user", (SUBJECT, *PROFILE), submit="Create")
    return form.send(
        "POST",
        PATH,
        query={"tenant_id": tenant_id},
        done="The user was created.",
        to=lambda answer: f"{form.back}/{answer.data['id']}",
    )


@page("/tenants/<uuid:tenant_id>/users/<uuid:user_id>")
def show_user(tenant_id: UUID, user_id: UUID) -> Shown:
    path = f"{PATH}/{user_id}"
    user = api.get(path).data
    memberships = api.find("/v1/memberships/tenant", user_id=user_id, tenant_id=tenant_id)
    return render(
        "user",
        words.person(user),
        user=user,
        memberships=memberships.data if memberships else [],
        meta_data=metadata_facts(tenant_id, "user", user["meta_data"]),
        mail=_mail(user["email"]),
        history=recent_history(path),
    )


@form_page("/tenants/<uuid:tenant_id>/users/<uuid:user_id>/edit")
def edit_user(tenant_id: UUID, user_id: UUID) -> Shown:
    form = Form("Edit the profile of {}", PROFILE, row=f"{PATH}/{user_id}", name=words.person)
    return form.send("PATCH", done="The profile was changed.", changed_only=True)


@form_page("/tenants/<uuid:tenant_id>/users/<uuid:user_id>/metadata")
def edit_user_metadata(tenant_id: UUID, user_id: UUID) -> Shown:
    path = f"{PATH}/{user_id}"
    found = api.get_once(path)
    form = metadata_form(tenant_id, "user", found, lambda _: words.person(found.data))
    return form.send(
        "PATCH",
        f"{path}/meta_data",
        body=metadata_patches,
        done="The metadata was changed.",
        changed_only=True,
    )


@form_page("/tenants/<uuid:tenant_id>/users/<uuid:user_id>/deactivate")
def deactivate_user(tenant_id: UUID, user_id: UUID) -> Shown:
    form = Form(
        "Deactivate {}",
        row=f"{PATH}/{user_id}",
        name=words.person,
        intro="All requests of this person are refused in this tenant, and the sessions end.",
        is_dangerous=True,
    )
    done = "The user is deactivated."
    return form.send("PATCH", body={"is_active": False}, done=done, undo="activate")


@form_page("/tenants/<uuid:tenant_id>/users/<uuid:user_id>/activate")
def activate_user(tenant_id: UUID, user_id: UUID) -> Shown:
    form = Form(
        "Activate {}",
        row=f"{PATH}/{user_id}",
        name=words.person,
        intro="The person can use this tenant again, where the membership is active.",
    )
    done = "The user is active."
    return form.send("PATCH", body={"is_active": True}, done=done, undo="deactivate")


@form_page("/tenants/<uuid:tenant_id>/users/<uuid:user_id>/export")
def export_user(tenant_id: UUID, user_id: UUID) -> Shown:
    form = Form(
        "Export {}",
        row=f"{PATH}/{user_id}",
        name=words.person,
        intro="A file with what this tenant has about the person, table by table. The audit trail"
        " records the export.",
        submit="Download",
    )
    return form.send("POST", "/export", show=partial(_download, user_id))


@form_page("/tenants/<uuid:tenant_id>/users/<uuid:user_id>/erase")
def erase_user(tenant_id: UUID, user_id: UUID) -> Shown:
    path = f"{PATH}/{user_id}"

    def who() -> str:
        return api.get_once(path).data["email"] or str(user_id)

    form = Form(
        "Erase {}",
        row=path,
        name=words.person,
        intro=lambda: (
            f"The personal data of {who()} in this tenant is deleted or redacted."
            " This cannot be undone."
        ),
        confirmation=who,
    )
    return form.send("DELETE", done="The user is deactivated, and is being erased.")


def _download(user_id: UUID, answer: api.Answer) -> Response:
    return Response(
        json.dumps(answer.data, ensure_ascii=False, indent=2),
        content_type="application/json",
        headers={"Content-Disposition": f'attachment; filename="user-{user_id}.json"'},
    )


def _mail(address: str) -> Json:
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

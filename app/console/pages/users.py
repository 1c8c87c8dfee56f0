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
from app.console.forms import Form, row_form
from app.console.lists import DATES, NAME, STATE, Filter, list_page
from app.console.metadata import metadata_facts, metadata_form, send_metadata
from app.console.pages.common import recent_history
from app.console.pages.history import past
from app.core.json_text import Json

FILTERS = (NAME, STATE, Filter("email", "E-mail address", is_rare=True), *DATES)
COLUMNS = "id first_name last_name email tenant.name is_active created_at"
PATH, USER = "/v1/users", "/tenants/<uuid:tenant_id>/users/<uuid:user_id>"
PROFILE = (
    Field("first_name", "First name"),
    Field("last_name", "Last name"),
    Field("email", "E-mail address", "email", is_required=True),
)
SUBJECT = Field("idp_user_id", "User id of the identity provider", is_required=True)

_form = partial(row_form, PATH, name=words.person)

list_page("/users", "users", "Users", PATH, COLUMNS, FILTERS, also_of_tenant=True, include="tenant")


@form_page("/tenants/<uuid:tenant_id>/users/new")
def create_user(tenant_id: UUID) -> Shown:
    form = Form("New user", (SUBJECT, *PROFILE), submit="Create")
    query, done = {"tenant_id": tenant_id}, "The user was created."
    return form.send("POST", PATH, query=query, done=done, to=form.new_row)


@page(USER)
def show_user(tenant_id: UUID, user_id: UUID) -> Shown:
    path = f"{PATH}/{user_id}"
    then = past(path)
    user = then.row
    return render(
        "user",
        words.person(user),
        user=user,
        memberships=then.rows("/v1/memberships/tenant", tenant_id, user_id=user_id) or [],
        meta_data=metadata_facts(tenant_id, "user", user["meta_data"]),
        mail=None if then.moment else _mail(user["email"]),
        history=None if then.moment else recent_history(path),
        **then.values,
    )


@form_page(f"{USER}/edit")
def edit_user(tenant_id: UUID, user_id: UUID) -> Shown:
    form = _form(user_id, "Edit the profile of {}", fields=PROFILE)
    return form.send("PATCH", done="The profile was changed.", changed_only=True)


@form_page(f"{USER}/metadata")
def edit_user_metadata(tenant_id: UUID, user_id: UUID) -> Shown:
    path = f"{PATH}/{user_id}"
    found = api.get_once(path)
    form = metadata_form(tenant_id, "user", found, lambda _: words.person(found.data))
    return send_metadata(form, f"{path}/meta_data")


@form_page(f"{USER}/deactivate")
def deactivate_user(tenant_id: UUID, user_id: UUID) -> Shown:
    intro = "All requests of this person are refused in this tenant, and the sessions end."
    form = _form(user_id, "Deactivate {}", intro, is_dangerous=True)
    done = "The user is deactivated."
    return form.send("PATCH", body={"is_active": False}, done=done, undo="activate")


@form_page(f"{USER}/activate")
def activate_user(tenant_id: UUID, user_id: UUID) -> Shown:
    intro = "The person can use this tenant again, where the membership is active."
    form, done = _form(user_id, "Activate {}", intro), "The user is active."
    return form.send("PATCH", body={"is_active": True}, done=done, undo="deactivate")


@form_page(f"{USER}/export")
def export_user(tenant_id: UUID, user_id: UUID) -> Shown:
    intro = (
        "A file with what this tenant has about the person, table by table. The audit trail"
        " records the export."
    )
    form = _form(user_id, "Export {}", intro, submit="Download")
    return form.send("POST", "/export", show=partial(_download, user_id))


@form_page(f"{USER}/erase")
def erase_user(tenant_id: UUID, user_id: UUID) -> Shown:
    def who() -> str:
        return api.get_once(f"{PATH}/{user_id}").data["email"] or str(user_id)

    def intro() -> str:
        data = f"The personal data of {who()} in this tenant is deleted or redacted."
        return f"{data} This cannot be undone."

    form = _form(user_id, "Erase {}", intro, confirmation=who)
    return form.send("DELETE", done="The user is deactivated, and is being erased.")


def _download(user_id: UUID, answer: api.Answer) -> Response:
    return Response(
        json.dumps(answer.data, ensure_ascii=False, indent=2),
        content_type="application/json",
        headers={"Content-Disposition": f'attachment; filename="user-{user_id}.json"'},
    )


def _mail(address: str) -> Json:
    """The known state of e-mail to an address; None if the person may not read it."""
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

"""API keys: create, and show the secret once; revoke."""

from __future__ import annotations

from uuid import UUID

from app.auth.permissions import PLATFORM_ONLY, Permission
from app.console import api, words
from app.console.access import current_session
from app.console.blueprint import Shown, form_page
from app.console.fields import Choices, Field, moment_field
from app.console.forms import Form, row_form
from app.console.lists import DATES, Filter, list_page
from app.console.pages.common import secret_page

PATH = "/v1/api-keys"
FILTERS = (
    Filter("is_active", "State", [("true", "valid"), ("false", "revoked or expired")]),
    *DATES,
)
COLUMNS = "id name tenant.name prefix permissions revoked_at expires_at last_used_at created_at"
NAME = Field("name", "Name", help="What uses the key.", is_required=True)
READING = "all:read"  # stands for each permission to read
EXPIRY = moment_field("expires_at", "Expires at", "it does not expire")

LIST = ("/api-keys", "api_keys", "API keys", PATH, COLUMNS, FILTERS)
list_page(*LIST, also_of_tenant=True, include="tenant")


@form_page("/api-keys/new", also_of_tenant=True)
def create_api_key(tenant_id: UUID | None = None) -> Shown:
    session = current_session()
    offered: list[tuple[str, str]] = [
        (each, words.resource(each))
        for each in Permission
        if session.can(each) and (tenant_id is None or each not in PLATFORM_ONLY)
    ]
    offered.append((READING, "All"))
    permissions = Field("permissions", "Permissions", "grid", choices=offered)
    form = Form("New API key", (NAME, permissions, EXPIRY), submit="Create the key")
    return form.send(
        "POST",
        PATH,
        query={"tenant_id": tenant_id},
        body=lambda values: {**values, "permissions": _chosen(values["permissions"], offered)},
        show=lambda answer: secret_page("The new API key", answer, name="name", back=form.back),
    )


def _chosen(names: list[str], offered: Choices) -> list[str]:
    """The permissions that were chosen, with each to read where READING was."""
    reads = [name for name, _ in offered if name.endswith(":read")] if READING in names else []
    return list(dict.fromkeys(name for name in (*names, *reads) if name != READING))


@form_page("/api-keys/<uuid:key_id>/revoke", also_of_tenant=True)
def revoke_api_key(key_id: UUID, tenant_id: UUID | None = None) -> Shown:
    key = api.get_once(f"{PATH}/{key_id}").data
    intro = "The next request with this key is refused. This cannot be undone."
    title = f"Revoke the key {key['name']}"
    form = row_form(PATH, key_id, title, intro, confirmation=key["prefix"])
    return form.send("DELETE", done="The key was revoked.")

"""Going back: a preview of what a rewind of a tenant would change, the rewind, its progress."""

from __future__ import annotations

from uuid import UUID

from flask import request, url_for

from app.console import api
from app.console.blueprint import Shown, form_page, page, render
from app.console.fields import Choices, Field, Lines, choices
from app.console.forms import PREVIEW, row_form
from app.console.lists import list_page
from app.console.pages.common import tenant_slug
from app.console.pages.history import moment_of, shown
from app.core.json_text import Json

PLACE = "/tenants/<uuid:tenant_id>/audit"
COLUMNS = "id created_at created_by_user_id state done left_out_total finished_at"
INTRO = (
    "Rows become again what they were, by ordinary changes in the background. What somebody changes"
    " meanwhile is compared again, and what cannot go back stays and is listed."
)

list_page("/audit/rewinds", "rewinds", "Rewinds", "/v1/rewinds", COLUMNS, also_of_tenant=True)


def _kinds() -> Choices:
    """The kinds that can go back, as the API's document names them."""
    schemas = api.get_once("/openapi.json").body["components"]["schemas"]
    return choices(*schemas["RewindCreate"]["properties"]["kinds"]["items"]["enum"])


@form_page(f"{PLACE}/rewind")
def rewind_tenant(tenant_id: UUID) -> Shown:
    given = request.values.get("to", "")
    is_plain = moment_of(shown(given)) == moment_of(given)  # not a position, no parts of a second
    to = Field(
        "to", "Back to", "datetime-local" if is_plain else "text", "In UTC.", is_required=True
    )
    kinds = Field("kinds", "Kinds", "checks", choices=_kinds)
    ids = Lines(
        "only", "Only the rows with these ids", "textarea", "One on each line.", is_nullable=True
    )
    form = row_form("/v1/tenants", tenant_id, "Go back", INTRO, (to, kinds, ids))
    form.values = {
        "to": given,
        "kinds": [kind for kind, _ in _kinds()],
        "only": request.args.getlist("only"),
    }
    form.template, form.confirmation = "rewind", tenant_slug
    is_preview = PREVIEW in request.form

    def body(values: dict[str, Json]) -> Json:
        given = {name: value for name, value in values.items() if value is not None}
        return {**given, "dry_run": is_preview}

    return form.send(
        "POST",
        "/rewind",
        preview="/rewind",
        body=body,
        done="The tenant goes back.",
        to=lambda answer: url_for(
            "console.show_rewind", tenant_id=tenant_id, rewind_id=answer.data["id"]
        ),
    )


@page(f"{PLACE}/rewinds/<uuid:rewind_id>")
def show_rewind(tenant_id: UUID, rewind_id: UUID) -> Shown:
    rewind = api.get(f"/v1/rewinds/{rewind_id}").data
    return render(
        "rewind_state", "Rewind", rewind=rewind, is_underway=rewind["finished_at"] is None
    )

"""Changes of several rows that were selected in a list: a preview, then one request for each row."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from flask import request, url_for
from werkzeug.exceptions import BadRequest

from app.console import api
from app.console.access import current_session
from app.console.blueprint import Shown, form_page, render
from app.console.forms import Form
from app.console.pages.members import PATH as MEMBERS
from app.console.pages.members import ROLE, person_name
from app.console.pages.tenants import PATH as TENANTS
from app.console.pages.tenants import SUSPENSION_REASON
from app.core.json_text import Json

MOST = 50  # rows
Tell = Callable[[Json], tuple[str, str]]  # what a row is, and why its change would be refused


@form_page("/tenants/suspend")
def suspend_tenants() -> Shown:
    form = Form(
        "Suspend the selected tenants",
        (SUSPENSION_REASON,),
        intro="All requests with their credentials are refused until they are activated.",
        submit="Suspend",
        is_dangerous=True,
        back=url_for("console.list_tenants"),
    )

    def tell(tenant: Json) -> tuple[str, str]:
        return tenant["name"], "" if tenant["is_active"] else "It is suspended already."

    return _send(
        form, tell, TENANTS, lambda path, body: api.call("POST", f"{path}/suspend", body=body)
    )


@form_page("/tenants/<uuid:tenant_id>/members/roles")
def change_member_roles(tenant_id: UUID) -> Shown:
    form = Form("Change the role of the selected members", (ROLE,), submit="Change the role")
    session = current_session()
    is_owner = session.is_platform or (
        session.principal and session.principal.actor.role == "owner"
    )

    def tell(member: Json) -> tuple[str, str]:
        refusal = "Only an owner can change an owner."
        is_refused = member["role"] == "owner" and not is_owner
        return f"{person_name(member['user'])}, {member['role']}", refusal if is_refused else ""

    return _send(
        form, tell, MEMBERS, lambda path, query: api.call("PATCH", f"{path}/role", query=query)
    )


def _send(
    form: Form, tell: Tell, path: str, change: Callable[[str, dict[str, Json]], api.Answer]
) -> Shown:
    """The preview; or, if the form was posted, the results. A row that fails stops no other."""
    try:
        ids = [str(UUID(each)) for each in dict.fromkeys(request.values.getlist("id"))]
    except ValueError:
        raise BadRequest from None
    values = form.posted() if request.method == "POST" else {}
    for one in form.fields if request.method == "POST" else ():
        if not values.get(one.name):
            form.errors[one.name] = ["Field required"]
    if request.method == "POST" and not form.errors:
        results = [
            (request.form.get(f"name_{each}", each), _refusal(change(f"{path}/{each}", values)))
            for each in ids[:MOST]
        ]
        return render("bulk_results", form.title, form=form, results=results)
    rows = []
    for each in ids[:MOST]:
        include = "user" if path == MEMBERS else None
        found = api.call("GET", f"{path}/{each}", query={"include": include})
        rows.append((each, *(tell(found.data) if found.is_ok else (each, _refusal(found)))))
    page = render("bulk", form.title, form=form, rows=rows, left_out=len(ids[MOST:]))
    return page, 422 if form.errors else 200


def _refusal(answer: api.Answer) -> str:
    """Why the API refused; an empty text where it did not."""
    messages = [entry["msg"] for entry in answer.entries] or [answer.detail or "Refused."]
    return "" if answer.is_ok else " ".join(messages)

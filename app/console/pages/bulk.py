"""Changes of several rows that were selected in a list: a preview, then one request for each row."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from flask import request
from werkzeug.exceptions import BadRequest

from app.auth.permissions import Role
from app.console import api, words
from app.console.access import current_session
from app.console.blueprint import Shown, form_page, render
from app.console.forms import Form
from app.console.pages.members import PATH as MEMBERS
from app.console.pages.members import ROLE
from app.console.pages.tenants import PATH as TENANTS
from app.console.pages.tenants import SUSPENSION_REASON
from app.core.json_text import Json

MOST = 50  # rows


@form_page("/tenants/suspend")
def suspend_tenants() -> Shown:
    form = Form(
        "Suspend the selected tenants",
        (SUSPENSION_REASON,),
        intro="All requests with their credentials are refused until they are activated.",
        submit="Suspend",
        is_dangerous=True,
    )
    known = "It is suspended already."
    return _send(form, "POST", TENANTS, "/suspend", lambda row: "" if row["is_active"] else known)


@form_page("/tenants/<uuid:tenant_id>/members/roles")
def change_member_roles(tenant_id: UUID) -> Shown:
    form = Form("Change the role of the selected members", (ROLE,), submit="Change the role")
    person = current_session().principal
    is_owner = person and (person.is_platform or person.actor.role == Role.OWNER)
    known = "" if is_owner else "Only an owner can change an owner."
    return _send(
        form, "PATCH", MEMBERS, "/role", lambda row: known if row["role"] == Role.OWNER else ""
    )


def _send(form: Form, method: str, path: str, change: str, refusal: Callable[[Json], str]) -> Shown:
    """The preview; or, if the form was posted, the results. A row that fails stops no other."""
    try:
        ids = [str(UUID(each)) for each in dict.fromkeys(request.values.getlist("id"))]
    except ValueError:
        raise BadRequest from None
    (one,) = form.fields
    if request.method == "POST":
        values = form.posted()
        if not values.get(one.name):
            form.errors[one.name] = ["Field required"]
        else:
            sent: Json = {"query" if path == MEMBERS else "body": values}
            answers = [api.call(method, f"{path}/{each}{change}", **sent) for each in ids[:MOST]]
            names = [request.form.get(f"name_{each}", each) for each in ids]
            refusals = [answer.refusal for answer in answers]
            results = list(zip(names, refusals, strict=False))
            return render("bulk_results", form.title, form=form, results=results)
    rows = []
    for each in ids[:MOST]:
        include = "user" if path == MEMBERS else None
        found = api.call("GET", f"{path}/{each}", query={"include": include})
        known = (_name(found.data), refusal(found.data)) if found.is_ok else (each, found.refusal)
        rows.append((each, *known))
    page = render("bulk", form.title, form=form, rows=rows, left_out=len(ids[MOST:]))
    return page, 422 if form.errors else 200


def _name(row: Json) -> str:
    return f"{words.person(row['user'])}, {row['role']}" if "user" in row else str(row["name"])

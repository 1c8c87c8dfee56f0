"""Plans: their flags and limits, and the editor."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import render_template, url_for

from app.console import api
from app.console.access import signed_in
from app.console.blueprint import console
from app.console.forms import Field, Form
from app.console.lists import Filter, list_rows
from app.console.pages.common import recent_history

FILTERS = (Filter("name", "Name"),)
PLAN = (
    Field("name", "Name", is_required=True),
    Field(
        "flags",
        "Flags and limits",
        "json",
        help="A list of flag_key, flag_type (boolean, string, number, json, limit), default_value,"
        " description, is_locked, and for a limit metering.",
        is_required=True,
    ),
)
PATH = "/v1/billing/plans"


@console.get("/plans")
@signed_in
def list_plans() -> str:
    """List the plans."""
    return render_template("console/plans.html", title="Plans", listing=list_rows(PATH, FILTERS))


@console.route("/plans/new", methods=["GET", "POST"])
@signed_in
def create_plan() -> Any:
    """Create a plan."""
    form = Form(
        "New plan",
        PLAN,
        values={"flags": []},
        submit="Create",
        back=url_for("console.list_plans"),
    )
    return form.run(
        lambda values, _: api.call("POST", PATH, body=values),
        done="The plan was created.",
        to=lambda answer: url_for("console.show_plan", plan_id=answer.data["id"]),
    )


@console.get("/plans/<uuid:plan_id>")
@signed_in
def show_plan(plan_id: UUID) -> str:
    """Show a plan with its flags and limits."""
    path = f"{PATH}/{plan_id}"
    plan = api.get(path).data
    return render_template(
        "console/plan.html", title=plan["name"], plan=plan, history=recent_history(path)
    )


@console.route("/plans/<uuid:plan_id>/edit", methods=["GET", "POST"])
@signed_in
def edit_plan(plan_id: UUID) -> Any:
    """Rename a plan, or replace its flags and limits."""
    found = api.get(f"{PATH}/{plan_id}")
    page = url_for("console.show_plan", plan_id=plan_id)
    form = Form(
        f"Edit the plan {found.data['name']}",
        PLAN,
        values=found.data,
        version=found.etag,
        intro="The change applies to all tenants of the plan at once.",
        back=page,
    )
    return form.run(
        lambda values, version: api.call(
            "PATCH", f"{PATH}/{plan_id}", body=values, if_match=version
        ),
        done="The plan was changed.",
        to=page,
        changed_only=True,
    )


@console.route("/plans/<uuid:plan_id>/delete", methods=["GET", "POST"])
@signed_in
def delete_plan(plan_id: UUID) -> Any:
    """Delete a plan that nothing uses."""
    found = api.get(f"{PATH}/{plan_id}")
    form = Form(
        "Delete the plan",
        version=found.etag,
        intro="A plan can be deleted if no tenant, live subscription or override uses it.",
        submit="Delete the plan",
        is_dangerous=True,
        confirmation=found.data["name"],
        back=url_for("console.show_plan", plan_id=plan_id),
    )
    return form.run(
        lambda _, version: api.call("DELETE", f"{PATH}/{plan_id}", if_match=version),
        done="The plan was deleted.",
        to=url_for("console.list_plans"),
    )

"""Plans: their flags and limits, and the editor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from flask import render_template, request, url_for
from werkzeug.exceptions import NotFound

from app.console import api
from app.console.access import signed_in
from app.console.blueprint import console
from app.console.forms import Field, Form, choices
from app.console.lists import Filter, list_rows
from app.console.pages.common import recent_history
from app.console.pages.flags import value_field

POLICIES = [("hard", "refuse"), ("soft", "count, and tell")]


class Percentages(Field):
    """A list of percentages, separated by commas."""

    def read(self, form: Any) -> Any:
        """The numbers; raises ValueError."""
        words = form.get(self.name, "").replace(",", " ").split()
        try:
            return [int(word.removesuffix("%")) for word in words]
        except ValueError:
            raise ValueError("These are no numbers.") from None

    def shown(self, value: Any) -> Any:
        """The numbers with commas."""
        return ", ".join(map(str, value or ()))


FILTERS = (Filter("name", "Name"),)
NAME = Field("name", "Name", is_required=True)
DISPLAY_NAME = Field("display_name", "Name for people")
TYPES = ("boolean", "string", "number", "json", "limit")
KEY = Field("flag_key", "Key", help="Letters, digits and . _ -", is_required=True)
DESCRIPTION = Field("description", "Description", "textarea")
LOCKED = Field("is_locked", "Only the platform may override it", "boolean")
METERING = (
    Field(
        "period",
        "Counted per",
        "select",
        choices=choices("none", "day", "month", "billing_cycle"),
        is_required=True,
    ),
    Field("policy", "Beyond the limit", "select", choices=POLICIES, is_required=True),
    Percentages("warn_at", "Warn at", help="Percentages, such as 80, 100."),
)
PATH = "/v1/billing/plans"
TEMPLATE = "console/plan_form.html"


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
        (NAME, DISPLAY_NAME),
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
        "console/plan.html",
        title=plan["name"],
        plan=plan,
        types=TYPES,
        history=recent_history(path),
    )


@console.route("/plans/<uuid:plan_id>/edit", methods=["GET", "POST"])
@signed_in
def edit_plan(plan_id: UUID) -> Any:
    """Rename a plan."""
    found = api.get(f"{PATH}/{plan_id}")
    page = url_for("console.show_plan", plan_id=plan_id)
    form = Form(
        f"Rename the plan {found.data['name']}",
        (NAME, DISPLAY_NAME),
        values=found.data,
        version=found.etag,
        intro="The change applies to all tenants of the plan at once.",
        back=page,
    )
    return form.run(
        lambda values, version: api.call(
            "PATCH", f"{PATH}/{plan_id}", body=values, if_match=version
        ),
        done="The plan was renamed.",
        to=page,
        changed_only=True,
    )


@console.route("/plans/<uuid:plan_id>/flags/new", methods=["GET", "POST"])
@signed_in
def create_plan_flag(plan_id: UUID) -> Any:
    """Add a flag or a limit of the type in the query."""
    flag_type = request.args.get("type", "boolean")
    if flag_type not in TYPES:
        raise NotFound
    metering = {"period": "month", "policy": "hard", "warn_at": [80, 100]}
    new = {"flag_type": flag_type, "is_locked": True, "default_value": None, **metering}
    return _flag_form(
        plan_id,
        f"New {'limit' if flag_type == 'limit' else f'flag of the type {flag_type}'}",
        new,
        (KEY,),
        lambda flags, flag: [*flags, flag],
        done="The plan has the new flag.",
    )


@console.route("/plans/<uuid:plan_id>/flags/<key>/edit", methods=["GET", "POST"])
@signed_in
def edit_plan_flag(plan_id: UUID, key: str) -> Any:
    """Change a flag or a limit of a plan."""
    return _flag_form(
        plan_id,
        f"Edit {key}",
        _flag(plan_id, key),
        (),
        lambda flags, flag: [flag if each["flag_key"] == key else each for each in flags],
        done="The plan was changed.",
    )


@console.route("/plans/<uuid:plan_id>/flags/<key>/remove", methods=["GET", "POST"])
@signed_in
def remove_plan_flag(plan_id: UUID, key: str) -> Any:
    """Remove a flag or a limit from a plan."""
    _flag(plan_id, key)
    found = api.get(f"{PATH}/{plan_id}")
    form = Form(
        f"Remove {key}",
        version=found.etag,
        intro=f"No tenant of the plan {found.data['name']} has the flag any more.",
        submit="Remove",
        is_dangerous=True,
        confirmation=key,
        back=_page(plan_id),
        template=TEMPLATE,
    )
    left = [each for each in found.data["flags"] if each["flag_key"] != key]
    if request.method != "POST":
        form.preview = api.succeeded(_preview(plan_id, left, found.etag)).data
    return form.run(
        lambda _, version: api.call(
            "PATCH",
            f"{PATH}/{plan_id}",
            query={"force": True},
            body={"flags": left},
            if_match=version,
        ),
        done="The flag was removed.",
        to=_page(plan_id),
    )


def _flag_form(
    plan_id: UUID,
    title: str,
    flag: dict[str, Any],
    first: tuple[Field, ...],
    replace: Callable[[list[Any], Any], list[Any]],
    *,
    done: str,
) -> Any:
    """The form of one flag; ``replace`` puts it into the plan's flags."""
    found = api.get(f"{PATH}/{plan_id}")
    flag_type = flag["flag_type"]
    value = value_field(flag_type, "default_value", "Value")
    metering = METERING if flag_type == "limit" else ()
    form = Form(
        title,
        (*first, value, *metering, DESCRIPTION, LOCKED),
        values={**flag, **flag.get("metering", {})},
        version=found.etag,
        intro=f"The change applies to all tenants of the plan {found.data['name']} at once.",
        back=_page(plan_id),
        can_preview=True,
        template=TEMPLATE,
    )

    def flags_with(values: dict[str, Any]) -> list[Any]:
        counted = {each.name: values.pop(each.name) for each in metering}
        changed = {
            "flag_key": flag.get("flag_key"),
            "flag_type": flag_type,
            **values,
            **({"metering": counted} if counted else {}),
        }
        return replace(found.data["flags"], changed)

    return form.run(
        lambda values, version: api.call(
            "PATCH", f"{PATH}/{plan_id}", body={"flags": flags_with(values)}, if_match=version
        ),
        preview=lambda values, version: _preview(plan_id, flags_with(values), version),
        done=done,
        to=_page(plan_id),
    )


def _preview(plan_id: UUID, flags: list[Any], version: str) -> api.Answer:
    """What the plan would change if it had these flags."""
    path = f"{PATH}/{plan_id}/preview"
    return api.call("POST", path, body={"flags": flags}, if_match=version)


def _flag(plan_id: UUID, key: str) -> Any:
    """A flag of a plan; raises NotFound."""
    for flag in api.get(f"{PATH}/{plan_id}").data["flags"]:
        if flag["flag_key"] == key:
            return flag
    raise NotFound


def _page(plan_id: UUID) -> str:
    return url_for("console.show_plan", plan_id=plan_id)


@console.route("/plans/<uuid:plan_id>/delete", methods=["GET", "POST"])
@signed_in
def delete_plan(plan_id: UUID) -> Any:
    """Delete a plan that nothing uses."""
    found = api.get(f"{PATH}/{plan_id}")
    form = Form(
        "Delete the plan",
        version=found.etag,
        intro="A plan can be deleted if no tenant, override or subscription that has not ended uses it.",
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

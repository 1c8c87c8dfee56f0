"""Plans: their flags and limits, and the editor."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote
from uuid import UUID

from flask import request
from werkzeug.exceptions import NotFound

from app.console import api
from app.console.blueprint import Shown, form_page, page, render
from app.console.fields import Field, Inputs, Sent, choices
from app.console.forms import Form, row_form
from app.console.lists import list_page
from app.console.pages.common import recent_history
from app.console.pages.flags import value_field
from app.console.rules import Rules, sentence
from app.core.json_text import Json

POLICIES = [("hard", "refuse"), ("soft", "count, and tell")]


class Percentages(Field):
    """A list of percentages, separated by commas."""

    def read(self, form: Sent) -> Json:
        words = form.get(self.name, "").replace(",", " ").split()
        try:
            return [int(word.removesuffix("%")) for word in words]
        except ValueError:
            raise ValueError("These are not numbers.") from None

    def shown(self, value: Json) -> Json:
        return ", ".join(map(str, value or ()))


NAME = Field("name", "Name", is_required=True)
DISPLAY_NAME = Field("display_name", "Name for people")
TYPES = ("boolean", "string", "number", "json", "limit")
KEY = Field("flag_key", "Key", help="Letters, digits and . _ -", is_required=True)
DESCRIPTION = Field("description", "Description", "textarea")
LOCKED = Field("is_locked", "Only the platform may override it", "boolean")
WARN_DAYS = "Up to 90 days before the limit would end at the pace of the last 7. Empty: never."
PERIODS = choices("none", "day", "month", "billing_cycle")
METERING = (
    Field("period", "Counted per", "select", choices=PERIODS, is_required=True),
    Field("policy", "Beyond the limit", "select", choices=POLICIES, is_required=True),
    Percentages("warn_at", "Warn at", help="Percentages, such as 80, 100."),
    Field("warn_days", "Warn days ahead", "integer", help=WARN_DAYS),
)
RULES = (
    "The first rule that matches gives its value; without one, the value above applies. An override"
    " takes precedence. The context's and fields' values: true, false and numbers are such,"
    ' and "5" is a text.'
)
PATH, PLAN = "/v1/billing/plans", "/plans/<uuid:plan_id>"
TEMPLATE = "plan_form"

list_page("/plans", "plans", "Plans", PATH, "id name display_name updated_at")


@form_page("/plans/new")
def create_plan() -> Shown:
    form = Form("New plan", (NAME, DISPLAY_NAME), submit="Create")
    return form.send("POST", PATH, done="The plan was created.", to=form.new_row)


@page(PLAN)
def show_plan(plan_id: UUID) -> Shown:
    path = f"{PATH}/{plan_id}"
    plan = api.get(path).data
    history = recent_history(path)
    return render("plan", plan["name"], plan=plan, types=TYPES, history=history, sentence=sentence)


@form_page(f"{PLAN}/edit")
def edit_plan(plan_id: UUID) -> Shown:
    title = f"Rename the plan {api.get_once(f'{PATH}/{plan_id}').data['name']}"
    intro = "The change applies to all tenants of the plan at once."
    form = row_form(PATH, plan_id, title, intro, (NAME, DISPLAY_NAME))
    return form.send("PATCH", done="The plan was renamed.", changed_only=True)


@form_page(f"{PLAN}/delete")
def delete_plan(plan_id: UUID) -> Shown:
    intro = (
        "A plan can be deleted if no tenant, override or subscription that has not ended uses it."
    )
    name = api.get_once(f"{PATH}/{plan_id}").data["name"]
    form = row_form(PATH, plan_id, "Delete the plan", intro, confirmation=name)
    return form.send("DELETE", done="The plan was deleted.", to=form.above)


@form_page(f"{PLAN}/flags/new")
def create_plan_flag(plan_id: UUID) -> Shown:
    """Add a flag or a limit of the type in the query."""
    flag_type = request.args.get("type", "boolean")
    if flag_type not in TYPES:
        raise NotFound
    metering = {"period": "month", "policy": "hard", "warn_at": [80, 100]}
    new = {"flag_type": flag_type, "is_locked": True, "default_value": None, "metering": metering}
    title = f"New {'limit' if flag_type == 'limit' else f'flag of the type {flag_type}'}"
    found = api.get_once(f"{PATH}/{plan_id}")
    return _send_flag(found, title, new, done="The plan has the new flag.")


@form_page(f"{PLAN}/flags/<key>/edit")
def edit_plan_flag(plan_id: UUID, key: str) -> Shown:
    found = api.get_once(f"{PATH}/{plan_id}")
    return _send_flag(found, f"Edit {key}", _flag(found, key), done="The plan was changed.")


@form_page(f"{PLAN}/flags/<key>/remove")
def remove_plan_flag(plan_id: UUID, key: str) -> Shown:
    found = api.get_once(f"{PATH}/{plan_id}")
    removed = _flag(found, key)
    body = {"flags": [flag for flag in found.data["flags"] if flag is not removed]}
    intro = f"No tenant of the plan {found.data['name']} has the flag any more."
    form = row_form(PATH, plan_id, f"Remove {key}", intro, values=_values(removed))
    form.confirmation, form.is_dangerous, form.template = key, True, TEMPLATE
    form.undone_by = (KEY, *_fields(removed))
    if request.method != "POST":
        preview = api.call("POST", f"{form.row}/preview", body=body, if_match=found.etag)
        form.preview = api.succeeded(preview).data
    undo = f"flags/new?type={removed['flag_type']}"
    done, query = "The flag was removed.", {"force": True}
    return form.send("PATCH", query=query, body=body, done=done, undo=undo)


@dataclass
class FlagForm(Form):
    """The form of a flag of a plan; a new flag has no ``key``."""

    key: str = ""

    def preview_rules(self) -> Json:
        """The preview of the typed rules; None if there is none."""
        path = f"{self.row}/flags/{quote(self.key, safe='')}/preview"
        answer = self.key and api.call("POST", path, body={"rules": self.values.get("rules", [])})
        return answer.data if answer and answer.is_ok else None


def _fields(flag: Json) -> tuple[Field, ...]:
    is_limit = flag["flag_type"] == "limit"
    value = value_field(flag["flag_type"], "default_value", "Value")
    ruled = value_field(flag["flag_type"], "rules_value")
    rules = Rules("rules", "Rules", "rules", RULES, value=ruled, has_rollouts=not is_limit)
    return value, *(METERING if is_limit else ()), DESCRIPTION, LOCKED, rules


def _values(flag: Json) -> Json:
    return {**flag, **flag.get("metering", {})}


def _send_flag(found: api.Answer, title: str, flag: Json, *, done: str) -> Shown:
    """The form of one flag of the plan ``found``; a flag without a key is new."""
    plan, key = found.data, flag.get("flag_key")
    metering = METERING if flag["flag_type"] == "limit" else ()
    form = FlagForm(
        title,
        _fields(flag) if key else (KEY, *_fields(flag)),
        row=f"{PATH}/{plan['id']}",
        values=_values(flag),
        intro=f"The change applies to all tenants of the plan {plan['name']} at once.",
        template=TEMPLATE,
        key=key or "",
    )

    def body(values: dict[str, Json]) -> Json:
        counted = {one.name: values.pop(one.name) for one in metering if one.name in values}
        changed = {"flag_key": key, "flag_type": flag["flag_type"], **values}
        if counted:
            names = {one.name for one in metering}
            kept = {name: one for name, one in flag["metering"].items() if name not in names}
            changed["metering"] = {**kept, **counted}
        if not changed["rules"]:
            del changed["rules"]
        others = plan["flags"]
        if key is None:
            return {"flags": [*others, changed]}
        return {"flags": [changed if each is flag else each for each in others]}

    def undo(_: Inputs) -> str:
        name = quote(key or request.form["flag_key"].strip(), safe="")
        return f"flags/{name}/{'edit' if key else 'remove'}"

    return form.send("PATCH", body=body, preview="/preview", done=done, undo=undo)


def _flag(plan: api.Answer, key: str) -> Json:
    """A flag of a plan; raises NotFound."""
    for flag in plan.data["flags"]:
        if flag["flag_key"] == key:
            return flag
    raise NotFound

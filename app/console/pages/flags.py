"""Flags and limits of a tenant: the plan's value, the override, what is used of a limit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote
from uuid import UUID

from flask import request, url_for
from werkzeug.exceptions import NotFound

from app.config import current_config
from app.console import api, words
from app.console.access import current_session
from app.console.blueprint import Shown, form_page, page, render
from app.console.charts import meter
from app.console.fields import BooleanField, Field, Sent, inputs_of, moment_field
from app.console.forms import Form, row_form
from app.console.pages.common import choose, recent_history
from app.console.pages.limits import FLAG, USAGE, limit_values
from app.core.json_text import Json

FLAGS = "/v1/billing/flags"
OVERRIDES = f"{FLAGS}/overrides"
FURTHER_KEYS = "expires_at,carry_over,reason"
EXPIRY = moment_field("expires_at", "Ends at", "it does not end by itself")
NEXT = "It carries over to the tenant's next plan"
IF = "If that plan has the flag with the same type. Otherwise it stays with this plan."
CARRY_OVER = Field("carry_over", NEXT, "boolean", IF)
PLATFORMS = (EXPIRY, CARRY_OVER)  # what only the platform sets


class FlagValue(Field):
    """The value of a flag, with the input of its type."""

    def read(self, form: Sent) -> Json:
        text = form.get(self.name, "")
        if self.kind == "text":
            return text
        if self.kind == "number":
            try:
                return json.loads(text)
            except (ValueError, RecursionError):
                raise ValueError("This is not a number.") from None
        return super().read(form)


ON_OFF = [("true", "on"), ("false", "off")]
# The input of each type; that of json has its name.
KINDS = {"string": "text", "number": "number", "limit": "integer"}


def value_field(flag_type: str, name: str = "flag_value", label: str = "Value") -> Field:
    """The input for a value of a flag of this type."""
    if flag_type == "boolean":
        return BooleanField(name, label, "select", choices=ON_OFF, is_required=True)
    help = "-1 means unlimited." if flag_type == "limit" else ""
    kind, is_required = KINDS.get(flag_type, flag_type), flag_type != "string"
    return FlagValue(name, label, kind, help, is_required=is_required)


@page("/tenants/<uuid:tenant_id>/flags")
def list_flags(tenant_id: UUID) -> Shown:
    usage = api.find(USAGE, tenant_id=tenant_id)
    current = {each["feature"]: each for each in usage.data if each["is_current"]} if usage else {}
    given = api.get_all(OVERRIDES, tenant_id=tenant_id, include="reason")
    return render(
        "flags",
        "Flags and limits",
        flags=api.get(FLAGS, tenant_id=tenant_id).data,
        usage=current,
        meter=meter,
        reasons={each["id"]: each["reason"] for each in given},
        descriptions=_descriptions(tenant_id),
    )


@page("/tenants/<uuid:tenant_id>/flags/overrides/new")
def grant_flag(tenant_id: UUID) -> Shown:
    """Choose the flag of an override."""
    flags = api.get(FLAGS, tenant_id=tenant_id).data
    offered = [(one["key"], f"{one['key']}: {words.brief(one['value'])}") for one in flags]
    field = Field("key", "Flag or limit", "select", choices=offered, is_required=True)
    back = url_for("console.list_flags", tenant_id=tenant_id)
    page_of = lambda key: f"{back}/{quote(key, safe='')}/override"  # noqa: E731
    return choose("Grant a flag", field, page_of, back=back)


@page(FLAG)
def show_flag(tenant_id: UUID, key: str) -> Shown:
    """Show a flag: what decides its value, its override, and what is used of a limit."""
    flag = _flag(tenant_id, key)
    explained = api.find(f"{FLAGS}/{quote(key, safe='')}/explain", tenant_id=tenant_id)
    path = f"{OVERRIDES}/{flag['override_id']}" if flag["override_id"] else ""
    override = api.find(path, include=f"{FURTHER_KEYS},created_by,preset") if path else None
    return render(
        "flag",
        key,
        flag=flag,
        descriptions=_descriptions(tenant_id),
        explanation=explained and explained.data,
        override=override and override.data,
        before=inputs_of(_fields(flag), override.data) if override else None,
        history=recent_history(path) if path else [],
        **(limit_values(tenant_id, key) if flag["type"] == "limit" else {}),
    )


@form_page(f"{FLAG}/override")
def change_override(tenant_id: UUID, key: str) -> Shown:
    flag = _flag(tenant_id, key)
    fields = _fields(flag)
    if flag["override_id"] is None:
        form = Form(f"Grant an override of {key}", fields, values={"flag_value": flag["value"]})
        form.intro, form.submit = "It replaces the plan's value for this tenant.", "Grant"
        return form.send(
            "POST",
            OVERRIDES,
            query={"tenant_id": tenant_id},
            body=lambda values: {"flag_key": key, **values},
            done="The override is in force.",
            undo="end" if current_session().is_platform else "",
        )
    form = _override_form(flag, f"Change the override of {key}", fields=fields)
    return form.send("PATCH", done="The override was changed.", undo="override")


@form_page(f"{FLAG}/end")
def end_override(tenant_id: UUID, key: str) -> Shown:
    """End an override; the plan's value applies again."""
    flag = _flag(tenant_id, key)
    if flag["override_id"] is None:
        raise NotFound
    intro = f"The plan's value applies again: {words.brief(flag['preset_value'])}."
    form = _override_form(flag, f"End the override of {key}", intro, undone_by=_fields(flag))
    form.is_dangerous = True
    return form.send("DELETE", done="The override has ended.", undo="override")


def _override_form(flag: Json, title: str, intro: str = "", **more: Any) -> Form:
    """A form about the override of a flag, with the values that only ``include`` gives."""
    form = row_form(OVERRIDES, flag["override_id"], title, intro, **more)
    if request.method != "POST":
        form.values = api.get(form.row, include=FURTHER_KEYS).data
    return form


def _fields(flag: Json) -> tuple[Field, ...]:
    why = "Why this tenant has another value. Its owners and admins can read it."
    is_required = current_config().override_reason_required
    reason = Field("reason", "Reason", help=why, is_required=is_required)
    platforms = PLATFORMS if current_session().is_platform else ()
    return value_field(flag["type"]), *platforms, reason


def _descriptions(tenant_id: UUID) -> Mapping[str, str]:
    """The descriptions of the flags in the tenant's plan, by their keys."""
    plans = api.get("/v1/billing/plans", name=api.get_tenant(tenant_id).data["plan_name"]).data
    return {each["flag_key"]: each["description"] for plan in plans for each in plan["flags"]}


def _flag(tenant_id: UUID, key: str) -> Json:
    """The effective flag; raises NotFound for a flag that the plan does not have."""
    flags = api.get(FLAGS, tenant_id=tenant_id).data
    for flag in flags:
        if flag["key"] == key:
            return flag
    raise NotFound

"""Flags and limits of a tenant: the plan's value, the override, what is used of a limit."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote
from uuid import UUID

from flask import render_template, url_for
from werkzeug.exceptions import NotFound

from app.console import api
from app.console.access import current_session, signed_in
from app.console.blueprint import console
from app.console.charts import bars, meter
from app.console.forms import Field, Form
from app.console.pages.common import get_tenant, recent_history, row_form

OVERRIDES = "/v1/billing/flags/overrides"
EXPIRY = Field(
    "expires_at",
    "Ends at",
    "datetime-local",
    help="In UTC. Empty: it does not end by itself.",
    is_nullable=True,
)
CARRY_OVER = Field(
    "carry_over",
    "It goes along to the tenant's next plan",
    "boolean",
    help="If that plan has the flag with the same type. Otherwise it stays with this plan.",
)
PLATFORMS = (EXPIRY, CARRY_OVER)  # what only the platform sets
PERIODS = 12


class FlagValue(Field):
    """The value of a flag, with the input of its type."""

    def read(self, form: Any) -> Any:
        """The value as JSON; raises ValueError."""
        text = form.get(self.name, "")
        if self.kind == "select":
            return text == "true"
        if self.kind == "text":
            return text
        if self.kind in ("integer", "number"):
            try:
                return int(text) if self.kind == "integer" else json.loads(text)
            except (ValueError, RecursionError):
                raise ValueError("This is no number.") from None
        return super().read(form)

    def shown(self, value: Any) -> Any:
        """The value as its input takes it."""
        return str(value).lower() if self.kind == "select" else super().shown(value)


KINDS = {
    "boolean": "select",
    "string": "text",
    "number": "number",
    "limit": "integer",
    "json": "json",
}


def value_field(flag_type: str, name: str = "flag_value", label: str = "Value") -> FlagValue:
    """The input for a value of a flag of this type."""
    return FlagValue(
        name,
        label,
        KINDS[flag_type],
        help="-1 is without a limit." if flag_type == "limit" else "",
        choices=[("true", "on"), ("false", "off")] if flag_type == "boolean" else (),
        is_required=flag_type != "string",
    )


@console.get("/tenants/<uuid:tenant_id>/flags")
@signed_in
def list_flags(tenant_id: UUID) -> str:
    """List a tenant's flags, with overrides and usage."""
    tenant = get_tenant(tenant_id)
    usage = api.find("/v1/usage", tenant_id=tenant_id)
    current = {each["feature"]: each for each in usage.data if each["is_current"]} if usage else {}
    flags = api.get("/v1/billing/flags", tenant_id=tenant_id).data
    return render_template(
        "console/flags.html",
        title="Flags and limits",
        tenant=tenant,
        flags=flags,
        usage=current,
        meter=meter,
    )


@console.get("/tenants/<uuid:tenant_id>/flags/<key>")
@signed_in
def show_flag(tenant_id: UUID, key: str) -> str:
    """Show a flag: what decides its value, its override, and the past periods of a limit."""
    tenant = get_tenant(tenant_id)
    flag = _flag(tenant_id, key)
    explained = api.find(f"/v1/billing/flags/{quote(key, safe='')}/explain", tenant_id=tenant_id)
    override = None
    if flag["override_id"]:
        include = "expires_at,carry_over,created_by,preset"
        override = api.find(f"{OVERRIDES}/{flag['override_id']}", include=include)
    usage = None
    if flag["type"] == "limit":
        usage = api.find("/v1/usage", tenant_id=tenant_id, feature=key, limit=PERIODS)
    return render_template(
        "console/flag.html",
        title=key,
        tenant=tenant,
        flag=flag,
        explanation=explained and explained.data,
        override=override and override.data,
        usage=usage.data if usage else [],
        chart=bars(usage.data) if usage else "",
        meter=meter,
        history=recent_history(f"{OVERRIDES}/{flag['override_id']}") if flag["override_id"] else [],
    )


@console.route("/tenants/<uuid:tenant_id>/flags/<key>/override", methods=["GET", "POST"])
@signed_in
def change_override(tenant_id: UUID, key: str) -> Any:
    """Grant an override of a flag, or change the one there is."""
    flag = _flag(tenant_id, key)
    page = _page(tenant_id, key)
    fields = (value_field(flag["type"]), *(PLATFORMS if current_session().is_platform else ()))
    override_id = flag["override_id"]
    if override_id is None:
        form = Form(
            f"Grant an override of {key}",
            fields,
            values={"flag_value": flag["value"]},
            intro="It replaces the plan's value for this tenant.",
            submit="Grant",
            back=page,
            context={"tenant": get_tenant(tenant_id)},
        )
        return form.run(
            lambda values, _: api.call(
                "POST", OVERRIDES, query={"tenant_id": tenant_id}, body={"flag_key": key, **values}
            ),
            done="The override is in force.",
            to=page,
        )
    path = f"{OVERRIDES}/{override_id}"
    form = row_form(f"Change the override of {key}", tenant_id, path, back=page, fields=fields)
    form.values = api.get(path, include="expires_at,carry_over").data
    return form.run(
        lambda values, version: api.call("PATCH", path, body=values, if_match=version),
        done="The override was changed.",
        to=page,
    )


@console.route("/tenants/<uuid:tenant_id>/flags/<key>/end", methods=["GET", "POST"])
@signed_in
def end_override(tenant_id: UUID, key: str) -> Any:
    """End an override; the plan's value applies again."""
    flag = _flag(tenant_id, key)
    if flag["override_id"] is None:
        raise NotFound
    path = f"{OVERRIDES}/{flag['override_id']}"
    form = row_form(
        f"End the override of {key}",
        tenant_id,
        path,
        back=_page(tenant_id, key),
        intro=f"The plan's value applies again: {json.dumps(flag['preset_value'])}.",
        submit="End the override",
        is_dangerous=True,
    )
    form.confirmation = form.context["tenant"]["slug"]
    return form.run(
        lambda _, version: api.call("DELETE", path, if_match=version),
        done="The override has ended.",
        to=form.back,
    )


def _flag(tenant_id: UUID, key: str) -> Any:
    """The effective flag; raises NotFound for one that the plan does not have."""
    flags = api.get("/v1/billing/flags", tenant_id=tenant_id).data
    for flag in flags:
        if flag["key"] == key:
            return flag
    raise NotFound


def _page(tenant_id: UUID, key: str) -> str:
    return url_for("console.show_flag", tenant_id=tenant_id, key=key)

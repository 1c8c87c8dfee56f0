"""Tenants: the list, and the tasks of support: change, suspend, delete with grace."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from operator import itemgetter
from typing import Any
from uuid import UUID

from flask import request, url_for
from werkzeug.exceptions import NotFound

from app.auth.permissions import Permission
from app.console import api, words
from app.console.access import current_session
from app.console.blueprint import Shown, form_page, page, render
from app.console.charts import NEARLY, meter, share
from app.console.fields import Field, Inputs, moment_field
from app.console.forms import CONFIRMATION, Form, row_form
from app.console.lists import DATES, NAME, Filter, list_page, plans
from app.console.metadata import metadata_facts, metadata_form, send_metadata
from app.console.navigation import PLATFORM_ACTIONS
from app.console.pages.common import TENANT, choose, name_of, recent_changes, tenant_slug
from app.console.pages.domains import wants_attention
from app.console.pages.history import Past, past
from app.core.clock import utcnow
from app.core.json_text import Json
from app.surfaces.commands.times import relative

FILTERS = (
    NAME,
    Filter("plan_name", "Plan", plans),
    Filter("is_active", "State", [("true", "active"), ("false", "suspended")]),
    Filter("is_at_limit", "Limits", [("true", "used up")]),
    Filter("slug", "Slug", is_rare=True),
    Filter("idp_org_id", "Organization id", is_rare=True),
    Filter("plan_ends_before", "Trial ends until", kind="date", is_rare=True),
    *DATES,
)
COLUMNS = "id name slug plan_name assigned_until is_active created_at"
PATH, SUBSCRIPTIONS = "/v1/tenants", "/v1/billing/subscriptions"
CONTACT = (
    Field("primary_contact_name", "Contact's name"),
    Field("primary_contact_email", "Contact's e-mail", "email"),
    Field("primary_contact_phone", "Contact's phone", "tel"),
    Field("mailing_address_line_1", "Address"),
    Field("mailing_address_line_2", "Address, second line"),
    Field("mailing_city", "City"),
    Field("mailing_state", "State or region"),
    Field("mailing_zipcode", "Postal code"),
    Field("mailing_country", "Country"),
)
NAMES = (Field("name", "Name", is_required=True), Field("slug", "Slug", is_required=True))
ORGANIZATION = Field("idp_org_id", "Organization id of the identity provider", is_required=True)
UNTIL = moment_field("until", "Until", "until it is withdrawn")
READ_BY = "The tenant's owners and admins can read it in the audit trail."
SUSPENSION_REASON = Field("reason", "Reason", help=READ_BY, is_required=True)
REASON = Field("reason", "Reason", help="Such as pilot, comped or internal.", is_required=True)
EXTENSIONS = (7, 14, 30)  # days
SOON = timedelta(days=7)
PLAN_NAME = Field("plan_name", "Plan", "select", choices=plans, is_required=True)
ASSIGNMENT = (PLAN_NAME, UNTIL, REASON)
NEW_SLUG = Field("slug", "Slug", help="Made from the name if it is empty.")
NOTES = Field("text", "Notes", "textarea", help="No one of the tenant can read them.")
OF_TENANT = "/tenants/<uuid:tenant_id>"

_form = partial(row_form, PATH, name=itemgetter("name"))

list_page("/tenants", "tenants", "Tenants", PATH, COLUMNS, FILTERS, include="assigned_until")


@form_page("/tenants/new")
def create_tenant() -> Shown:
    form = Form("New tenant", (NAMES[0], ORGANIZATION, NEW_SLUG, *CONTACT), submit="Create")
    body = lambda values: {name: one for name, one in values.items() if one != ""}  # noqa: E731
    return form.send("POST", PATH, body=body, done="The tenant was created.", to=form.new_row)


@page("/tenants/choose/<purpose>")
def choose_tenant_for(purpose: str) -> Shown:
    """Choose the tenant of a change that the palette offers."""
    titles = {name: label for name, label, _ in PLATFORM_ACTIONS}
    title = titles.get(f"choose_tenant_for/{purpose}")
    if title is None:
        raise NotFound
    page_of = partial(url_for, f"console.{purpose}")
    return choose(title, TENANT, lambda one: page_of(tenant_id=one))


@page(OF_TENANT)
def show_tenant(tenant_id: UUID) -> Shown:
    """Show a tenant: its plan and why, what wants attention, its data and its last changes."""
    path = f"{PATH}/{tenant_id}"
    included = ",limits" if current_session().can(Permission.USAGE_READ) else ""
    then = past(path, include=f"suspension_reason{included}")
    if then.moment:
        return _show_past(tenant_id, then)
    tenant = then.row
    limits = sorted(tenant.get("limits", ()), key=share, reverse=True)
    plan = api.find(f"{path}/plan")
    deletion = api.find(f"{path}/deletion")
    values = api.find(f"{path}/meta_data")
    query = {"tenant_id": tenant_id, "include": "billing,status_class", "limit": 100}
    subscriptions = api.find(SUBSCRIPTIONS, **query)
    endpoints = api.find("/v1/webhook-endpoints", tenant_id=tenant_id, include="failing_since")
    return render(
        "tenant",
        tenant["name"],
        tenant=tenant,
        plan=plan and plan.data,
        subscriptions={one["id"]: one for one in subscriptions.data} if subscriptions else {},
        assignment=_assignment(tenant_id, plan.data) if plan else None,
        limits=limits,
        near_end=[each for each in limits if each["used"] and share(each) >= NEARLY],
        meter=meter,
        endpoints=[each for each in endpoints.data if _is_failing(each)] if endpoints else (),
        deletion=deletion and deletion.data,
        joining=wants_attention(tenant_id),
        meta_data=metadata_facts(tenant_id, "tenant", values.data["meta_data"]) if values else None,
        notes=api.get(f"{path}/notes").data if current_session().is_platform else None,
        history=recent_changes(tenant_id=tenant_id),
    )


def _show_past(tenant_id: UUID, then: Past) -> Shown:
    """Show a tenant as of a moment, with its people, subscriptions and flags."""
    users = then.rows("/v1/users", tenant_id, limit=api.MOST_OF_A_PAGE) or ()
    return render(
        "tenant",
        then.row["name"],
        tenant=then.row,
        meta_data=None,
        assignment=None,
        people={user["id"]: user for user in users},
        members=then.rows("/v1/memberships/tenant", tenant_id, limit=api.MOST_OF_A_PAGE),
        subscriptions=then.rows(SUBSCRIPTIONS, tenant_id, limit=api.MOST_OF_A_PAGE),
        flags=then.rows("/v1/billing/flags", tenant_id),
        **then.values,
    )


def _assignment(tenant_id: UUID, plan: Json) -> Json:
    """The assigned plan that decides, who assigned it, and later ends; None for no such plan."""
    found: Json = next((each for each in plan["candidates"] if each["decides"]), {})
    if found.get("source") != "assignment":
        return None
    by = recent_changes(tenant_id=tenant_id, action="tenant.plan_assigned")
    until = found["until"] and datetime.fromisoformat(found["until"])
    longer = [(days, (until + timedelta(days)).isoformat()) for days in EXTENSIONS] if until else ()
    ends_soon = until and until < utcnow() + SOON
    by_name = words.who(by[0]) if by else ""
    return {**found, "by": by_name, "longer": longer, "ends_soon": ends_soon}


def _is_failing(endpoint: Json) -> bool:
    return bool(endpoint["failing_since"] or endpoint["disabled_reason"] in ("gone", "failing"))


@form_page(f"{OF_TENANT}/edit")
def edit_tenant(tenant_id: UUID) -> Shown:
    form = Form("Edit the tenant", (*NAMES, *CONTACT), row=f"{PATH}/{tenant_id}")
    return form.send("PATCH", done="The tenant was changed.", changed_only=True)


@form_page(f"{OF_TENANT}/notes")
def edit_tenant_notes(tenant_id: UUID) -> Shown:
    form = Form("Edit the notes", (NOTES,), row=f"{PATH}/{tenant_id}/notes")
    return form.send("PUT", done="The notes were changed.", undo="notes")


@form_page(f"{OF_TENANT}/metadata")
def edit_tenant_metadata(tenant_id: UUID) -> Shown:
    path = f"{PATH}/{tenant_id}/meta_data"
    form = metadata_form(tenant_id, "tenant", api.get(path), lambda _: name_of(tenant_id))
    return send_metadata(form, path)


@form_page(f"{OF_TENANT}/plan")
def assign_plan(tenant_id: UUID) -> Shown:
    intro = "It takes precedence over every subscription until it ends or is withdrawn."
    form = _plan_form(tenant_id, "Assign a plan", intro, fields=ASSIGNMENT)
    form.submit = "Assign the plan"
    return form.send("PUT", "/plan", done=_assigned, undo=_assign_or_withdraw)


def _plan_form(tenant_id: UUID, title: str, intro: str, **more: Any) -> Form:
    """A form about the assigned plan, which says which overrides carry over to another plan."""

    def told() -> str:
        return intro + _carried_over(tenant_id)

    values = _assigned_plan(tenant_id) if request.method != "POST" else {}
    return row_form(PATH, tenant_id, title, told, values=values, **more)


def _assigned_plan(tenant_id: UUID) -> Json:
    """The assigned plan, its end and its reason; no values if there is none."""
    candidates = api.get(f"{PATH}/{tenant_id}/plan").data["candidates"]
    found: Json = next((each for each in candidates if each["source"] == "assignment"), {})
    return {one.name: found.get(one.name) for one in ASSIGNMENT}


def _assign_or_withdraw(before: Inputs) -> str:
    """The page that undoes an assignment: assign the former plan, or withdraw the only plan."""
    return "plan" if any(before.get("plan_name", ())) else "plan/withdraw"


def _assigned(answer: api.Answer) -> str:
    until = answer.data["until"]
    end = f" and ends {relative(until)}" if until else ""
    return f"The plan is {answer.data['plan_name']}{end}."


@form_page(f"{OF_TENANT}/plan/withdraw")
def withdraw_plan(tenant_id: UUID) -> Shown:
    intro = "The tenant's subscription, or the default plan, decides again."
    title = "Withdraw the assigned plan"
    form = _plan_form(tenant_id, title, intro, confirmation=tenant_slug, undone_by=ASSIGNMENT)
    form.back = form.above
    return form.send("DELETE", "/plan", done="The assigned plan was withdrawn.", undo="plan")


@form_page(f"{OF_TENANT}/suspend")
def suspend_tenant(tenant_id: UUID) -> Shown:
    intro = "All requests with the tenant's credentials are refused until it is activated."
    form = _form(tenant_id, "Suspend {}", intro, (SUSPENSION_REASON,), confirmation=tenant_slug)
    form.submit = "Suspend"
    return form.send("POST", "/suspend", done="The tenant is suspended.", undo="activate")


@form_page(f"{OF_TENANT}/activate")
def activate_tenant(tenant_id: UUID) -> Shown:
    form = _form(tenant_id, "Activate {}", "The tenant's credentials are accepted again.")
    form.before = {"reason": ["The activation was undone."]}
    done, query = "The tenant is active.", {"is_active": True}
    return form.send("PATCH", "/active", query=query, done=done, undo="suspend")


@form_page(f"{OF_TENANT}/delete")
def delete_tenant(tenant_id: UUID) -> Shown:
    intro = (
        "All of its data is deleted when the time of grace is over. Until then the deletion can be"
        " withdrawn."
    )
    form = _form(tenant_id, "Delete {}", intro, confirmation=tenant_slug)
    body = {"slug": request.form.get(CONFIRMATION, "").strip()}
    return form.send("DELETE", body=body, done="The tenant will be deleted.", undo="restore")


@form_page(f"{OF_TENANT}/restore")
def restore_tenant(tenant_id: UUID) -> Shown:
    intro = "The request to delete the tenant is withdrawn. It stays suspended."
    form = _form(tenant_id, "Keep {}", intro)
    return form.send("POST", "/restore", done="The tenant will not be deleted.")


def _carried_over(tenant_id: UUID) -> str:
    """A sentence about the overrides that carry over to another plan, if there are any."""
    query = {"tenant_id": tenant_id, "include": "carry_over"}
    overrides = api.get_all("/v1/billing/flags/overrides", **query)
    names = sorted({each["flag_key"] for each in overrides if each["carry_over"]})
    if not names:
        return " Overrides stay with the present plan." if overrides else ""
    return f" The overrides {', '.join(names)} carry over to the new plan; others stay."

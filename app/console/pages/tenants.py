"""Tenants: the list, and what support does with one: change, suspend, delete with grace."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import render_template, url_for

from app.console import api
from app.console.access import signed_in
from app.console.blueprint import console
from app.console.forms import Field, Form
from app.console.lists import Filter, list_rows
from app.console.metadata import metadata_facts, metadata_fields, metadata_patches
from app.console.pages.common import get_tenant, recent_history

FILTERS = (
    Filter("slug", "Slug"),
    Filter("plan_name", "Plan"),
    Filter("is_active", "State", [("true", "active"), ("false", "suspended")]),
    Filter("idp_org_id", "Organization id"),
)
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
UNTIL = Field(
    "until",
    "Until",
    "datetime-local",
    help="In UTC. Empty: until it is withdrawn.",
    is_nullable=True,
)
SUSPENSION_REASON = Field(
    "reason",
    "Reason",
    help="The tenant's owners and admins can read it in the audit trail.",
    is_required=True,
)
REASON = Field("reason", "Reason", help="Such as pilot, comped or internal.", is_required=True)
NEW_SLUG = Field("slug", "Slug", help="Made from the name if it is empty.")


@console.get("/tenants")
@signed_in
def list_tenants() -> str:
    """List all tenants."""
    return render_template(
        "console/tenants.html", title="Tenants", listing=list_rows("/v1/tenants", FILTERS)
    )


@console.route("/tenants/new", methods=["GET", "POST"])
@signed_in
def create_tenant() -> Any:
    """Create a tenant."""
    form = Form(
        "New tenant",
        (NAMES[0], ORGANIZATION, NEW_SLUG, *CONTACT),
        submit="Create",
        back=url_for("console.list_tenants"),
    )
    return form.run(
        lambda values, _: api.call(
            "POST",
            "/v1/tenants",
            body={name: value for name, value in values.items() if value != ""},
        ),
        done="The tenant was created.",
        to=lambda answer: _page(answer.data["id"]),
    )


@console.get("/tenants/<uuid:tenant_id>")
@signed_in
def show_tenant(tenant_id: UUID) -> str:
    """Show a tenant: its plan and why, contacts, metadata, history."""
    path = f"/v1/tenants/{tenant_id}"
    tenant = api.get(path, include="suspension_reason").data
    plan = api.find(f"{path}/plan")
    deletion = api.find(f"{path}/deletion")
    values = api.find(f"{path}/meta_data")
    return render_template(
        "console/tenant.html",
        title=tenant["name"],
        tenant=tenant,
        plan=plan and plan.data,
        deletion=deletion and deletion.data,
        meta_data=metadata_facts(tenant_id, "tenant", values.data["meta_data"]) if values else None,
        counts=api.get(f"{path}/counts").data,
        history=recent_history(path),
    )


@console.route("/tenants/<uuid:tenant_id>/edit", methods=["GET", "POST"])
@signed_in
def edit_tenant(tenant_id: UUID) -> Any:
    """Change a tenant's name, slug, contact and address."""
    form = _form(tenant_id, "Edit the tenant", fields=(*NAMES, *CONTACT))
    return form.run(
        lambda values, version: api.call(
            "PATCH", f"/v1/tenants/{tenant_id}", body=values, if_match=version
        ),
        done="The tenant was changed.",
        to=form.back,
        changed_only=True,
    )


@console.route("/tenants/<uuid:tenant_id>/metadata", methods=["GET", "POST"])
@signed_in
def edit_tenant_metadata(tenant_id: UUID) -> Any:
    """Change a tenant's own metadata, by a form of its custom fields."""
    tenant = get_tenant(tenant_id)
    path = f"/v1/tenants/{tenant_id}/meta_data"
    found = api.get(path)
    fields = metadata_fields(tenant_id, "tenant")
    form = Form(
        "Edit the metadata",
        fields,
        values=found.data["meta_data"],
        version=found.etag,
        back=_page(tenant_id),
        intro="" if fields else "This tenant has no custom fields of the type tenant.",
        context={"tenant": tenant},
    )
    return form.run(
        lambda values, version: api.call(
            "PATCH", path, body={"patches": metadata_patches(values)}, if_match=version
        ),
        done="The metadata was changed.",
        to=_page(tenant_id),
        changed_only=True,
    )


@console.route("/tenants/<uuid:tenant_id>/plan", methods=["GET", "POST"])
@signed_in
def assign_plan(tenant_id: UUID) -> Any:
    """Assign a plan to a tenant, until a moment or until it is withdrawn."""
    names = [each["name"] for each in api.get("/v1/billing/plans", limit=100).data]
    plan = Field("plan_name", "Plan", "select", choices=[(n, n) for n in names], is_required=True)
    form = _form(
        tenant_id,
        "Assign a plan",
        fields=(plan, UNTIL, REASON),
        intro="It takes precedence over every subscription until it ends or is withdrawn."
        + _carried_over(tenant_id),
        submit="Assign the plan",
    )
    return form.run(
        lambda values, version: api.call(
            "PUT", f"/v1/tenants/{tenant_id}/plan", body=values, if_match=version
        ),
        done="The plan was assigned.",
        to=form.back,
    )


@console.route("/tenants/<uuid:tenant_id>/plan/withdraw", methods=["GET", "POST"])
@signed_in
def withdraw_plan(tenant_id: UUID) -> Any:
    """Withdraw a tenant's assigned plan."""
    form = _form(
        tenant_id,
        "Withdraw the assigned plan",
        intro="The tenant's subscription, or the default plan, decides again."
        + _carried_over(tenant_id),
        submit="Withdraw",
        is_dangerous=True,
    )
    return form.run(
        lambda _, version: api.call("DELETE", f"/v1/tenants/{tenant_id}/plan", if_match=version),
        done="The assigned plan was withdrawn.",
        to=form.back,
    )


@console.route("/tenants/<uuid:tenant_id>/suspend", methods=["GET", "POST"])
@signed_in
def suspend_tenant(tenant_id: UUID) -> Any:
    """Suspend a tenant, with a reason."""
    form = _form(
        tenant_id,
        "Suspend the tenant",
        fields=(SUSPENSION_REASON,),
        intro="All requests with the tenant's credentials are refused until it is activated.",
        submit="Suspend",
        is_dangerous=True,
    )
    return form.run(
        lambda values, version: api.call(
            "POST", f"/v1/tenants/{tenant_id}/suspend", body=values, if_match=version
        ),
        done="The tenant is suspended.",
        to=form.back,
    )


@console.route("/tenants/<uuid:tenant_id>/activate", methods=["GET", "POST"])
@signed_in
def activate_tenant(tenant_id: UUID) -> Any:
    """Activate a suspended tenant."""
    form = _form(
        tenant_id,
        "Activate the tenant",
        intro="The tenant's credentials are accepted again.",
        submit="Activate",
    )
    return form.run(
        lambda _, version: api.call(
            "PATCH",
            f"/v1/tenants/{tenant_id}/active",
            query={"is_active": True},
            if_match=version,
        ),
        done="The tenant is active.",
        to=form.back,
    )


@console.route("/tenants/<uuid:tenant_id>/delete", methods=["GET", "POST"])
@signed_in
def delete_tenant(tenant_id: UUID) -> Any:
    """Request the deletion of a suspended tenant."""
    form = _form(
        tenant_id,
        "Delete the tenant",
        intro="All of its data is deleted when the time of grace is over. Until then the deletion"
        " can be withdrawn.",
        submit="Delete the tenant",
        is_dangerous=True,
    )
    body = {"slug": form.confirmation}
    return form.run(
        lambda _, version: api.call(
            "DELETE", f"/v1/tenants/{tenant_id}", body=body, if_match=version
        ),
        done="The tenant will be deleted.",
        to=form.back,
    )


@console.route("/tenants/<uuid:tenant_id>/restore", methods=["GET", "POST"])
@signed_in
def restore_tenant(tenant_id: UUID) -> Any:
    """Withdraw the request to delete a tenant."""
    form = _form(
        tenant_id,
        "Keep the tenant",
        intro="The request to delete the tenant is withdrawn. It stays suspended.",
        submit="Keep the tenant",
    )
    return form.run(
        lambda _, version: api.call("POST", f"/v1/tenants/{tenant_id}/restore", if_match=version),
        done="The tenant will not be deleted.",
        to=form.back,
    )


def _form(tenant_id: UUID, title: str, **options: Any) -> Form:
    """A form about a tenant; a dangerous one asks for its slug."""
    found = api.get(f"/v1/tenants/{tenant_id}")
    form = Form(
        title,
        values=found.data,
        version=found.etag,
        back=_page(tenant_id),
        context={"tenant": found.data},
        **options,
    )
    form.confirmation = found.data["slug"] if form.is_dangerous else ""
    return form


def _carried_over(tenant_id: UUID) -> str:
    """A sentence about the overrides that go along to another plan, if there are any."""
    query = {"tenant_id": tenant_id, "include": "carry_over"}
    overrides = api.get_all("/v1/billing/flags/overrides", **query)
    names = sorted({each["flag_key"] for each in overrides if each["carry_over"]})
    if not names:
        return " Overrides stay with the present plan." if overrides else ""
    return f" Of the overrides, {', '.join(names)} go along to the new plan; others stay."


def _page(tenant_id: object) -> str:
    return url_for("console.show_tenant", tenant_id=tenant_id)

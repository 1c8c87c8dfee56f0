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
from app.console.pages.common import edit, get_tenant, recent_history

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
    return edit(
        f"/v1/tenants/{tenant_id}",
        "Edit the tenant",
        (*NAMES, *CONTACT),
        done="The tenant was changed.",
        back=_page(tenant_id),
        context={"tenant": get_tenant(tenant_id)},
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
    found = api.get(f"/v1/tenants/{tenant_id}")
    names = [each["name"] for each in api.get("/v1/billing/plans", limit=100).data]
    plan = Field("plan_name", "Plan", "select", choices=[(n, n) for n in names], is_required=True)
    form = Form(
        "Assign a plan",
        (plan, UNTIL, REASON),
        values={"plan_name": found.data["plan_name"]},
        version=found.etag,
        intro="It takes precedence over every subscription until it ends or is withdrawn.",
        submit="Assign the plan",
        back=_page(tenant_id),
        context={"tenant": found.data},
    )
    return form.run(
        lambda values, version: api.call(
            "PUT", f"/v1/tenants/{tenant_id}/plan", body=values, if_match=version
        ),
        done="The plan was assigned.",
        to=_page(tenant_id),
    )


@console.route("/tenants/<uuid:tenant_id>/plan/withdraw", methods=["GET", "POST"])
@signed_in
def withdraw_plan(tenant_id: UUID) -> Any:
    """Withdraw a tenant's assigned plan."""
    found = api.get(f"/v1/tenants/{tenant_id}")
    form = Form(
        "Withdraw the assigned plan",
        version=found.etag,
        intro="The tenant's subscription, or the default plan, decides again.",
        submit="Withdraw",
        is_dangerous=True,
        back=_page(tenant_id),
        context={"tenant": found.data},
    )
    return form.run(
        lambda _, version: api.call("DELETE", f"/v1/tenants/{tenant_id}/plan", if_match=version),
        done="The assigned plan was withdrawn.",
        to=_page(tenant_id),
    )


@console.route("/tenants/<uuid:tenant_id>/suspend", methods=["GET", "POST"])
@signed_in
def suspend_tenant(tenant_id: UUID) -> Any:
    """Suspend a tenant, with a reason."""
    found = api.get(f"/v1/tenants/{tenant_id}")
    form = Form(
        "Suspend the tenant",
        (SUSPENSION_REASON,),
        version=found.etag,
        intro="All requests with the tenant's credentials are refused until it is activated.",
        submit="Suspend",
        is_dangerous=True,
        confirmation=found.data["slug"],
        back=_page(tenant_id),
        context={"tenant": found.data},
    )
    return form.run(
        lambda values, version: api.call(
            "POST", f"/v1/tenants/{tenant_id}/suspend", body=values, if_match=version
        ),
        done="The tenant is suspended.",
        to=_page(tenant_id),
    )


@console.route("/tenants/<uuid:tenant_id>/activate", methods=["GET", "POST"])
@signed_in
def activate_tenant(tenant_id: UUID) -> Any:
    """Activate a suspended tenant."""
    found = api.get(f"/v1/tenants/{tenant_id}")
    form = Form(
        "Activate the tenant",
        version=found.etag,
        intro="The tenant's credentials are accepted again.",
        submit="Activate",
        back=_page(tenant_id),
        context={"tenant": found.data},
    )
    return form.run(
        lambda _, version: api.call(
            "PATCH",
            f"/v1/tenants/{tenant_id}/active",
            query={"is_active": True},
            if_match=version,
        ),
        done="The tenant is active.",
        to=_page(tenant_id),
    )


@console.route("/tenants/<uuid:tenant_id>/delete", methods=["GET", "POST"])
@signed_in
def delete_tenant(tenant_id: UUID) -> Any:
    """Request the deletion of a suspended tenant."""
    found = api.get(f"/v1/tenants/{tenant_id}")
    slug = found.data["slug"]
    form = Form(
        "Delete the tenant",
        version=found.etag,
        intro="All of its data is deleted when the time of grace is over. Until then the deletion"
        " can be withdrawn.",
        submit="Delete the tenant",
        is_dangerous=True,
        confirmation=slug,
        back=_page(tenant_id),
        context={"tenant": found.data},
    )
    return form.run(
        lambda _, version: api.call(
            "DELETE", f"/v1/tenants/{tenant_id}", body={"slug": slug}, if_match=version
        ),
        done="The tenant will be deleted.",
        to=_page(tenant_id),
    )


@console.route("/tenants/<uuid:tenant_id>/restore", methods=["GET", "POST"])
@signed_in
def restore_tenant(tenant_id: UUID) -> Any:
    """Withdraw the request to delete a tenant."""
    found = api.get(f"/v1/tenants/{tenant_id}")
    form = Form(
        "Keep the tenant",
        version=found.etag,
        intro="The request to delete the tenant is withdrawn. It stays suspended.",
        submit="Keep the tenant",
        back=_page(tenant_id),
        context={"tenant": found.data},
    )
    return form.run(
        lambda _, version: api.call("POST", f"/v1/tenants/{tenant_id}/restore", if_match=version),
        done="The tenant will not be deleted.",
        to=_page(tenant_id),
    )


def _page(tenant_id: object) -> str:
    return url_for("console.show_tenant", tenant_id=tenant_id)

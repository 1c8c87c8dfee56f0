"""Events out: webhook endpoints, their deliveries, tests and repeated deliveries."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote
from uuid import UUID

from flask import make_response, render_template, url_for

from app.console import api
from app.console.access import signed_in
from app.console.blueprint import console
from app.console.forms import Field, Form, choices
from app.console.lists import Filter, list_rows
from app.console.pages.common import get_tenant, recent_history

PATH = "/v1/webhook-endpoints"
DELIVERIES = (Filter("status", "State", choices("pending", "sending", "succeeded", "failed")),)


class Lines(Field):
    """A list of texts, one on each line."""

    def read(self, form: Any) -> Any:
        """The lines that are not empty."""
        return [line.strip() for line in form.get(self.name, "").splitlines() if line.strip()]

    def shown(self, value: Any) -> Any:
        """One text on each line."""
        return "\n".join(value or ())


CHANGEABLE = (
    Field("url", "Address", "url", help="https, at a public address.", is_required=True),
    Lines(
        "types",
        "Events",
        "textarea",
        help="One on each line, such as user.created. membership.* stands for all that begin so,"
        " * for all.",
        is_required=True,
    ),
    Field("description", "Description"),
)
ACTIVE = Field("is_active", "Events are delivered", "boolean")


@console.get("/tenants/<uuid:tenant_id>/endpoints")
@signed_in
def list_endpoints(tenant_id: UUID) -> str:
    """List the endpoints that a tenant's events are delivered to."""
    return render_template(
        "console/endpoints.html",
        title="Events out",
        tenant=get_tenant(tenant_id),
        listing=list_rows(PATH, tenant_id=tenant_id),
    )


@console.route("/tenants/<uuid:tenant_id>/endpoints/new", methods=["GET", "POST"])
@signed_in
def create_endpoint(tenant_id: UUID) -> Any:
    """Create an endpoint, and show its secret once."""
    form = Form(
        "New endpoint",
        CHANGEABLE,
        values={"types": ["*"]},
        submit="Create",
        back=_list(tenant_id),
        context={"tenant": get_tenant(tenant_id)},
    )
    return form.run(
        lambda values, _: api.call("POST", PATH, query={"tenant_id": tenant_id}, body=values),
        done="",
        to=_list(tenant_id),
        show=lambda answer: _secret(tenant_id, answer),
    )


@console.get("/tenants/<uuid:tenant_id>/endpoints/<uuid:endpoint_id>")
@signed_in
def show_endpoint(tenant_id: UUID, endpoint_id: UUID) -> str:
    """Show an endpoint with its deliveries."""
    path = f"{PATH}/{endpoint_id}"
    return render_template(
        "console/endpoint.html",
        title="Endpoint",
        tenant=get_tenant(tenant_id),
        endpoint=api.get(path).data,
        listing=list_rows(f"{path}/deliveries", DELIVERIES),
        history=recent_history(path),
    )


@console.route(
    "/tenants/<uuid:tenant_id>/endpoints/<uuid:endpoint_id>/edit", methods=["GET", "POST"]
)
@signed_in
def edit_endpoint(tenant_id: UUID, endpoint_id: UUID) -> Any:
    """Change an endpoint, or enable one that was disabled."""
    found = api.get(f"{PATH}/{endpoint_id}")
    form = _form(
        tenant_id,
        endpoint_id,
        "Edit the endpoint",
        fields=(*CHANGEABLE, ACTIVE),
        values=found.data,
        version=found.etag,
    )
    return form.run(
        lambda values, version: api.call(
            "PATCH", f"{PATH}/{endpoint_id}", body=values, if_match=version
        ),
        done="The endpoint was changed.",
        to=form.back,
        changed_only=True,
    )


@console.route(
    "/tenants/<uuid:tenant_id>/endpoints/<uuid:endpoint_id>/test", methods=["GET", "POST"]
)
@signed_in
def send_test_event(tenant_id: UUID, endpoint_id: UUID) -> Any:
    """Send an example event."""
    form = _form(
        tenant_id,
        endpoint_id,
        "Send a test",
        fields=(Field("type", "Event", is_required=True),),
        values={"type": "user.created"},
        intro="One attempt is made to deliver an example of this event.",
        submit="Send",
    )
    return form.run(
        lambda values, _: api.call("POST", f"{PATH}/{endpoint_id}/test", body=values),
        done="The test will be sent.",
        to=form.back,
    )


@console.route(
    "/tenants/<uuid:tenant_id>/endpoints/<uuid:endpoint_id>/rotate", methods=["GET", "POST"]
)
@signed_in
def rotate_endpoint(tenant_id: UUID, endpoint_id: UUID) -> Any:
    """Replace the secret, and show the new one once."""
    form = _form(
        tenant_id,
        endpoint_id,
        "Replace the secret",
        intro="The old secret also signs for 24 hours.",
        submit="Replace",
    )
    return form.run(
        lambda *_: api.call("POST", f"{PATH}/{endpoint_id}/rotate"),
        done="",
        to=form.back,
        show=lambda answer: _secret(tenant_id, answer),
    )


@console.route(
    "/tenants/<uuid:tenant_id>/endpoints/<uuid:endpoint_id>/delete", methods=["GET", "POST"]
)
@signed_in
def delete_endpoint(tenant_id: UUID, endpoint_id: UUID) -> Any:
    """Delete an endpoint."""
    tenant = get_tenant(tenant_id)
    found = api.get(f"{PATH}/{endpoint_id}")
    form = _form(
        tenant_id,
        endpoint_id,
        "Delete the endpoint",
        version=found.etag,
        intro=f"Nothing is delivered to {found.data['url']} any more.",
        submit="Delete",
        is_dangerous=True,
        confirmation=tenant["slug"],
    )
    return form.run(
        lambda _, version: api.call("DELETE", f"{PATH}/{endpoint_id}", if_match=version),
        done="The endpoint was deleted.",
        to=_list(tenant_id),
    )


@console.route(
    "/tenants/<uuid:tenant_id>/endpoints/<uuid:endpoint_id>/resend/<uuid:delivery_id>",
    methods=["GET", "POST"],
)
@signed_in
def resend_delivery(tenant_id: UUID, endpoint_id: UUID, delivery_id: UUID) -> Any:
    """Deliver an event again."""
    form = _form(
        tenant_id,
        endpoint_id,
        "Deliver again",
        intro="The event is delivered again with the same webhook-id.",
        submit="Deliver again",
    )
    return form.run(
        lambda *_: api.call(
            "POST", f"/v1/webhook-deliveries/{quote(str(delivery_id), safe='')}/resend"
        ),
        done="The event will be delivered again.",
        to=form.back,
    )


def _form(tenant_id: UUID, endpoint_id: UUID, title: str, **options: Any) -> Form:
    page = url_for("console.show_endpoint", tenant_id=tenant_id, endpoint_id=endpoint_id)
    return Form(title, back=page, context={"tenant": get_tenant(tenant_id)}, **options)


def _secret(tenant_id: UUID, answer: api.Answer) -> Any:
    page = render_template(
        "console/secret.html",
        title="The endpoint's secret",
        tenant=get_tenant(tenant_id),
        secret=answer.data.get("secret"),
        name=answer.data["url"],
        back=_list(tenant_id),
    )
    return make_response(page, answer.status)


def _list(tenant_id: UUID) -> str:
    return url_for("console.list_endpoints", tenant_id=tenant_id)

"""Events out: the endpoints of a tenant or of the platform, deliveries, tests, repetitions."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote
from uuid import UUID

from flask import make_response, render_template, url_for

from app.console import api
from app.console.access import current_session, signed_in
from app.console.blueprint import console
from app.console.forms import Field, Form, choices
from app.console.lists import Filter, list_rows
from app.console.pages.common import delete, edit, get_tenant, recent_history, rotate
from app.core.errors import Conflict

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


@console.get("/endpoints")
@console.get("/tenants/<uuid:tenant_id>/endpoints")
@signed_in
def list_endpoints(tenant_id: UUID | None = None) -> str:
    """List the endpoints that a tenant's events are delivered to, or all endpoints."""
    return render_template(
        "console/endpoints.html",
        title="Events out",
        tenant=get_tenant(tenant_id),
        tenant_id=tenant_id,
        listing=list_rows(PATH, tenant_id=tenant_id, include="tenant"),
    )


@console.route("/endpoints/new", methods=["GET", "POST"])
@console.route("/tenants/<uuid:tenant_id>/endpoints/new", methods=["GET", "POST"])
@signed_in
def create_endpoint(tenant_id: UUID | None = None) -> Any:
    """Create an endpoint, and show its secret once."""
    if tenant_id is None and current_session().claims.org_id is not None:
        raise Conflict("Sign in without an organization to create an endpoint of the platform.")
    form = Form(
        "New endpoint",
        CHANGEABLE,
        values={"types": ["*"]},
        intro="" if tenant_id else "It gets the events of all tenants and of the platform.",
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


@console.get("/endpoints/<uuid:endpoint_id>")
@console.get("/tenants/<uuid:tenant_id>/endpoints/<uuid:endpoint_id>")
@signed_in
def show_endpoint(endpoint_id: UUID, tenant_id: UUID | None = None) -> str:
    """Show an endpoint with its deliveries."""
    path = f"{PATH}/{endpoint_id}"
    return render_template(
        "console/endpoint.html",
        title="Endpoint",
        tenant=get_tenant(tenant_id),
        tenant_id=tenant_id,
        endpoint=api.get(path).data,
        listing=list_rows(f"{path}/deliveries", DELIVERIES),
        history=recent_history(path),
    )


@console.route("/endpoints/<uuid:endpoint_id>/edit", methods=["GET", "POST"])
@console.route(
    "/tenants/<uuid:tenant_id>/endpoints/<uuid:endpoint_id>/edit", methods=["GET", "POST"]
)
@signed_in
def edit_endpoint(endpoint_id: UUID, tenant_id: UUID | None = None) -> Any:
    """Change an endpoint, or enable one that was disabled."""
    return edit(
        f"{PATH}/{endpoint_id}",
        "Edit the endpoint",
        (*CHANGEABLE, ACTIVE),
        done="The endpoint was changed.",
        **_options(tenant_id, endpoint_id),
    )


@console.route("/endpoints/<uuid:endpoint_id>/test", methods=["GET", "POST"])
@console.route(
    "/tenants/<uuid:tenant_id>/endpoints/<uuid:endpoint_id>/test", methods=["GET", "POST"]
)
@signed_in
def send_test_event(endpoint_id: UUID, tenant_id: UUID | None = None) -> Any:
    """Send an example event."""
    form = Form(
        "Send a test",
        (Field("type", "Event", is_required=True),),
        values={"type": "user.created"},
        intro="One attempt is made to deliver an example of this event.",
        submit="Send",
        **_options(tenant_id, endpoint_id),
    )
    return form.run(
        lambda values, _: api.call("POST", f"{PATH}/{endpoint_id}/test", body=values),
        done="The test will be sent.",
        to=form.back,
    )


@console.route("/endpoints/<uuid:endpoint_id>/rotate", methods=["GET", "POST"])
@console.route(
    "/tenants/<uuid:tenant_id>/endpoints/<uuid:endpoint_id>/rotate", methods=["GET", "POST"]
)
@signed_in
def rotate_endpoint(endpoint_id: UUID, tenant_id: UUID | None = None) -> Any:
    """Replace the secret, and show the new one once."""
    return rotate(
        f"{PATH}/{endpoint_id}",
        "Replace the secret",
        intro="The old secret also signs for 24 hours.",
        show=lambda answer: _secret(tenant_id, answer),
        **_options(tenant_id, endpoint_id),
    )


@console.route("/endpoints/<uuid:endpoint_id>/delete", methods=["GET", "POST"])
@console.route(
    "/tenants/<uuid:tenant_id>/endpoints/<uuid:endpoint_id>/delete", methods=["GET", "POST"]
)
@signed_in
def delete_endpoint(endpoint_id: UUID, tenant_id: UUID | None = None) -> Any:
    """Delete an endpoint."""
    options = _options(tenant_id, endpoint_id)
    tenant = options["context"]["tenant"]
    return delete(
        f"{PATH}/{endpoint_id}",
        "Delete the endpoint",
        intro="Nothing is delivered to this address any more.",
        confirmation=tenant["slug"] if tenant else "platform",
        done="The endpoint was deleted.",
        to=_list(tenant_id),
        **options,
    )


@console.route("/endpoints/<uuid:endpoint_id>/resend/<uuid:delivery_id>", methods=["GET", "POST"])
@console.route(
    "/tenants/<uuid:tenant_id>/endpoints/<uuid:endpoint_id>/resend/<uuid:delivery_id>",
    methods=["GET", "POST"],
)
@signed_in
def resend_delivery(endpoint_id: UUID, delivery_id: UUID, tenant_id: UUID | None = None) -> Any:
    """Deliver an event again."""
    form = Form(
        "Deliver again",
        intro="The event is delivered again with the same webhook-id.",
        submit="Deliver again",
        **_options(tenant_id, endpoint_id),
    )
    return form.run(
        lambda *_: api.call(
            "POST", f"/v1/webhook-deliveries/{quote(str(delivery_id), safe='')}/resend"
        ),
        done="The event will be delivered again.",
        to=form.back,
    )


def _options(tenant_id: UUID | None, endpoint_id: UUID) -> dict[str, Any]:
    """The options of an endpoint's forms."""
    page = url_for("console.show_endpoint", tenant_id=tenant_id, endpoint_id=endpoint_id)
    return {"back": page, "context": {"tenant": get_tenant(tenant_id)}}


def _secret(tenant_id: UUID | None, answer: api.Answer) -> Any:
    page = render_template(
        "console/secret.html",
        title="The endpoint's secret",
        tenant=get_tenant(tenant_id),
        secret=answer.data.get("secret"),
        name=answer.data["url"],
        back=_list(tenant_id),
    )
    return make_response(page, answer.status)


def _list(tenant_id: UUID | None) -> str:
    return url_for("console.list_endpoints", tenant_id=tenant_id)

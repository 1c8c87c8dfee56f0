"""Events out: the endpoints of a tenant or of the platform, deliveries, tests, repetitions."""

from __future__ import annotations

from functools import partial
from urllib.parse import quote, urlsplit
from uuid import UUID

from flask import url_for

from app.console import api
from app.console.access import current_session
from app.console.blueprint import Shown, form_page, page, render
from app.console.fields import Field, Lines, choices, moment_field
from app.console.forms import Form
from app.console.lists import DATES, Filter, list_rows, show_list
from app.console.next_page import Notice
from app.console.pages.common import are_underway, recent_history, secret_page, slug_of
from app.core.errors import Conflict

PATH = "/v1/webhook-endpoints"
FILTERS = (Filter("is_failing", "State", [("true", "failing")]), *DATES)
DELIVERIES = (
    Filter("status", "State", choices("pending", "sending", "succeeded", "failed")),
    *DATES,
)
COLUMNS = "id url tenant.name types is_active disabled_reason description created_at"
DELIVERY = "id type status attempts response_code error attempted_at next_attempt_at"
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
EVENT = Field("type", "Event", is_required=True)
SINCE = moment_field("since", "Since", "of the last 90 days")
STILL_FAILING = Notice("The endpoint still fails. Its last answers are below.", is_bad=True)
LONG_AGO = "2000-01-01T00:00:00Z"


@page("/endpoints", also_of_tenant=True)
def list_endpoints(tenant_id: UUID | None = None) -> Shown:
    listing = list_rows(PATH, FILTERS, tenant_id=tenant_id, include="tenant,failing_since")
    return show_list("endpoints", "Events out", listing, COLUMNS, tenant_id=tenant_id)


@page("/endpoints/failed-deliveries")
def list_failed_deliveries() -> Shown:
    listing = list_rows("/v1/webhook-deliveries/failed", DATES, include="tenant")
    return show_list("failed_deliveries", "Failed deliveries", listing, DELIVERY)


@form_page("/endpoints/new", also_of_tenant=True)
def create_endpoint(tenant_id: UUID | None = None) -> Shown:
    if tenant_id is None and current_session().claims.org_id is not None:
        raise Conflict("Sign in without an organization to create an endpoint of the platform.")
    form = Form(
        "New endpoint",
        CHANGEABLE,
        values={"types": ["*"]},
        intro="" if tenant_id else "It gets the events of all tenants and of the platform.",
        submit="Create",
    )
    return form.send("POST", PATH, query={"tenant_id": tenant_id}, show=partial(_secret, tenant_id))


@page("/endpoints/<uuid:endpoint_id>", also_of_tenant=True)
def show_endpoint(endpoint_id: UUID, tenant_id: UUID | None = None) -> Shown:
    path = f"{PATH}/{endpoint_id}"
    listing = list_rows(f"{path}/deliveries", DELIVERIES)
    endpoint = api.get(path, include="failing_since").data
    return show_list(
        "endpoint",
        endpoint["description"] or urlsplit(endpoint["url"]).hostname,
        listing,
        DELIVERY,
        tenant_id=tenant_id,
        endpoint=endpoint,
        is_underway=are_underway(listing.rows),
        outcome=STILL_FAILING if endpoint["failing_since"] else Notice("The deliveries were made."),
        history=recent_history(path),
    )


@page("/endpoints/events/<evt_id>", also_of_tenant=True)
def show_event(evt_id: str, tenant_id: UUID | None = None) -> Shown:
    """Show what an event says; one that was a test, or is too old, is not stored."""
    found = api.find(f"/v1/events/{quote(evt_id, safe='')}")
    event = found and found.data
    return render("event", event["type"] if event else "Event", event=event), 200 if event else 404


@form_page("/endpoints/<uuid:endpoint_id>/recover", also_of_tenant=True)
def recover_endpoint(endpoint_id: UUID, tenant_id: UUID | None = None) -> Shown:
    """Deliver again what an endpoint has missed; its page sends the form without a time."""
    form = Form(
        "Deliver all that wait or failed now",
        (SINCE,),
        row=f"{PATH}/{endpoint_id}",
        intro="Deliveries that failed or wait for another attempt are made now, and events that"
        " came while the endpoint was not active are delivered too.",
        submit="Deliver now",
    )
    return form.send(
        "POST",
        "/recover",
        body=lambda values: {"since": values["since"] or LONG_AGO},
        done=_recovered,
    )


def _recovered(answer: api.Answer) -> str:
    missed = f", and {answer.data['missed']:,} that were missed" if answer.data["missed"] else ""
    more = "" if answer.data["is_complete"] else " There are more: press again."
    return f"Being delivered: {answer.data['resent']:,} that waited or failed{missed}.{more}"


@form_page("/endpoints/<uuid:endpoint_id>/edit", also_of_tenant=True)
def edit_endpoint(endpoint_id: UUID, tenant_id: UUID | None = None) -> Shown:
    form = Form("Edit the endpoint", (*CHANGEABLE, ACTIVE), row=f"{PATH}/{endpoint_id}")
    return form.send("PATCH", done="The endpoint was changed.", changed_only=True)


@form_page("/endpoints/<uuid:endpoint_id>/test", also_of_tenant=True)
def send_test_event(endpoint_id: UUID, tenant_id: UUID | None = None) -> Shown:
    form = Form(
        "Send a test",
        (EVENT,),
        row=f"{PATH}/{endpoint_id}",
        values={"type": "user.created"},
        intro="One attempt is made to deliver an example of this event.",
        submit="Send",
    )
    return form.send("POST", "/test", done="The test will be sent.")


@form_page("/endpoints/<uuid:endpoint_id>/rotate", also_of_tenant=True)
def rotate_endpoint(endpoint_id: UUID, tenant_id: UUID | None = None) -> Shown:
    form = Form(
        "Replace the secret",
        row=f"{PATH}/{endpoint_id}",
        intro="The old secret also signs for 24 hours.",
    )
    return form.send("POST", "/rotate", body={}, show=partial(_secret, tenant_id))


@form_page("/endpoints/<uuid:endpoint_id>/delete", also_of_tenant=True)
def delete_endpoint(endpoint_id: UUID, tenant_id: UUID | None = None) -> Shown:
    form = Form(
        "Delete the endpoint",
        row=f"{PATH}/{endpoint_id}",
        intro="Nothing is delivered to this address any more.",
        confirmation=partial(slug_of, tenant_id) if tenant_id else "platform",
    )
    return form.send("DELETE", done="The endpoint was deleted.", to=_list(tenant_id))


@form_page("/endpoints/<uuid:endpoint_id>/resend/<uuid:delivery_id>", also_of_tenant=True)
def resend_delivery(endpoint_id: UUID, delivery_id: UUID, tenant_id: UUID | None = None) -> Shown:
    api.get(f"{PATH}/{endpoint_id}")
    form = Form(
        "Deliver again",
        intro="The event is delivered again with the same webhook-id.",
        submit="Deliver again",
        back=url_for("console.show_endpoint", tenant_id=tenant_id, endpoint_id=endpoint_id),
    )
    path = f"/v1/webhook-deliveries/{delivery_id}/resend"
    return form.send("POST", path, done="The event will be delivered again.")


def _secret(tenant_id: UUID | None, answer: api.Answer) -> Shown:
    return secret_page("The endpoint's secret", answer, name="url", back=_list(tenant_id))


def _list(tenant_id: UUID | None) -> str:
    return url_for("console.list_endpoints", tenant_id=tenant_id)

"""Events out: the endpoints of a tenant or of the platform, deliveries, tests, repetitions."""

from __future__ import annotations

from functools import partial
from urllib.parse import quote, urlsplit
from uuid import UUID

from app.console import api
from app.console.access import current_session
from app.console.blueprint import Shown, form_page, page, render
from app.console.fields import Field, Lines, choices, moment_field
from app.console.forms import Form, row_form
from app.console.lists import DATES, Filter, list_page, list_rows, show_list
from app.console.next_page import Notice
from app.console.pages.common import are_underway, recent_history, secret_page, tenant_slug
from app.core.errors import Conflict

PATH, ENDPOINT = "/v1/webhook-endpoints", "/endpoints/<uuid:endpoint_id>"
FILTERS = (Filter("is_failing", "State", [("true", "failing")]), *DATES)
DELIVERIES = (
    Filter("status", "State", choices("pending", "sending", "succeeded", "failed")),
    *DATES,
)
COLUMNS = "id url tenant.name types is_active disabled_reason description created_at"
DELIVERY = "id type status attempts response_code error attempted_at next_attempt_at"
TYPES = (
    "One on each line, such as user.created. membership.* stands for all that begin so, * for all."
)
CHANGEABLE = (
    Field("url", "Address", "url", help="https, at a public address.", is_required=True),
    Lines("types", "Events", "textarea", help=TYPES, is_required=True),
    Field("description", "Description"),
)
ACTIVE = Field("is_active", "Events are delivered", "boolean")
EVENT = Field("type", "Event", is_required=True)
SINCE = moment_field("since", "Since", "of the last 90 days")
STILL_FAILING = Notice("The endpoint still fails. Its last answers are below.", is_bad=True)
LONG_AGO = "2000-01-01T00:00:00Z"
SECRET = partial(secret_page, "The endpoint's secret", name="url")

OUT, INCLUDED = ("/endpoints", "endpoints", "Events out"), "tenant,failing_since"
list_page(*OUT, PATH, COLUMNS, FILTERS, also_of_tenant=True, include=INCLUDED)
FAILED = ("failed_deliveries", "Failed deliveries", "/v1/webhook-deliveries/failed")
list_page("/endpoints/failed-deliveries", *FAILED, DELIVERY, DATES, include="tenant")


@form_page("/endpoints/new", also_of_tenant=True)
def create_endpoint(tenant_id: UUID | None = None) -> Shown:
    if tenant_id is None and current_session().claims.org_id is not None:
        raise Conflict("Sign in without an organization to create an endpoint of the platform.")
    intro = "" if tenant_id else "It gets the events of all tenants and of the platform."
    form = Form("New endpoint", CHANGEABLE, values={"types": ["*"]}, intro=intro, submit="Create")
    return form.send(
        "POST", PATH, query={"tenant_id": tenant_id}, show=partial(SECRET, back=form.back)
    )


@page(ENDPOINT, also_of_tenant=True)
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
    """Show an event. Test events, and events that are too old, are not stored."""
    found = api.find(f"/v1/events/{quote(evt_id, safe='')}")
    event = found and found.data
    return render("event", event["type"] if event else "Event", event=event), 200 if event else 404


@form_page(f"{ENDPOINT}/recover", also_of_tenant=True)
def recover_endpoint(endpoint_id: UUID, tenant_id: UUID | None = None) -> Shown:
    """Deliver again what an endpoint has missed; its page sends the form without a time."""
    intro = (
        "Deliveries that failed or wait for another attempt are made now, and events that came"
        " while the endpoint was not active are delivered too."
    )
    title = "Deliver all that wait or failed now"
    form = row_form(PATH, endpoint_id, title, intro, (SINCE,), submit="Deliver now")
    body = lambda values: {"since": values["since"] or LONG_AGO}  # noqa: E731
    return form.send("POST", "/recover", body=body, done=_recovered)


def _recovered(answer: api.Answer) -> str:
    missed = f", and {answer.data['missed']:,} that were missed" if answer.data["missed"] else ""
    more = "" if answer.data["is_complete"] else " There are more: press again."
    return f"Being delivered: {answer.data['resent']:,} that waited or failed{missed}.{more}"


@form_page(f"{ENDPOINT}/edit", also_of_tenant=True)
def edit_endpoint(endpoint_id: UUID, tenant_id: UUID | None = None) -> Shown:
    form = Form("Edit the endpoint", (*CHANGEABLE, ACTIVE), row=f"{PATH}/{endpoint_id}")
    return form.send("PATCH", done="The endpoint was changed.", changed_only=True)


@form_page(f"{ENDPOINT}/test", also_of_tenant=True)
def send_test_event(endpoint_id: UUID, tenant_id: UUID | None = None) -> Shown:
    intro = "One attempt is made to deliver an example of this event."
    form = row_form(PATH, endpoint_id, "Send a test", intro, (EVENT,), submit="Send")
    form.values = {"type": "user.created"}
    return form.send("POST", "/test", done="The test will be sent.")


@form_page(f"{ENDPOINT}/rotate", also_of_tenant=True)
def rotate_endpoint(endpoint_id: UUID, tenant_id: UUID | None = None) -> Shown:
    intro = "The old secret also signs for 24 hours."
    form = row_form(PATH, endpoint_id, "Replace the secret", intro)
    return form.send("POST", "/rotate", body={}, show=partial(SECRET, back=form.above))


@form_page(f"{ENDPOINT}/delete", also_of_tenant=True)
def delete_endpoint(endpoint_id: UUID, tenant_id: UUID | None = None) -> Shown:
    intro = "Nothing is delivered to this address any more."
    typed = tenant_slug if tenant_id else "platform"
    form = row_form(PATH, endpoint_id, "Delete the endpoint", intro, confirmation=typed)
    return form.send("DELETE", done="The endpoint was deleted.", to=form.above)


@form_page(f"{ENDPOINT}/resend/<uuid:delivery_id>", also_of_tenant=True)
def resend_delivery(endpoint_id: UUID, delivery_id: UUID, tenant_id: UUID | None = None) -> Shown:
    api.get(f"{PATH}/{endpoint_id}")
    intro = "The event is delivered again with the same webhook-id."
    form = Form("Deliver again", intro=intro, submit="Deliver again")
    path = f"/v1/webhook-deliveries/{delivery_id}/resend"
    return form.send("POST", path, done="The event will be delivered again.")

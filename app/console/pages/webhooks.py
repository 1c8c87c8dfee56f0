"""Webhooks in: the inbox by state, payloads, replay, and what waits for its counterpart."""

from __future__ import annotations

from uuid import UUID

from flask import url_for

from app.console import api
from app.console.blueprint import Shown, form_page, page, render
from app.console.fields import Field, choices
from app.console.forms import Form, row_form
from app.console.lists import DATES, Filter, list_page, list_rows, show_list
from app.console.next_page import Notice
from app.console.pages.common import are_underway, is_followed
from app.core.json_text import Json

STATES = choices("pending", "succeeded", "ignored", "failed", "waiting_tenant")
FILTERS = (
    Filter("status", "State", STATES),
    Filter("source", "Source"),
    Filter("type", "Type"),
    *DATES,
)
COLUMNS = "id event_type source status attempts detail created_at processed_at"
WAITING = "kind source organization_id user_id missing since"
ONLY = "Only events of this provider. Empty: of all."
SOURCE = Field("source", "Source", help=ONLY, is_nullable=True)
PATH = "/v1/webhooks/events"
APPLIED = "All events were applied."


@page("/webhooks")
def list_webhooks() -> Shown:
    listing = list_rows(PATH, FILTERS)
    is_underway, outcome = are_underway(listing.rows), None
    if is_followed() and not is_underway:
        has_failed = bool(api.get(PATH, status="failed", limit=1).data)
        text = "Some events have failed: choose the state failed." if has_failed else APPLIED
        outcome = Notice(text, is_bad=has_failed)
    values = {"is_underway": is_underway, "outcome": outcome}
    return show_list("webhooks", "Webhooks in", listing, COLUMNS, **values)


COUNTERPART = "Waiting for a counterpart"
list_page("/webhooks/waiting", "waiting", COUNTERPART, "/v1/identity/waiting", WAITING)


@page("/webhooks/<uuid:event_id>")
def show_webhook(event_id: UUID) -> Shown:
    event = api.get(f"{PATH}/{event_id}").data
    values = {"event": event, "result": _result(event), "is_underway": are_underway([event])}
    return render("webhook", event["event_type"], **values, outcome=_outcome(event))


def _outcome(event: Json) -> Notice:
    """The sentence that a page shows at the end of a replay."""
    if event["status"] == "failed":
        return Notice(f"The event failed again. {event['detail']}", is_bad=True)
    return Notice(f"{_result(event)}.")


def _result(event: Json) -> str:
    """The result of an event, such as "Applied after 2 attempts, replayed once"."""
    number = event["attempts"]
    attempts = f"{number} attempt{'' if number == 1 else 's'}"
    done = {
        "pending": f"Waits for attempt {number + 1}",
        "succeeded": f"Applied after {attempts}",
        "failed": f"Failed after {attempts}",
        "waiting_tenant": "Waits for its tenant",
    }.get(event["status"], "Ignored")
    replays = {0: "", 1: ", replayed once", 2: ", replayed twice"}
    return done + replays.get(event["replays"], f", replayed {event['replays']:,} times")


@form_page("/webhooks/<uuid:event_id>/replay")
def replay_webhook(event_id: UUID) -> Shown:
    event = api.get_once(f"{PATH}/{event_id}").data
    intro = f"{event['event_type']} from {event['source']} is applied again."
    form = row_form(PATH, event_id, "Replay the event", intro)
    return form.send("POST", "/replay", done="The event will be applied again.")


@form_page("/webhooks/replay-failed")
def replay_failed_webhooks() -> Shown:
    intro = "The oldest 1,000 failed events are applied again."
    form = Form("Replay the failed events", (SOURCE,), intro=intro, submit="Replay")
    form.back = url_for("console.list_webhooks", status="failed")
    to = url_for("console.list_webhooks", status="pending")
    return form.send("POST", f"{PATH}/replay-failed", in_query=True, done=_replayed, to=to)


def _replayed(answer: api.Answer) -> str:
    more = " There may be more: replay again." if answer.data["has_more"] else ""
    return f"Events that will be applied again: {answer.data['replayed']}.{more}"

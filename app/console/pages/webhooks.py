"""Webhooks in: the inbox by state, payloads, replay, and what waits for its counterpart."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import render_template, url_for

from app.console import api
from app.console.access import signed_in
from app.console.blueprint import console
from app.console.forms import Field, Form, choices
from app.console.lists import Filter, list_rows

FILTERS = (
    Filter("status", "State", choices("pending", "succeeded", "ignored", "failed")),
    Filter("source", "Source"),
    Filter("type", "Type"),
)
PATH = "/v1/webhooks/events"


@console.get("/webhooks")
@signed_in
def list_webhooks() -> str:
    """List the events that were received."""
    return render_template(
        "console/webhooks.html", title="Webhooks in", listing=list_rows(PATH, FILTERS)
    )


@console.get("/webhooks/<uuid:event_id>")
@signed_in
def show_webhook(event_id: UUID) -> str:
    """Show an event with its payload and headers."""
    event = api.get(f"{PATH}/{event_id}").data
    return render_template("console/webhook.html", title=event["event_type"], event=event)


@console.route("/webhooks/<uuid:event_id>/replay", methods=["GET", "POST"])
@signed_in
def replay_webhook(event_id: UUID) -> Any:
    """Apply an event again."""
    found = api.get(f"{PATH}/{event_id}")
    page = url_for("console.show_webhook", event_id=event_id)
    form = Form(
        "Replay the event",
        version=found.etag,
        intro=f"{found.data['event_type']} from {found.data['source']} is applied again.",
        submit="Replay",
        back=page,
    )
    return form.run(
        lambda _, version: api.call("POST", f"{PATH}/{event_id}/replay", if_match=version),
        done="The event will be applied again.",
        to=page,
    )


@console.route("/webhooks/replay-failed", methods=["GET", "POST"])
@signed_in
def replay_failed_webhooks() -> Any:
    """Apply the failed events again."""
    page = url_for("console.list_webhooks", status="failed")
    form = Form(
        "Replay the failed events",
        (Field("source", "Source", help="Only events of this provider. Empty: of all."),),
        intro="The oldest 1,000 failed events are applied again.",
        submit="Replay",
        back=page,
    )
    return form.run(
        lambda values, _: api.call(
            "POST", f"{PATH}/replay-failed", query={"source": values["source"] or None}
        ),
        done=_replayed,
        to=page,
    )


def _replayed(answer: api.Answer) -> str:
    more = " There may be more: replay again." if answer.data["has_more"] else ""
    return f"Events that will be applied again: {answer.data['replayed']}.{more}"


@console.get("/webhooks/waiting")
@signed_in
def list_waiting() -> str:
    """List what waits for its organization, user or membership."""
    return render_template(
        "console/waiting.html",
        title="Waiting for a counterpart",
        listing=list_rows("/v1/identity/waiting"),
    )

"""Two receivers, which are public, and the operators' view of the inbox."""

from __future__ import annotations

from typing import Any, cast

from flask import Flask, request
from flask.blueprints import BlueprintSetupState

from app.auth.guard import current_actor, public, requires
from app.auth.permissions import Permission
from app.core.db.pages import Page
from app.core.errors import DatabaseUnavailable
from app.core.http.blueprint import Blueprint
from app.core.http.endpoint import of_contract
from app.core.json_text import Json
from app.inbox import receiving, service, verification
from app.inbox.models import WebhookEvent
from app.inbox.providers import EMAIL, IDENTITY, Receiver
from app.inbox.schemas import (
    ReplayQuerySchema,
    ReplaySchema,
    WebhookEventDetailSchema,
    WebhookEventQuerySchema,
    WebhookEventSchema,
)
from app.inbox.service import PayloadForgotten
from app.inbox.verification import SignatureUncheckable, WebhookSecretMissing

TOO_LARGE = (
    "The body is larger than 5 MiB, or larger than 256 KiB where the sender's signature would lie in"
    " the body (the presets `mailgun` and `ses`)."
)

receivers = Blueprint(
    "webhooks",
    __name__,
    description="Receivers of the events of the identity provider and the e-mail provider.",
)
events = Blueprint(
    "webhook_events",
    __name__,
    url_prefix="/v1/webhooks/events",
    description="The inbox: the events that providers posted, and their status.",
)


@receivers.record_once
def _configure(state: BlueprintSetupState) -> None:
    verification.configure(cast(Flask, state.app))


@receivers.post(IDENTITY.path)
@public
@receivers.response(200, description="The event is stored; a worker applies it.")
@receivers.alt_response(401, description="No configured secret matches the signature.")
@receivers.alt_response(413, description=TOO_LARGE)
@receivers.raises(DatabaseUnavailable, WebhookSecretMissing, SignatureUncheckable)
def receive_identity_event() -> dict[str, Json]:
    """Receive an identity provider's lifecycle event, signed by its sender.

    Answers `{"status": "accepted", "event_id": …, "duplicate": false}` once the event is stored.
    A duplicate and an event of an unknown type are accepted too.
    """
    return receive(IDENTITY)


@receivers.post(EMAIL.path)
@public
@receivers.response(200, description="The event is stored; a worker applies it.")
@receivers.alt_response(401, description="No configured secret matches the signature.")
@receivers.alt_response(413, description=TOO_LARGE)
@receivers.raises(DatabaseUnavailable, WebhookSecretMissing, SignatureUncheckable)
@of_contract
def receive_email_event() -> dict[str, Json]:
    """Receive an e-mail provider's delivery event, signed by its sender.

    Answers as the identity provider's receiver does. For a batch it answers `event_ids`, one per
    event; `duplicate` is true when all of them were stored before.
    """
    return receive(EMAIL)


@events.get("")
@requires(Permission.WEBHOOKS_READ, platform_only=True)
@events.arguments(WebhookEventQuerySchema, location="query")
@events.columns("id", "created_at", "source", "event_type", "status", "attempts", "detail")
@events.response(200, WebhookEventSchema(many=True))
def list_webhook_events(query: dict[str, Any]) -> Page:
    """List webhook events."""
    return service.list_events(**query)


@events.post("/replay-failed")
@requires(Permission.WEBHOOKS_WRITE, platform_only=True)
@events.arguments(ReplayQuerySchema, location="query")
@events.response(202, ReplaySchema)
def replay_failed(query: dict[str, str]) -> dict[str, object]:
    """Apply the oldest 1,000 failed events again, of one provider or of all.

    A worker applies them. Events whose payload was deleted stay as they are.
    """
    replayed = service.replay_failed(query.get("source"), actor=current_actor())
    return {"replayed": replayed, "has_more": replayed == service.REPLAYED_AT_ONCE}


@events.get("/<event_id>")
@requires(Permission.WEBHOOKS_READ, platform_only=True)
@events.response(200, WebhookEventDetailSchema)
def get_webhook_event(event_id: str) -> WebhookEvent:
    """Get a webhook event with its payload and headers, without secrets."""
    return service.get_event(event_id)


@events.post("/<event_id>/replay")
@requires(Permission.WEBHOOKS_WRITE, platform_only=True)
@events.response(202, WebhookEventSchema)
@events.raises(PayloadForgotten)
def replay_webhook_event(event_id: str) -> WebhookEvent:
    """Apply an event again, whatever its status."""
    return service.replay(event_id, actor=current_actor())


def receive(receiver: Receiver) -> dict[str, Json]:
    """Store the events of the current request."""
    return receiving.receive(receiver, request.headers.items(), request.get_data())


BLUEPRINTS = (receivers, events)

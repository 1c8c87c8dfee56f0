"""Posting events as providers do, and applying them as a worker does."""

import json
import time
from typing import Any
from uuid import UUID

from flask import Flask
from sqlalchemy import select
from werkzeug.test import TestResponse

from app.core.db.statements import Statement
from app.inbox import processing
from app.inbox.models import WebhookEvent
from app.inbox.providers import EMAIL, IDENTITY, Receiver
from app.inbox.signatures.schemes import parse_schemes
from app.inbox.signatures.sending import sign
from app.inbox.verification import SCHEMES
from tests.conformance.webhook_samples import document
from tests.database import platform_transaction

STANDARD = "whsec_dGhpcyBpcyBhIHNlY3JldCBmb3IgdGVzdHMgb25seQ=="
SECRETS = {
    **dict.fromkeys(("standard_webhooks", "clerk", "stytch", "resend"), STANDARD),
    "workos": "workos-secret", "logto": "logto-secret", "auth0": "auth0-token",
    "mailgun": "mailgun-key", "postmark": "user:password", "github": "github-secret",
    "stripe": "whsec_stripe", "paddle": "paddle-secret", "chargebee": "user:password",
    "lemonsqueezy": "lemon-secret", "polar": STANDARD,
}  # fmt: skip


class Sender:
    """A provider, with a clock that may be set."""

    def __init__(self, app: Flask, monkeypatch: Any) -> None:
        self.app = app
        self._monkeypatch = monkeypatch
        self.configure({receiver: self._all(receiver) for receiver in (IDENTITY, EMAIL)})

    def configure(self, texts: dict[Receiver, str], **options: Any) -> None:
        """Give the receivers other secrets, for this test."""
        schemes = {
            receiver.name: parse_schemes(text, **options) for receiver, text in texts.items()
        }
        self._monkeypatch.setitem(
            self.app.extensions, SCHEMES, {**self.app.extensions[SCHEMES], **schemes}
        )

    def set_clock(self, now: float) -> None:
        """Let the signatures be judged at this moment."""
        self._monkeypatch.setattr("app.inbox.verification.time.time", lambda: now)

    def post(
        self,
        preset: str,
        body: Any,
        *,
        receiver: Receiver = IDENTITY,
        message_id: str = "",
        now: float | None = None,
        headers: dict[str, str] | None = None,
    ) -> TestResponse:
        """Sign ``body`` as the preset's sender and post it."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        signed = sign(preset, SECRETS[preset], raw, now or time.time(), message_id=message_id)
        return self.post_raw(signed.body, {**signed.headers, **(headers or {})}, receiver=receiver)

    def post_raw(
        self, body: bytes, headers: dict[str, str], *, receiver: Receiver = IDENTITY
    ) -> TestResponse:
        """Post as it is."""
        sent = {"Content-Type": "application/json", **headers}
        return self.app.test_client().post(receiver.path, data=body, headers=sent)

    def deliver(self, preset: str, body: Any, **options: Any) -> WebhookEvent:
        """Post one event, apply it, and give its row."""
        answer = self.post(preset, body, **options)
        assert answer.status_code == 200, answer.get_data(as_text=True)
        work_off(self.app)
        return event_row(answer.get_json()["event_id"])

    def tell(
        self, kind: str, at: str = "09:00", *, delivery: str = "", **data: Any
    ) -> WebhookEvent:
        """Deliver an event in the generic form; ``at`` is the time of day."""
        receiver = EMAIL if kind.startswith("email.") else IDENTITY
        body = {"type": kind, "timestamp": f"2026-01-05T{at}:00Z", "data": data}
        return self.deliver("standard_webhooks", body, receiver=receiver, message_id=delivery)

    def deliver_sample(self, provider: str, name: str, **options: Any) -> WebhookEvent:
        """The same with a recorded body."""
        return self.deliver(provider, document(provider, name), **options)

    @staticmethod
    def _all(receiver: Receiver) -> str:
        names = {
            IDENTITY: "standard_webhooks workos logto auth0 github stripe clerk stytch",
            EMAIL: "standard_webhooks mailgun postmark resend",
        }
        return " ".join(f"{name}:{SECRETS[name]}" for name in names[receiver].split())


def work_off(app: Flask) -> list[processing.Result]:
    """Apply every event that is due, in the order they came; each attempt's result."""
    with app.app_context():
        return list(iter(processing.process_next, None))


def all_events(**filters: Any) -> list[WebhookEvent]:
    """The inbox, in the order the events came."""
    return all_rows(WebhookEvent, **filters)


def all_rows(model: Any, **filters: Any) -> list[Any]:
    """Every row of a model, in the order they were made."""
    chosen = select(model).filter_by(**filters)
    ordered = chosen.order_by(model.created_at, *model.__table__.primary_key)
    with platform_transaction():
        return Statement("tests.all_rows", ordered, prepare=False).all()


def event_row(event_id: str | UUID) -> WebhookEvent:
    (row,) = all_events(id=UUID(str(event_id)))
    return row

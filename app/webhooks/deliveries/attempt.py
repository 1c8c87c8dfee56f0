"""One attempt: build the request of a delivery, send it, and judge the answer."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import uniform
from typing import Any

from app.core import json_text
from app.core.db.tenancy import owner_of
from app.core.observability import logs, telemetry
from app.core.outgoing import FetchFailed, guarded, retry_after
from app.events.schemas import EventSchema
from app.events.service import PREFIX, as_seen_by
from app.inbox.signatures.sending import sign
from app.webhooks.deliveries.models import DeliveryStatus, WebhookDelivery
from app.webhooks.endpoints import encryption
from app.webhooks.endpoints.models import WebhookEndpoint, WebhookEndpointState
from app.webhooks.endpoints.service import old_secrets

log = logging.getLogger(__name__)

TIMEOUT = 15.0  # seconds of one attempt
MAX_BODY = 2_048  # characters of an answer that are stored
GONE = 410
MINUTE, HOUR = 60, 3600
WAITS = (0, 5, 5 * MINUTE, 30 * MINUTE, *(HOUR * hours for hours in (2, 5, 10, 14, 20, 24)))
"""Seconds before each attempt; the first is made at once."""
JITTER = 0.2  # of a wait, in both directions
EVENT = EventSchema()


@dataclass(frozen=True, eq=False)
class Work:
    """A delivery that this process has claimed; ``event`` is None for a test and a lost event."""

    delivery: WebhookDelivery
    endpoint: WebhookEndpoint
    state: WebhookEndpointState
    event: Any


@dataclass(frozen=True)
class Result:
    """The result of an attempt. ``retry_after`` is in seconds, 0 if the answer has none."""

    work: Work
    code: int | None = None
    body: str | None = None
    error: str | None = None
    milliseconds: int = 0
    retry_after: float = 0.0
    can_retry: bool = True

    @property
    def has_succeeded(self) -> bool:
        return self.code is not None and 200 <= self.code < 300

    def outcome(self) -> tuple[DeliveryStatus, float | None]:
        """The delivery's new status, and the seconds until its next attempt."""
        if self.has_succeeded:
            return DeliveryStatus.SUCCEEDED, None
        delivery = self.work.delivery
        is_last = delivery.attempts >= len(WAITS) or delivery.body is not None
        if is_last or not self.can_retry:
            return DeliveryStatus.FAILED, None
        return DeliveryStatus.PENDING, wait_before(delivery.attempts, self.retry_after)


def wait_before(attempts: int, retry_after: float = 0.0) -> float:
    """Seconds until the next attempt, after so many; an answer can ask for up to twice as many."""
    step = WAITS[attempts]
    return max(step * uniform(1 - JITTER, 1 + JITTER), min(retry_after, 2 * step))  # noqa: S311


def attempt(work: Work) -> Result:
    """Send the delivery once. No error is raised: each is a result."""
    delivery, event = work.delivery, work.event
    logs.resume_request(event.request_id if event is not None else "")
    logs.add_facts(event_id=PREFIX + delivery.event_id.hex, delivery_id=str(delivery.id))
    cause = {"traceparent": event.traceparent} if event is not None else {}
    with telemetry.job_span("webhook_delivery", cause, endpoint_id=str(delivery.endpoint_id)):
        started = time.monotonic()
        try:
            result = _send(work)
        except FetchFailed as fault:
            result = Result(work, error=str(fault))
        except encryption.Undecryptable as fault:
            log.error("webhook_secret_unreadable")
            result = Result(work, error=str(fault))
        except Exception as fault:
            log.exception("webhook_attempt_failed")
            result = Result(work, error=type(fault).__name__)
        milliseconds = round((time.monotonic() - started) * 1000)
        fields = {"endpoint_id": str(delivery.endpoint_id), "attempt": delivery.attempts}
        outcome = {"status": result.code, "reason": result.error, "duration_ms": milliseconds}
        log.info("webhook_attempt", extra={**fields, **outcome})
        return replace(result, milliseconds=milliseconds)


def _send(work: Work) -> Result:
    if work.delivery.body is None and work.event is None:
        return Result(work, error="the event is older than EVENT_DAYS", can_retry=False)
    body = _body(work)
    answer = guarded().send(
        "POST",
        work.endpoint.url,
        body=body,
        headers=_headers(work, body),
        timeout=TIMEOUT,
        max_bytes=4 * MAX_BODY,
    )
    return Result(
        work,
        code=answer.status,
        body=answer.body.decode(errors="replace").replace("\0", "�")[:MAX_BODY],
        retry_after=retry_after(answer.headers.get("Retry-After", "")),
        can_retry=answer.status != GONE,
    )


def _body(work: Work) -> bytes:
    """The event as the endpoint's owner reads it in the feed."""
    if work.delivery.body is not None:
        return work.delivery.body.encode()
    seen = as_seen_by(owner_of(work.endpoint.tenant_id), work.event)
    return json_text.dumps(EVENT.dump(seen))


def _headers(work: Work, body: bytes) -> Mapping[str, str]:
    """Those of Standard Webhooks, signed now, with the owner's own headers and the trace's id."""
    state = work.state
    secrets = [encryption.decrypt(state.secret), *old_secrets(work.endpoint, state)]
    message_id, now = PREFIX + work.delivery.event_id.hex, time.time()
    signed = [
        sign("standard_webhooks", one, body, now, message_id=message_id).headers for one in secrets
    ]
    own = json.loads(encryption.decrypt(state.headers)) if state.headers else {}
    return {
        **own,
        **signed[0],
        "webhook-signature": " ".join(one["webhook-signature"] for one in signed),
        "Content-Type": "application/json",
        **telemetry.carried(),
    }

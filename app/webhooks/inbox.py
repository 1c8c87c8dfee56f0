"""Receiving: verify the raw bytes, store each event once, commit, ring the worker.

The row is the truth: what was answered with 200 is in the database, whatever happens to the
queue. One statement stores a delivery, and the unique keys tell what was there before.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flask import Flask, current_app
from sqlalchemy import ARRAY, Text, any_, bindparam, select, text
from uuid_utils.compat import uuid7

from app.config import ConfigError
from app.core import json_text
from app.core.clock import utcnow
from app.core.db import statements
from app.core.errors import Unauthenticated, Unavailable
from app.core.observability.logs import current_request_id
from app.identity_sync.events import Delivery
from app.webhooks.jobs import ring
from app.webhooks.models import Status, WebhookEvent
from app.webhooks.providers import PROVIDERS, Receiver, choose
from app.webhooks.providers.payloads import Posted, key
from app.webhooks.signatures.certificates import CertificateUnavailable
from app.webhooks.signatures.presets import (
    Scheme,
    SignatureInvalid,
    Verified,
    parse_schemes,
    verify,
)

log = logging.getLogger(__name__)

SETTINGS = {
    Receiver.IDENTITY: "idp_webhook_secrets",
    Receiver.EMAIL: "email_webhook_secrets",
}
SCHEMES = "webhook_schemes"
REDACTED = "[redacted]"
_CLEAR = frozenset(
    [
        "content-length",
        "content-type",
        "date",
        "host",
        "svix-id",
        "svix-timestamp",
        "user-agent",
        "webhook-id",
        "webhook-timestamp",
        "x-amz-sns-message-id",
        "x-amz-sns-message-type",
        "x-amz-sns-topic-arn",
        "x-github-delivery",
        "x-github-event",
        "x-request-id",
        "x-twilio-email-event-webhook-timestamp",
    ]
)

_COLUMNS = {
    "id": "uuid",
    "external_id": "text",
    "event_type": "text",
    "body": "text",
    "digest": "text",
    "status": "text",
    "detail": "text",
    "next_attempt_at": "timestamptz",
    "processed_at": "timestamptz",
}


def _storing(rows: str, *, array: str = "") -> Any:
    values = ", ".join(f"CAST(:{name} AS {kind}{array})" for name, kind in _COLUMNS.items())
    return statements.prepare(
        text(f"""
INSERT INTO webhook_events (
    {", ".join(_COLUMNS)},
    source, headers, replay_key, request_id, created_at, updated_at, version, attempts, replays
)
SELECT id, external_id, event_type, decode(body, 'hex'), digest, status, detail, next_attempt_at,
    processed_at, :source, CAST(:headers AS json), :replay_key, :request_id, :now, :now, 1, 0, 0
FROM {rows % values} AS new ({", ".join(_COLUMNS)})
ON CONFLICT DO NOTHING RETURNING id
""")  # noqa: S608 - of names written here
    )


_STORE_ONE = _storing("(SELECT %s)")
_STORE = _storing("unnest(%s)", array="[]")
_FIND = statements.prepare(
    select(WebhookEvent.id, WebhookEvent.external_id, WebhookEvent.status).where(
        WebhookEvent.source == bindparam("source"),
        WebhookEvent.external_id == any_(bindparam("external_ids", type_=ARRAY(Text))),
    )
)
_FIND_BY_REPLAY_KEY = statements.prepare(
    select(WebhookEvent.id).where(
        WebhookEvent.source == bindparam("source"),
        WebhookEvent.replay_key == bindparam("replay_key"),
    )
)


@dataclass(frozen=True)
class Stored:
    """The id of each delivery's row; the rows that are new; the rows to be processed."""

    event_ids: list[UUID]
    added: set[UUID]
    pending: list[UUID]


@dataclass(frozen=True)
class Receipt:
    """What is answered: an id per event, and whether all of them were here before."""

    event_ids: Sequence[UUID]
    is_batch: bool
    duplicate: bool


def configure(app: Flask) -> None:
    """Read the receivers' secrets; a receiver without any refuses everything (503).

    Raises ConfigError naming each setting that cannot be read, never its value.
    """
    config, schemes, faults = app.extensions["config"], {}, []
    for receiver, setting in SETTINGS.items():
        try:
            schemes[receiver] = parse_schemes(getattr(config, setting))
        except ValueError as fault:
            faults.append(f"{setting.upper()}: {fault}")
            continue
        _warn(receiver, schemes[receiver], setting.upper())
    if faults:
        raise ConfigError("The configuration is not usable: " + "; ".join(faults) + ".")
    app.extensions[SCHEMES] = schemes


def receive(receiver: Receiver, headers: Iterable[tuple[str, str]], body: bytes) -> Receipt:
    """Store what a provider posted, in the current transaction, and ring the worker after it.

    Raises Unauthenticated where no configured secret fits, and Unavailable where none is
    configured or the signature cannot be checked now.
    """
    headers = list(headers)
    verified = _verify(current_app.extensions[SCHEMES][receiver], headers, body)
    posted = Posted(body)
    provider = choose(receiver, verified.provider, posted)
    deliveries = provider.split(posted, verified.proof.message_id)
    replay_key = verified.proof.replay_key
    stored = store(
        provider.name,
        deliveries,
        headers=_redacted(headers),
        replay_key=key(replay_key) if replay_key else None,
    )
    ring(stored.pending)
    return Receipt(
        stored.event_ids, provider.batches, duplicate=bool(deliveries) and not stored.added
    )


def store(
    source: str,
    deliveries: Sequence[Delivery],
    *,
    headers: Mapping[str, str],
    replay_key: str | None,
) -> Stored:
    """Store each delivery once, by one statement, in the current transaction."""
    if not deliveries:
        return Stored([], set(), [])
    common = {
        "source": source,
        "headers": json_text.dumps_text(headers),
        "replay_key": replay_key,
        "request_id": current_request_id(),
        "now": utcnow(),
    }
    rows = [_row(delivery) for delivery in deliveries]
    if len(rows) == 1:
        found = statements.scalars(_STORE_ONE, {**common, **rows[0]}, whole=True)
    else:
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        found = statements.scalars(_STORE, {**common, **columns}, whole=True)
    added = set(found)
    new = [row for row in rows if row["id"] in added]
    ids: dict[str, UUID] = {row["external_id"]: row["id"] for row in new}
    pending = [row["id"] for row in new if row["status"] == Status.PENDING.value]
    missing = {delivery.external_id for delivery in deliveries} - ids.keys()
    if missing:
        known, waiting = _known(source, missing, replay_key)
        ids |= known
        pending += waiting
    return Stored([ids[delivery.external_id] for delivery in deliveries], added, pending)


def _warn(receiver: Receiver, schemes: Sequence[Scheme], setting: str) -> None:
    if not schemes:
        log.warning("webhook_secret_missing", extra={"setting": setting})
    own = {None, *(provider.name for provider in PROVIDERS[receiver])}
    for scheme in schemes:
        if scheme.provider not in own:  # its events will be ignored
            log.warning(
                "webhook_preset_misplaced", extra={"setting": setting, "preset": scheme.preset}
            )


def _verify(schemes: Sequence[Scheme], headers: list[tuple[str, str]], body: bytes) -> Verified:
    if not schemes:
        raise Unavailable("This receiver has no signing secret.", code="webhook_secret_missing")
    try:
        return verify(schemes, headers, body, time.time())
    except CertificateUnavailable as fault:
        log.warning("webhook_certificate_unavailable", extra={"reason": str(fault)})
        raise Unavailable(
            "The signature cannot be checked at the moment.", code="certificate_unavailable"
        ) from None
    except SignatureInvalid as fault:
        log.info("webhook_refused", extra={"reason": str(fault)})
        raise Unauthenticated from None


def _row(delivery: Delivery) -> dict[str, Any]:
    now = utcnow()
    return {
        "id": uuid7(),
        "external_id": delivery.external_id,
        "event_type": delivery.event_type,
        "body": delivery.body.hex(),
        "digest": hashlib.sha256(delivery.body).hexdigest(),
        "status": (Status.FAILED if delivery.error else Status.PENDING).value,
        "detail": delivery.error,
        "next_attempt_at": None if delivery.error else now,
        "processed_at": now if delivery.error else None,
    }


def _known(
    source: str, external_ids: set[str], replay_key: str | None
) -> tuple[dict[str, UUID], list[UUID]]:
    """The rows that were in the way, of the same event or of the same signature.

    And those that are pending: perhaps they were stored a moment ago for this very request, whose
    connection was lost before anybody could be told.
    """
    found = statements.rows(_FIND, {"source": source, "external_ids": list(external_ids)})
    ids = {external_id: id_ for id_, external_id, _ in found}
    waiting = [id_ for id_, _, status in found if status == Status.PENDING.value]
    if replay_key is not None and external_ids - ids.keys():
        values = {"source": source, "replay_key": replay_key}
        holder = statements.scalar(_FIND_BY_REPLAY_KEY, values)
        ids |= dict.fromkeys(external_ids - ids.keys(), holder)
    return ids, waiting


def _redacted(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """What may be shown to operators: known harmless headers; of the others the names."""
    named = {name.lower(): value for name, value in headers}
    return {name: value if name in _CLEAR else REDACTED for name, value in named.items()}

"""Recorded events of billing providers: ``samples/<provider>/<event>[--state].json``."""

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from app.billing.snapshots import BillingEvent, Snapshot
from app.inbox.providers.payloads import Document, parse_object

FOLDER = Path(__file__).parents[1] / "conformance" / "billing" / "samples"


def sample_names(provider: str) -> list[str]:
    return sorted(file.stem for file in (FOLDER / provider).glob("*.json"))


def sample(provider: str, name: str) -> bytes:
    return (FOLDER / provider / f"{name}.json").read_bytes()


def document(provider: str, name: str) -> Any:
    return json.loads(sample(provider, name))


def event(body: Any) -> Document:
    """A body as the inbox reads it."""
    return parse_object(body if isinstance(body, bytes) else json.dumps(body).encode())


def changed(body: Any, change: Callable[[Any], object]) -> Document:
    """A body after ``change``, which writes into it."""
    change(body)
    return event(body)


def told(snapshot: Snapshot, occurred_at: datetime, tenant: str = "") -> BillingEvent:
    """The event whose payload is this subscription."""
    return BillingEvent(
        subscription_id=snapshot.subscription_id,
        snapshot=snapshot,
        tenant=tenant,
        occurred_at=occurred_at,
        is_live=snapshot.is_live,
    )

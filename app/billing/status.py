"""The configured billing providers, with the last comparison of each."""

from __future__ import annotations

from uuid import UUID

from app.billing import mirror, reconcile
from app.billing.handler import told_by
from app.billing.health import LAST_EVENTS, WAITING, comparisons, has_api_key, has_receiver
from app.billing.providers import PROVIDERS
from app.config import current_config
from app.core.actors import Actor
from app.core.db.statements import Statement
from app.core.errors import Conflict
from app.core.jobs.queues import JOBS
from app.core.json_text import Json
from app.inbox.providers.payloads import Unreadable, Unwanted

COMPARE = "app.billing.jobs.compare"
MAX_WAITING = 200  # events that are looked at
OLDEST_WAITING = Statement(
    "webhook_events.oldest_waiting",
    "SELECT id, source, body, bp_subscription_id, created_at FROM webhook_events"
    " WHERE status = 'waiting_tenant' ORDER BY created_at LIMIT :limit",
    prepare=False,
)

FIND_PROVIDERS = Statement(
    "subscriptions.find_providers",
    "SELECT DISTINCT bp_provider FROM subscriptions"
    " WHERE tenant_id = :tenant_id AND bp_provider IS NOT NULL AND status_class <> 'ended'",
)


class ApiKeyMissing(Conflict):
    code = "api_key_missing"
    detail = "The comparison needs an API key of this billing provider; see the configuration."


def list_providers() -> list[dict[str, Json]]:
    """All providers, also those that are not configured."""
    config, known = current_config(), comparisons()
    events = {one.source: one.at for one in LAST_EVENTS.all()}
    waiting = {one.source: one.events for one in WAITING.all()}
    found = []
    for name, provider in PROVIDERS.items():
        last = known.get(name)
        counts = {} if last is None else last.counts
        found.append(
            {
                "provider": name,
                "title": provider.title,
                "has_receiver": has_receiver(provider, config),
                "has_api_key": has_api_key(provider, config),
                "last_event_at": events[name],
                "waiting": waiting.get(name, 0),
                "is_comparing": last is not None and last.is_running,
                "started_at": last and last.started_at,
                "finished_at": last and last.finished_at,
                "unmatched": counts.get("waiting", 0),
                **{kind: counts.get(kind, 0) for kind in ("compared", "created", "missing")},
                "repaired": {kind: counts[kind] for kind in mirror.KINDS if kind in counts},
                "error": "" if last is None else last.error,
            }
        )
    return found


def list_waiting() -> list[dict[str, Json]]:
    """The customers and subscriptions of the events that wait for a tenant, the oldest first."""
    found: dict[tuple[str, str, str], dict[str, Json]] = {}
    for event in OLDEST_WAITING.all(limit=MAX_WAITING):
        customer_id = _customer_of(event.source, event.body)
        key = (event.source, customer_id, event.bp_subscription_id or "")
        one = dict(zip(("provider", "customer_id", "bp_subscription_id"), key, strict=True))
        row = found.setdefault(
            key, {**one, "event_id": event.id, "events": 0, "since": event.created_at}
        )
        row["events"] += 1
    return list(found.values())


def _customer_of(provider: str, body: bytes) -> str:
    """The provider's id of the customer that an event is about; empty where it does not say it."""
    try:
        told = told_by(PROVIDERS[provider], body)
    except (KeyError, Unreadable, Unwanted):
        return ""
    about = told.snapshot.customer_id if told.snapshot else told.customer and told.customer.id
    return about or ""


def begin_comparison(name: str, *, actor: Actor) -> dict[str, Json]:
    """Let a job compare with a provider; raises ApiKeyMissing."""
    provider = PROVIDERS[name]
    if not has_api_key(provider, current_config()):
        raise ApiKeyMissing
    reconcile.begin(provider, actor=actor)
    JOBS[COMPARE].push(name)
    return next(one for one in list_providers() if one["provider"] == name)


def compare_tenant(tenant_id: UUID) -> None:
    """Let jobs compare with the tenant's providers that have an API key, unless one does so now."""
    for name in FIND_PROVIDERS.scalars(tenant_id=tenant_id):
        if has_api_key(PROVIDERS[name], current_config()):
            reconcile.begin(PROVIDERS[name])
            JOBS[COMPARE].push(name)

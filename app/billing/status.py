"""The configured billing providers, with the last comparison of each."""

from __future__ import annotations

from app.billing import mirror, reconcile
from app.billing.health import LAST_EVENTS, WAITING, comparisons, has_api_key, has_receiver
from app.billing.providers import PROVIDERS
from app.config import current_config
from app.core.actors import Actor
from app.core.errors import Conflict
from app.core.jobs.queues import JOBS
from app.core.json_text import Json

COMPARE = "app.billing.jobs.compare"


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
                "compared": counts.get("compared", 0),
                "created": counts.get("created", 0),
                "unmatched": counts.get("waiting", 0),
                "missing": counts.get("missing", 0),
                "repaired": {kind: counts[kind] for kind in mirror.KINDS if kind in counts},
                "error": "" if last is None else last.error,
            }
        )
    return found


def begin_comparison(name: str, *, actor: Actor) -> dict[str, Json]:
    """Let a job compare with a provider; raises ApiKeyMissing."""
    provider = PROVIDERS[name]
    if not has_api_key(provider, current_config()):
        raise ApiKeyMissing
    reconcile.begin(provider, actor=actor)
    JOBS[COMPARE].push(name)
    return next(one for one in list_providers() if one["provider"] == name)

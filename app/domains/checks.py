"""Checks of domains: which are due, and what follows from a result."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from app.audit.service import record
from app.core.actors import SYSTEM_JOB
from app.core.clock import utcnow
from app.core.db import queries, retries, tenancy
from app.core.db.statements import Statement
from app.core.errors import NotFound
from app.domains.models import CheckError, Domain, DomainState
from app.domains.service import DomainTaken

TOGETHER = 50  # domains that are looked up at a time
LEASE = timedelta(minutes=5)  # after which a lost check is repeated
MINUTE, HOUR, WEEK = timedelta(minutes=1), timedelta(hours=1), timedelta(weeks=1)
TRIED_AFTER = (
    MINUTE, 5 * MINUTE, 30 * MINUTE, *(HOUR * hours for hours in (2, 6, 12, 24, 48, 72)),
)  # fmt: skip
"""When a domain that is not verified is checked, since its creation or the last request."""
LAPSES_AFTER = 2 * WEEK
"""After a verified domain's first failed check; its third one is then due."""
ACTIONS = {
    DomainState.VERIFIED: "domain.verified",
    DomainState.FAILED: "domain.failed",
    DomainState.LAPSED: "domain.lapsed",
}
CONFLICTS = {"uq_domains_verified_name": DomainTaken}

# The others are left to another worker.
TAKE_DUE = Statement(
    "domains.take_due",
    "WITH due AS MATERIALIZED (SELECT id FROM domains WHERE next_check_at <= now()"
    "  ORDER BY next_check_at LIMIT :most FOR UPDATE SKIP LOCKED)"
    " UPDATE domains SET next_check_at = :until FROM due WHERE domains.id = due.id"
    " RETURNING domains.id, record_name, record_value",
)


def take_due() -> Sequence[Any]:
    """The id and the record of domains whose check is due, at most :data:`TOGETHER`.

    No other worker gets them before the :data:`LEASE` ends.
    """
    with tenancy.platform_transaction():
        return TAKE_DUE.all(until=utcnow() + LEASE, most=TOGETHER)


def store(domain_id: UUID, error: CheckError | None) -> None:
    """Store the result of a check, in a transaction of its own; nothing for a deleted domain."""
    with suppress(NotFound):
        try:
            retries.run(partial(_store, domain_id, error))
        except DomainTaken:
            retries.run(partial(_store, domain_id, CheckError.DOMAIN_TAKEN))


def _store(domain_id: UUID, error: CheckError | None) -> None:
    tenancy.enter(tenancy.PLATFORM)
    domain, _ = queries.lock_with(Domain, domain_id)
    values = after_check(domain, error, utcnow())
    changed, change = queries.update_row(Domain, domain, values, conflicts=CONFLICTS)
    if change is not None and "state" in change.after:
        record(ACTIONS[DomainState(changed.state)], changed, change, actor=SYSTEM_JOB)


def after_check(domain: Domain, error: CheckError | None, now: datetime) -> dict[str, object]:
    """The values of a domain after a check at ``now`` with this result."""
    is_verified = domain.state == DomainState.VERIFIED
    if error is None:
        return {
            "state": DomainState.VERIFIED.value,
            "error": None,
            "checked_at": now,
            "verified_at": domain.verified_at if is_verified else now,
            "unconfirmed_since": None,
            "next_check_at": now + WEEK,
        }
    since = domain.unconfirmed_since or now
    if is_verified:
        next_check, ended = now + WEEK, DomainState.LAPSED
        is_over = now - since >= LAPSES_AFTER
    else:
        next_check = next((since + after for after in TRIED_AFTER if since + after > now), now)
        ended, is_over = DomainState.FAILED, next_check == now
    return {
        "state": ended.value if is_over else domain.state,
        "error": error.value,
        "checked_at": now,
        "unconfirmed_since": since,
        "next_check_at": None if is_over else next_check,
    }

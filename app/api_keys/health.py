"""API keys that expire soon."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from app.core.db.statements import Statement

EXPIRING_DAYS = 14
COUNT_EXPIRING = Statement(
    "api_keys.count_expiring",
    "SELECT count(*) FROM api_keys WHERE revoked_at IS NULL"
    " AND expires_at BETWEEN now() AND now() + :days * interval '1 day'",
)


def metrics() -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "api_keys_expiring",
        f"API keys that expire within {EXPIRING_DAYS} days.",
        COUNT_EXPIRING.scalar(days=EXPIRING_DAYS),
    )

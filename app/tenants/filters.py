"""Filters of the list of tenants that read other tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import and_, text

from app.core.db.list_conditions import Condition
from app.search.filters import take_q
from app.search.models import EntityType

# The tenants that have used up a limit. Counting up to it sets `announced`; the limit in force may be
# another one meanwhile. Seats are left out: that all are taken is normal.
AT_LIMIT = (
    "SELECT DISTINCT r.tenant_id FROM (SELECT tenant_id, feature FROM ("
    "SELECT * FROM usage_counters WHERE announced >= 100 AND period_end > now() UNION ALL"
    " SELECT * FROM usage_counters WHERE announced >= 100 AND period_end IS NULL) c"
    " WHERE feature <> 'seats' LIMIT 1001) r"
    " CROSS JOIN LATERAL tenant_usage(r.tenant_id, r.feature) u"
    " WHERE u.most > -1 AND u.used >= u.most"
)
ENDING = "SELECT tenant_id FROM plan_assignments WHERE until > now() AND until < :plan_ends_before"
HAS_ENDING_PLAN = and_(text(f"tenants.id IN ({ENDING})"))
IS_AT_LIMIT = {
    True: and_(text(f"tenants.id IN ({AT_LIMIT})")),
    False: and_(text(f"tenants.id NOT IN ({AT_LIMIT})")),
}


def take_conditions(filters: dict[str, Any]) -> Iterator[Condition]:
    """The conditions of these filters, which are taken out. Raises Invalid for ``q``."""
    yield from take_q(filters, EntityType.TENANT, "tenants.id, tenants.id")
    if "plan_ends_before" in filters:
        yield Condition(HAS_ENDING_PLAN, {"plan_ends_before": filters.pop("plan_ends_before")})
    if "is_at_limit" in filters:
        yield Condition(IS_AT_LIMIT[filters.pop("is_at_limit")], {})

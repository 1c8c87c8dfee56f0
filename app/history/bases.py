"""Bases: all rows of a tenant as of a position, so that reads of the past are not long.

A read begins with the newest base before its moment. The SQL functions that write bases say when
one is due: at the end of rows that are older than their order, and after :data:`CHANGES` changes.
"""

from __future__ import annotations

from uuid import UUID

from app.core.db import tenancy
from app.core.db.statements import Statement
from app.core.jobs.queues import logged_errors

CHANGES = 10_000
FIND_END = Statement("past_bases.find_end", "SELECT max(ordered_position) FROM event_feed")
FIND_TENANTS = Statement(
    "past_bases.find_tenants",
    "SELECT DISTINCT tenant_id FROM audit_positions WHERE position < :end"
    " AND position >= (SELECT based_position FROM event_feed)",
    prepare=False,
)
ALLOW_TIME = Statement(
    "past_bases.allow_time", "SELECT set_config('statement_timeout', '10min', true)"
)
ADD = Statement("past_bases.add", "SELECT past.add_base(:tenant_id, :changes)")
MOVE_ON = Statement("past_bases.move_on", "UPDATE event_feed SET based_position = :end")


def add_due() -> None:
    """Write the due bases of the tenants that have changed since the last run."""
    with tenancy.platform_transaction():
        ALLOW_TIME.execute()
        end = FIND_END.scalar()
        tenants = FIND_TENANTS.scalars(end=end)
    for tenant_id in tenants:
        with logged_errors("base_not_written", tenant_id=str(tenant_id)):
            while add(tenant_id):
                pass
    if tenants:
        with tenancy.platform_transaction():
            MOVE_ON.execute(end=end)


def add(tenant_id: UUID, changes: int = CHANGES) -> bool:
    """Write the tenant's next base if there are so many changes since the last one."""
    with tenancy.platform_transaction():
        ALLOW_TIME.execute()
        return bool(ADD.scalar(tenant_id=tenant_id, changes=changes))

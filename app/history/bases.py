"""Bases: all rows of a tenant as of a position, so that reads of the past are not long.

A read begins with the newest base before its moment. The SQL functions that write bases say when
one is due. A tenant with fewer than :data:`CHANGES` changes has none.
"""

from __future__ import annotations

from uuid import UUID

from app.core.db import tenancy
from app.core.db.statements import Statement

CHANGES = 10_000
SLICE = 10_000  # positions; the tenants with changes there are looked at together
FIND_SLICE = Statement(
    "past_bases.find_slice",
    "SELECT based_position AS start, least(based_position + :slice, ordered_position) AS stop"
    " FROM event_feed",
)
FIND_TENANTS = Statement(
    "past_bases.find_tenants",
    "SELECT DISTINCT tenant_id FROM audit_positions WHERE position >= :start AND position < :stop",
    prepare=False,
)
ALLOW_TIME = Statement(
    "past_bases.allow_time", "SELECT set_config('statement_timeout', '10min', true)"
)
ADD = Statement("past_bases.add", "SELECT past.add_base(:tenant_id, :changes)")
MOVE_ON = Statement("past_bases.move_on", "UPDATE event_feed SET based_position = :stop")


def add_due() -> None:
    """Write the bases that are due.

    It looks at each change once, so it can be stopped at any moment and continues there.
    """
    while True:
        with tenancy.platform_transaction():
            found = FIND_SLICE.first(slice=SLICE)
            if found is None or found.start == found.stop:
                return
            tenants = FIND_TENANTS.scalars(start=found.start, stop=found.stop)
        for tenant_id in tenants:
            while add(tenant_id):
                pass
        with tenancy.platform_transaction():
            MOVE_ON.execute(stop=found.stop)


def add(tenant_id: UUID, changes: int = CHANGES) -> bool:
    """Write the tenant's next base if there are so many changes since the last one."""
    with tenancy.platform_transaction():
        ALLOW_TIME.execute()
        return bool(ADD.scalar(tenant_id=tenant_id, changes=changes))

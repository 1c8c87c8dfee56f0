"""Retention of tables from which the application's role may not delete.

The owner's functions do it for the role (``migrations/functions``). They refuse to remove what is
younger than 31 days.
"""

from __future__ import annotations

import logging

from psycopg2.errors import LockNotAvailable
from sqlalchemy import bindparam, func, select

from app.audit.service import add_event
from app.config import current_config
from app.core.actors import SYSTEM_JOB
from app.core.db import tenancy
from app.core.db.batches import in_batches
from app.core.db.queries import Change
from app.core.db.statements import Statement

log = logging.getLogger(__name__)

ADD_PARTITIONS = Statement("audit_events.add_partitions", select(func.add_audit_partitions()))
DROP_PARTITION = Statement(
    "audit_events.drop_partition",
    select(func.drop_audit_partition(bindparam("days"))),
    prepare=False,
)
DELETE_OLD_ROWS = Statement(
    "operations.delete_old_rows",
    select(func.delete_old_rows(bindparam("wanted_table"), bindparam("days"), bindparam("limit"))),
    prepare=False,
)


def keep_partitions() -> None:
    """Add the audit trail's partitions of this month and the next three; drop the old ones.

    A partition is dropped when all its rows are older than ``AUDIT_DAYS``, and an audit row says
    so. Where a lock is not free within 0.2 s, the rest is left to the next run. Old rows that are in
    no partition of a month are deleted.
    """
    days = current_config().audit_days
    delete_old_rows("audit_events", days)
    try:
        with tenancy.platform_transaction():
            ADD_PARTITIONS.execute()
        while _drop_partition(days):
            pass
    except LockNotAvailable:
        log.warning("partitions_not_changed")


def _drop_partition(days: int) -> str | None:
    """Drop the oldest partition if all its rows are older than so many days; its name."""
    with tenancy.platform_transaction():
        name: str | None = DROP_PARTITION.scalar(days=days)
        if name is not None:
            add_event(
                "audit_events.dropped",
                target_id=name,
                tenant_id=None,
                change=Change({}, {"audit_days": days}),
                actor=SYSTEM_JOB,
            )
    return name


def delete_old_rows(table: str, days: int) -> int:
    """Delete the rows of a table that are older than so many days; returns their number."""
    return in_batches(
        lambda limit: DELETE_OLD_ROWS.scalar(wanted_table=table, days=days, limit=limit)
    )

"""The SQL statements of holds and leases."""

from __future__ import annotations

from sqlalchemy import Uuid, and_, bindparam, case, func, or_, select

from app.core.db.statements import Statement
from app.usage.models import HoldState, UsageHold

HOLD = Statement(
    "usage_holds.hold",
    "SELECT fault, is_allowed, most, policy, used, held, ends, affords, (hold).*"
    " FROM hold_usage(CAST(:tenant_id AS uuid), :feature, CAST(:id AS uuid), :kind, :amount, :seconds,"
    " CAST(:digest AS uuid), :reference)",
)
SETTLE = Statement(
    "usage_holds.settle",
    "SELECT fault, crossed, overrun, most, policy, used, held, ends, affords, (hold).*"
    " FROM settle_hold(CAST(:tenant_id AS uuid), CAST(:id AS uuid), :kind, :state, :total, :rest, :seconds)",
)
EXTEND = Statement(
    "usage_holds.extend",
    "SELECT * FROM extend_hold(CAST(:tenant_id AS uuid), CAST(:id AS uuid), :seconds)",
)

# A hold has ended at `expires_at`, also before it is swept.
_IS_OPEN = UsageHold.state == HoldState.OPEN
_IS_OVER = and_(_IS_OPEN, UsageHold.expires_at <= func.now())
NOT_SHOWN = ("digest", "state", "ended_at")
SHOWN = (
    case((_IS_OVER, HoldState.EXPIRED), else_=UsageHold.state).label("state"),
    case((_IS_OVER, UsageHold.expires_at), else_=UsageHold.ended_at).label("ended_at"),
)
# Each condition names stored states, whose indexes are partial.
IN_STATE = {
    HoldState.OPEN: and_(_IS_OPEN, UsageHold.expires_at > func.now()),
    HoldState.SETTLED: UsageHold.state == HoldState.SETTLED,
    HoldState.RELEASED: UsageHold.state == HoldState.RELEASED,
    HoldState.EXPIRED: or_(UsageHold.state == HoldState.EXPIRED, _IS_OVER),
}
GET = Statement(
    "usage_holds.get",
    select(*(column for column in UsageHold.__table__.c if column.name not in NOT_SHOWN), *SHOWN)
    .where(UsageHold.id == bindparam("id"))
    .where(
        UsageHold.tenant_id
        == func.coalesce(bindparam("tenant_id", type_=Uuid), UsageHold.tenant_id)
    ),
)

# The counters are locked before their holds, as all other functions do. Only the holder of a lock
# sweeps.
SWEEP = Statement(
    "usage_holds.sweep",
    "WITH due AS MATERIALIZED (SELECT c.tenant_id, c.feature, c.period_start FROM usage_counters c"
    " JOIN (SELECT DISTINCT tenant_id, feature, period_start FROM usage_holds"
    " WHERE state = 'open' AND expires_at <= now() LIMIT :count) h"
    " USING (tenant_id, feature, period_start) FOR NO KEY UPDATE OF c SKIP LOCKED)"
    " SELECT sweep_holds(tenant_id, feature, period_start) FROM due",
    prepare=False,
)

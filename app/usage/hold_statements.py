"""The SQL statements of holds and leases."""

from __future__ import annotations

from sqlalchemy import Uuid, and_, bindparam, case, func, or_, select

from app.core.db.list_conditions import Condition
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
# What a hold took of credits is locked before the hold, as when it is settled. If it was given back
# meanwhile, because the hold had expired, the hold is not extended.
EXTEND = Statement(
    "usage_holds.extend",
    "WITH taken AS MATERIALIZED (SELECT c.lot_id FROM usage_holds h"
    " JOIN credit_holds c ON c.tenant_id = h.tenant_id AND c.hold_id = h.id"
    " WHERE h.id = CAST(:id AS uuid)"
    " AND h.tenant_id = coalesce(CAST(:tenant_id AS uuid), h.tenant_id)"
    " ORDER BY c.lot_id FOR UPDATE OF c),"
    " extended AS (UPDATE usage_holds SET expires_at = now() + :seconds * interval '1 second'"
    " WHERE id = CAST(:id AS uuid) AND tenant_id = coalesce(CAST(:tenant_id AS uuid), tenant_id)"
    " AND kind = 'hold' AND state = 'open' AND expires_at > now()"
    " AND (credits IS NULL OR (SELECT count(*) FROM taken) > 0) RETURNING *),"
    " renewed AS (UPDATE credit_holds c SET expires_at = e.expires_at FROM extended e"
    " WHERE c.tenant_id = e.tenant_id AND c.hold_id = e.id) SELECT * FROM extended",
)

# A hold has ended at `expires_at`, also before it is swept.
_IS_OVER = and_(UsageHold.state == HoldState.OPEN, UsageHold.expires_at <= func.now())
NOT_SHOWN = ("digest", "state", "ended_at")
SHOWN = (
    case((_IS_OVER, HoldState.EXPIRED), else_=UsageHold.state).label("state"),
    case((_IS_OVER, UsageHold.expires_at), else_=UsageHold.ended_at).label("ended_at"),
)
IN_STATE = {
    HoldState.OPEN: Condition(
        and_(UsageHold.state == HoldState.OPEN, UsageHold.expires_at > func.now()), {}
    ),
    HoldState.SETTLED: Condition(UsageHold.state == HoldState.SETTLED, {}),
    HoldState.RELEASED: Condition(UsageHold.state == HoldState.RELEASED, {}),
    HoldState.EXPIRED: Condition(or_(UsageHold.state == HoldState.EXPIRED, _IS_OVER), {}),
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

# The counters are locked before their holds, as all other functions do. Who holds a lock sweeps.
SWEEP = Statement(
    "usage_holds.sweep",
    "WITH due AS MATERIALIZED (SELECT c.tenant_id, c.feature, c.period_start FROM usage_counters c"
    " JOIN (SELECT DISTINCT tenant_id, feature, period_start FROM usage_holds"
    " WHERE state = 'open' AND expires_at <= now() LIMIT :count) h"
    " USING (tenant_id, feature, period_start) FOR NO KEY UPDATE OF c SKIP LOCKED)"
    " SELECT sweep_holds(tenant_id, feature, period_start) FROM due",
    prepare=False,
)
DELETE_OLD_HOLDS = Statement(
    "usage_holds.delete_old",
    "DELETE FROM usage_holds WHERE ctid = ANY (ARRAY(SELECT ctid FROM usage_holds"
    " WHERE ended_at < now() - interval '30 days' ORDER BY ended_at LIMIT :count))",
)

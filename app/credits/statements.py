"""The SQL statements of credits. They call the functions in ``migrations/functions``."""

from __future__ import annotations

from sqlalchemy import bindparam, select

from app.core.db.statements import Statement
from app.credits.models import CreditLot

REFRESH = Statement(
    "credits.refresh",
    "SELECT * FROM refresh_tenant_credits(CAST(:tenant_id AS uuid), CAST(:feature AS text))",
)
GRANT = Statement(
    "credits.grant",
    "SELECT * FROM grant_lot(CAST(:tenant_id AS uuid), :feature, :amount, :source,"
    " :priority, CAST(:starts_at AS timestamptz), CAST(:expires_at AS timestamptz),"
    " CAST(:reference AS text))",
)
POST = Statement(
    "credits.post",
    "SELECT post_credits(CAST(:tenant_id AS uuid), CAST(:lot_id AS uuid), :kind, :amount, NULL,"
    " :reason)",
)
CROSS = Statement(
    "credits.cross",
    "SELECT f.feature, 'hard' AS policy, c.* FROM unnest(CAST(:features AS text[])) AS f (feature)"
    " CROSS JOIN LATERAL cross_credits(CAST(:tenant_id AS uuid), f.feature) c",
)
FIND_LOT = Statement("credit_lots.find", select(CreditLot).where(CreditLot.id == bindparam("id")))

LIST_LOTS = Statement(
    "credit_lots.list_at",
    "SELECT * FROM credit_lots_at(CAST(:tenant_id AS uuid), CAST(:feature AS text),"
    " CAST(:at AS timestamptz), :shown)",
    prepare=False,
)
LIST_BALANCES = Statement(
    "credit_balances.list",
    "SELECT feature FROM credit_balances WHERE tenant_id = CAST(:tenant_id AS uuid)"
    ' AND feature = coalesce(CAST(:feature AS text), feature) ORDER BY feature COLLATE "C"',
)
LIST_ENTRIES = Statement(
    "credit_entries.list",
    "SELECT * FROM credit_entries WHERE tenant_id = CAST(:tenant_id AS uuid) AND number < :below"
    " AND (CAST(:feature AS text) IS NULL OR feature = :feature)"
    " ORDER BY number DESC LIMIT :limit",
    prepare=False,
)
LIST_DUE = Statement(
    "credit_balances.list_due",
    "SELECT tenant_id, feature FROM credit_balances WHERE due_at <= now()"
    " ORDER BY due_at LIMIT :limit",
)
TAKE_EXPIRED = Statement(
    "credit_lots.take_expired",
    "WITH found AS MATERIALIZED (SELECT tenant_id, id, untold AS amount FROM credit_lots"
    " WHERE untold > 0 LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED)"
    " UPDATE credit_lots l SET untold = 0 FROM found"
    " WHERE l.tenant_id = found.tenant_id AND l.id = found.id RETURNING l.*, found.amount",
)

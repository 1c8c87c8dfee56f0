"""What always holds of the ledger of credits, and time that passes for it."""

from tests import database
from tests.usage.days import pass_days


def assert_balanced():
    for entry in database.query(
        "SELECT b.feature, b.balance, coalesce(sum(l.remaining), 0) AS lots,"
        " (SELECT coalesce(sum(e.amount), 0) FROM credit_entries e"
        " WHERE e.tenant_id = b.tenant_id AND e.feature = b.feature) AS entries,"
        " (SELECT e.balance FROM credit_entries e WHERE e.tenant_id = b.tenant_id"
        " AND e.feature = b.feature ORDER BY e.number DESC LIMIT 1) AS last"
        " FROM credit_balances b LEFT JOIN credit_lots l USING (tenant_id, feature)"
        " GROUP BY b.tenant_id, b.feature, b.balance"
    ):
        assert entry.balance == entry.lots == entry.entries == (entry.last or 0)
    for lot in database.query(
        "SELECT l.granted, l.remaining, l.spent, (SELECT coalesce(sum(h.amount), 0)"
        " FROM credit_holds h WHERE h.lot_id = l.id) AS held, (SELECT -coalesce(sum(e.amount), 0)"
        " FROM credit_entries e WHERE e.lot_id = l.id AND e.kind IN ('expire', 'revoke')) AS lost"
        " FROM credit_lots l"
    ):
        assert lot.granted == lot.remaining + lot.spent + lot.held + lot.lost


def turn(days=40):
    """Move the periods, and the lots of the plan, into the past."""
    pass_days(days)
    database.execute(
        "UPDATE credit_lots SET period_start = period_start - :days * interval '1 day', expires_at ="
        " expires_at - :days * interval '1 day', starts_at = starts_at - :days * interval '1 day'"
        " WHERE source = 'plan'",
        days=days,
    )
    database.execute("UPDATE credit_balances SET due_at = now()")


def expire_lot(lot):
    database.execute("UPDATE credit_lots SET expires_at = now() WHERE id = :lot", lot=lot)
    database.execute("UPDATE credit_balances SET due_at = now()")


def expire_holds():
    database.execute("UPDATE usage_holds SET expires_at = now() WHERE state = 'open'")
    database.execute("UPDATE credit_holds SET expires_at = now()")

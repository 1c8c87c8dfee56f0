"""Credits: balances, their lots, the ledger, what holds have taken; the functions of holds and credits."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.replaceable import install
from migrations.security import APPEND_ONLY, isolate

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None

MOMENT = postgresql.TIMESTAMP(timezone=True)
TABLES = ("credit_holds", "credit_entries", "credit_lots", "credit_balances")
REPLACED = (
    "tenant_limits(uuid, text)",
    "tenant_usage(uuid, text)",
    "lock_usage(uuid, text, text)",
    "consume_usage(uuid, text[], bigint[], timestamptz[], uuid[], boolean)",
)


def upgrade():
    op.create_table(
        "credit_balances",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("due_at", MOMENT, nullable=True),
        sa.Column("period_start", MOMENT, nullable=True),
        sa.Column("granted_at", MOMENT, nullable=True),
        sa.Column("balance", sa.BigInteger(), nullable=False),
        sa.Column("last_grant", sa.BigInteger(), nullable=True),
        sa.Column("granted_balance", sa.BigInteger(), nullable=True),
        sa.Column("feature", sa.Text(), nullable=False),
        sa.Column("told", postgresql.JSONB(), nullable=False),
        sa.CheckConstraint("balance >= 0", name=op.f("ck_credit_balances_balance")),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.id"], name=op.f("fk_credit_balances_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "feature", name=op.f("pk_credit_balances")),
    )
    op.create_index(
        op.f("ix_credit_balances_due_at"),
        "credit_balances",
        ["due_at"],
        postgresql_where=sa.text("due_at IS NOT NULL"),
    )
    op.create_table(
        "credit_lots",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("starts_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=True),
        sa.Column("period_start", MOMENT, nullable=True),
        sa.Column("granted", sa.BigInteger(), nullable=False),
        sa.Column("remaining", sa.BigInteger(), nullable=False),
        sa.Column("spent", sa.BigInteger(), nullable=False),
        sa.Column("untold", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("priority", sa.BigInteger(), nullable=False),
        sa.Column("feature", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("reference", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "remaining BETWEEN 0 AND granted", name=op.f("ck_credit_lots_remaining")
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.id"], name=op.f("fk_credit_lots_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_credit_lots")),
    )
    op.create_index(op.f("ix_credit_lots_id"), "credit_lots", ["id"])
    op.create_index(
        op.f("ix_credit_lots_tenant_id_created_at_id"),
        "credit_lots",
        ["tenant_id", "created_at", "id"],
    )
    op.create_index(
        "ix_credit_lots_ends",
        "credit_lots",
        ["tenant_id", "feature", sa.text("coalesce(expires_at, 'infinity'::timestamptz)")],
    )
    op.create_index(
        op.f("ix_credit_lots_untold"),
        "credit_lots",
        ["tenant_id"],
        postgresql_where=sa.text("untold > 0"),
    )
    op.create_table(
        "credit_entries",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("lot_id", sa.Uuid(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("remaining", sa.BigInteger(), nullable=False),
        sa.Column("balance", sa.BigInteger(), nullable=False),
        sa.Column("hold_id", sa.Uuid(), nullable=True),
        sa.Column("feature", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id", "lot_id"],
            ["credit_lots.tenant_id", "credit_lots.id"],
            name=op.f("fk_credit_entries_tenant_id_lot_id"),
        ),
        sa.PrimaryKeyConstraint("tenant_id", "number", name=op.f("pk_credit_entries")),
    )
    for columns in (["feature", "number"], ["lot_id", "at", "number"]):
        name = op.f(f"ix_credit_entries_tenant_id_{'_'.join(columns)}")
        op.create_index(name, "credit_entries", ["tenant_id", *columns])
    op.create_table(
        "credit_holds",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("hold_id", sa.Uuid(), nullable=False),
        sa.Column("lot_id", sa.Uuid(), nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("feature", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "lot_id"],
            ["credit_lots.tenant_id", "credit_lots.id"],
            name=op.f("fk_credit_holds_tenant_id_lot_id"),
        ),
        sa.PrimaryKeyConstraint("tenant_id", "hold_id", "lot_id", name=op.f("pk_credit_holds")),
    )
    op.create_index(
        op.f("ix_credit_holds_tenant_id_feature_expires_at"),
        "credit_holds",
        ["tenant_id", "feature", "expires_at"],
    )
    for table in reversed(TABLES):
        isolate(table, *([APPEND_ONLY] if table == "credit_entries" else []))
    op.execute("ALTER TABLE usage_holds ADD COLUMN credits text, ADD COLUMN rate bigint")
    for signature in REPLACED:  # a replaced function keeps its columns; its callers stay correct
        op.execute(f"-- squawk-ignore ban-drop-function\nDROP FUNCTION {signature}")
    install(revision, "sweep_holds", "count_usage", "lock_usage")
    install(revision, "tenant_limits", "tenant_credits", "post_credits", "grant_credits")
    install(revision, "burn_credits", "settle_credits", "refresh_credits", "cross_credits")
    install(revision, "refresh_tenant_credits", "grant_lot", "credit_lots_at")
    install(revision, "tenant_usage", "consume_usage")
    install(revision, "hold_usage", "extend_hold", "lock_hold", "counted_part", "settle_hold")


def downgrade():
    for signature in (
        "settle_hold(uuid, uuid, text, text, bigint, bigint, integer)",
        "counted_part(text, boolean, bigint, bigint, bigint, bigint)",
        "lock_hold(uuid, uuid, text)",
        "extend_hold(uuid, uuid, integer)",
        "hold_usage(uuid, text, uuid, text, bigint, integer, uuid, text)",
        "count_usage(uuid, text, timestamptz, bigint, bigint, bigint, smallint, bigint, smallint[])",
        "sweep_holds(uuid, text, timestamptz)",
        "credit_lots_at(uuid, text, timestamptz, integer)",
        "grant_lot(uuid, text, bigint, text, bigint, timestamptz, timestamptz, text)",
        "refresh_tenant_credits(uuid, text)",
        "cross_credits(uuid, text)",
        "refresh_credits(uuid, text)",
        "settle_credits(uuid, text, uuid, bigint)",
        "burn_credits(uuid, text, bigint, uuid, timestamptz)",
        "grant_credits(uuid, text, bigint, text, bigint, timestamptz, timestamptz, timestamptz, text)",
        "post_credits(uuid, uuid, text, bigint, uuid, text)",
        "tenant_credits(uuid, text)",
        *REPLACED,
    ):
        op.execute(f"DROP FUNCTION {signature}")
    install("0035", "tenant_limits")
    op.execute("ALTER TABLE usage_holds DROP COLUMN credits, DROP COLUMN rate")
    install("0022", "consume_usage")
    install("0015", "lock_usage", "tenant_usage")
    for table in TABLES:
        op.drop_table(table)

"""Deleting tenants and erasing users: what is to be deleted, tombstones, functions with more rights."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.replaceable import install
from migrations.security import grant, grant_function, isolate

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

PLAN_INDEX = "ix_subscriptions_plan_name"

# After the row, so that it also sees a deletion that commits while the row waits for its unique key.
TRIGGER = """
CREATE TRIGGER tr_tenants_deleted_organization AFTER INSERT OR UPDATE OF idp_org_id ON tenants
FOR EACH ROW EXECUTE FUNCTION refuse_deleted_organization()
"""

FUNCTIONS = (
    "delete_tenant_batch(uuid, text, integer)",
    "delete_email_events(uuid, text[], integer)",
    "redact_email_event(uuid, json)",
    "redact_audit_event(uuid, uuid, json)",
)


def upgrade():
    with op.get_context().autocommit_block():
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {PLAN_INDEX}")
        op.execute(
            f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {PLAN_INDEX}"
            " ON subscriptions (plan_name) WHERE status_class <> 'ended'"
        )
    op.add_column(
        "tenants", sa.Column("deletes_at", postgresql.TIMESTAMP(timezone=True), nullable=True)
    )
    op.create_table(
        "deleted_organizations",
        sa.Column("idp_org_id", sa.Text(), nullable=False),
        sa.Column("deleted_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("idp_org_id", name=op.f("pk_deleted_organizations")),
    )
    op.create_table(
        "tenant_deletions",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("requested_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("requested_by", sa.Text(), nullable=False),
        sa.Column("worked_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("last_moment", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("last_id", sa.Uuid(), nullable=True),
        sa.Column("deleted_rows", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_tenant_deletions_tenant_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", name=op.f("pk_tenant_deletions")),
    )
    op.create_index(op.f("ix_tenant_deletions_worked_at"), "tenant_deletions", ["worked_at"])
    op.create_table(
        "user_erasures",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("requested_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("requested_by", sa.Text(), nullable=False),
        sa.Column("worked_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("is_everywhere", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["users.tenant_id", "users.id"],
            name=op.f("fk_user_erasures_tenant_id_user_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "user_id", name=op.f("pk_user_erasures")),
    )
    op.create_index(op.f("ix_user_erasures_worked_at"), "user_erasures", ["worked_at"])
    grant("deleted_organizations")
    isolate("tenant_deletions")
    isolate("user_erasures")
    install(revision, "refuse_deleted_organization", "is_deletion_due", "may_erase")
    op.execute(TRIGGER)
    install(revision, "delete_tenant_batch", "delete_email_events")
    install(revision, "redact_email_event", "redact_audit_event")
    for function in FUNCTIONS:
        grant_function(function)


def downgrade():
    for function in (*FUNCTIONS, "may_erase(uuid)", "is_deletion_due(uuid)"):
        op.execute(f"DROP FUNCTION {function}")
    op.execute("DROP TRIGGER tr_tenants_deleted_organization ON tenants")
    op.execute("DROP FUNCTION refuse_deleted_organization()")
    op.drop_table("user_erasures")
    op.drop_table("tenant_deletions")
    op.drop_table("deleted_organizations")
    op.drop_column("tenants", "deletes_at")
    op.drop_index(PLAN_INDEX, "subscriptions")

"""Plans that the platform assigns, overrides that go along to the next plan, names of plans."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.replaceable import install
from migrations.security import isolate

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade():
    op.add_column(
        "plan_presets", sa.Column("display_name", sa.Text(), server_default="", nullable=False)
    )
    op.add_column(
        "plan_presets",
        sa.Column("has_new_name", sa.Boolean(), server_default="false", nullable=False),
    )
    op.add_column(
        "feature_overrides",
        sa.Column("carry_over", sa.Boolean(), server_default="false", nullable=False),
    )
    op.create_table(
        "plan_assignments",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("until", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("ending_announced_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("plan_name", sa.Text(), nullable=False),
        sa.Column("next_plan_name", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.id"], name=op.f("fk_plan_assignments_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", name=op.f("pk_plan_assignments")),
    )
    op.create_index(op.f("ix_plan_assignments_until"), "plan_assignments", ["until"])
    op.create_index(
        op.f("ix_plan_assignments_next_plan_name"), "plan_assignments", ["next_plan_name"]
    )
    isolate("plan_assignments")
    install(revision, "have_same_flag", "follow_plan", "tenant_limits", "usage_period")


def downgrade():
    install("0015", "usage_period", "tenant_limits")
    op.execute("DROP FUNCTION follow_plan(uuid, text, timestamptz)")
    op.execute("DROP FUNCTION have_same_flag(json, json, text)")
    op.drop_table("plan_assignments")
    op.drop_column("feature_overrides", "carry_over")
    op.drop_column("plan_presets", "has_new_name")
    op.drop_column("plan_presets", "display_name")

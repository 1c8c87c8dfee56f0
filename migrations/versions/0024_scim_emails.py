"""The addresses of SCIM's users, so that filters find them by index."""

import sqlalchemy as sa
from alembic import op

from migrations.security import isolate

revision = "0024"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade():
    op.create_table(
        "scim_emails",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("position", sa.SmallInteger(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("display", sa.Text(), nullable=False),
        sa.Column("is_primary", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["scim_users.tenant_id", "scim_users.id"],
            name=op.f("fk_scim_emails_tenant_id_user_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "user_id", "position", name=op.f("pk_scim_emails")),
    )
    op.create_index(op.f("ix_scim_emails_value"), "scim_emails", ["value"], postgresql_using="hash")
    isolate("scim_emails")
    op.execute("SET LOCAL app.platform = 'on'")  # row-level security also applies to the owner
    op.execute(
        "INSERT INTO scim_emails (tenant_id, user_id, position, value, type, display, is_primary)"
        " SELECT u.tenant_id, u.id, e.position - 1, lower(coalesce(e.email ->> 'value', '')),"
        " lower(coalesce(e.email ->> 'type', '')), lower(coalesce(e.email ->> 'display', '')),"
        " coalesce(e.email ->> 'primary' = 'true', false)"
        " FROM scim_users u CROSS JOIN LATERAL json_array_elements(u.attributes -> 'emails')"
        " WITH ORDINALITY AS e (email, position) WHERE e.position <= 100"
    )


def downgrade():
    op.drop_table("scim_emails")

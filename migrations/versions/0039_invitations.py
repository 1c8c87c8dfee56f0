"""Invitations, and their seats; the verified e-mail address of a session of the console."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.replaceable import install
from migrations.security import isolate

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None

MOMENT = postgresql.TIMESTAMP(timezone=True)


def upgrade():
    op.create_table(
        "invitations",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("created_by_user_id", sa.Text(), nullable=False),
        sa.Column("updated_by_user_id", sa.Text(), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("email_key", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("acts_as", sa.Text(), nullable=False),
        sa.Column("meta_data", postgresql.JSON(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("idp_invitation_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=True),
        sa.Column("rotation", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.Column("accepted_at", MOMENT, nullable=True),
        sa.Column("revoked_at", MOMENT, nullable=True),
        sa.Column("user_id", sa.Uuid(), nullable=True),
        sa.Column("mail_at", MOMENT, nullable=True),
        sa.Column("mails", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.id"], name=op.f("fk_invitations_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_invitations")),
    )
    for columns in (
        ["id"],
        ["digest"],
        ["expires_at"],
        ["tenant_id", "created_at", "id"],
        ["created_at", "id"],
        ["email_key", "tenant_id"],
    ):
        op.create_index(op.f(f"ix_invitations_{'_'.join(columns)}"), "invitations", columns)
    op.create_index(
        "ix_invitations_open",
        "invitations",
        ["tenant_id", "expires_at"],
        postgresql_where=sa.text("accepted_at IS NULL AND revoked_at IS NULL"),
    )
    op.create_index(
        "uq_invitations_tenant_id_source_idp_invitation_id",
        "invitations",
        ["tenant_id", "source", "idp_invitation_id"],
        unique=True,
        postgresql_where=sa.text("idp_invitation_id <> ''"),
    )
    op.create_index(
        op.f("ix_invitations_tenant_id_user_id"),
        "invitations",
        ["tenant_id", "user_id"],
        postgresql_where=sa.text("user_id IS NOT NULL"),
    )
    op.create_index(
        op.f("ix_invitations_mail_at"),
        "invitations",
        ["mail_at"],
        postgresql_where=sa.text("mail_at IS NOT NULL"),
    )
    op.create_index(
        op.f("ix_invitations_updated_at"),
        "invitations",
        ["updated_at"],
        postgresql_using="brin",
        postgresql_with={"pages_per_range": 16, "autosummarize": True},
    )
    isolate("invitations")
    op.add_column("console_sessions", sa.Column("email", sa.Text(), nullable=True))
    install(revision, "count_invited_seats", "count_seats", "lock_seat_limit")


def downgrade():
    op.drop_column("console_sessions", "email")
    install("0022", "lock_seat_limit")
    install("0015", "count_seats")
    op.execute("DROP FUNCTION count_invited_seats(uuid, uuid)")
    op.drop_table("invitations")

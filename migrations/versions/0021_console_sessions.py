"""The console's sessions, and tickets: secrets that can be used once, such as sign-in links."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.security import grant

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

MOMENT = postgresql.TIMESTAMP(timezone=True)


def upgrade():
    op.create_table(
        "console_sessions",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("org_id", sa.Text(), nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("last_used_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_console_sessions")),
    )
    op.create_table(
        "console_tickets",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=True),
        sa.Column("org_id", sa.Text(), nullable=True),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_console_tickets")),
    )
    grant("console_sessions")
    grant("console_tickets")


def downgrade():
    op.drop_table("console_tickets")
    op.drop_table("console_sessions")

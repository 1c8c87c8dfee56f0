"""Permissions of assigned roles in requests, and owners by assignment."""

from alembic import op

from migrations.replaceable import install

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None


def drop():
    """A replaced function cannot have further columns."""
    for function in ("authenticate_user(text, text)", "authenticate_key(text)"):
        op.execute(f"-- squawk-ignore ban-drop-function\nDROP FUNCTION {function}")


def upgrade():
    drop()
    install(revision, "assigned_roles", "authenticate_user", "authenticate_key", "lock_owners")


def downgrade():
    drop()
    install("0001", "authenticate_user", "authenticate_key", "lock_owners")
    op.execute("DROP FUNCTION assigned_roles(uuid, uuid, uuid, uuid)")

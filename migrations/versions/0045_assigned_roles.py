"""Permissions of assigned roles in requests, and owners by assignment, who are found by an index."""

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
    with op.get_context().autocommit_block():
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS ix_memberships_owners")
        op.execute(
            "CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_memberships_owners ON memberships (tenant_id)"
            " WHERE role = 'owner'"
        )
    drop()
    install(revision, "assigned_roles", "authenticate_user", "authenticate_key", "lock_owners")
    install(revision, "ended_role_assignments", "held_role_keys")


def downgrade():
    op.drop_index("ix_memberships_owners")
    drop()
    install("0001", "authenticate_user", "authenticate_key", "lock_owners")
    op.execute("DROP FUNCTION held_role_keys")
    op.execute("DROP FUNCTION ended_role_assignments")
    op.execute("DROP FUNCTION assigned_roles(uuid, uuid, uuid, uuid)")

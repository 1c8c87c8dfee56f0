"""What a request reads of roles and their assignments is bounded, and found by indexes."""

from alembic import op

from migrations.replaceable import install

revision = "0054"
down_revision = "0053"
branch_labels = None
depends_on = None

TARGETS = ("membership_id", "group_id", "api_key_id")
GROUP = "fk_role_assignments_tenant_id_group_id"
INDEXES = {
    "ix_memberships_owners": "memberships (tenant_id) WHERE role = 'owner'",
    "ix_role_assignments_tenant_id_resource_type_resource_id_a65d": "role_assignments"
    " (tenant_id, resource_type, resource_id, role_id, membership_id)",
    **{
        f"ix_role_assignments_{target}_created_at_id": f"role_assignments"
        f" ({target}, created_at, id) WHERE {target} IS NOT NULL"
        for target in TARGETS
    },
}


def order_unique(*columns):
    """Let the unique index of each target have these columns after the target and the tenant."""
    with op.get_context().autocommit_block():
        for target in TARGETS:
            name = f"uq_role_assignments_{target}"
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}_new")
            op.execute(
                f"CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS {name}_new ON role_assignments"
                f" ({target}, tenant_id, {', '.join(columns)}) NULLS NOT DISTINCT"
                f" WHERE {target} IS NOT NULL"
            )
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            op.execute(f"-- squawk-ignore renaming-object\nALTER INDEX {name}_new RENAME TO {name}")


def upgrade():
    order_unique("resource_type", "resource_id", "role_id")
    with op.get_context().autocommit_block():
        for name, what in INDEXES.items():
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            op.execute(f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON {what}")
    op.execute(
        "-- squawk-ignore ban-drop-constraint\n"
        f"ALTER TABLE role_assignments DROP CONSTRAINT {GROUP}"
    )
    install(revision, "access_grants", "granting_roles", "access_candidates")
    install(revision, "find_permitted_members", "find_permitted_resources", "find_held_permissions")
    install(revision, "assigned_roles", "lock_owners", "ended_role_assignments", "held_role_keys")


def downgrade():
    op.execute("DROP FUNCTION held_role_keys")
    op.execute("DROP FUNCTION ended_role_assignments")
    install("0045", "assigned_roles", "lock_owners")
    install("0047", "access_grants", "granting_roles", "access_candidates")
    install("0047", "find_permitted_members", "find_permitted_resources", "find_held_permissions")
    op.execute(
        "DELETE FROM role_assignments a WHERE group_id IS NOT NULL AND NOT EXISTS ("
        "  SELECT FROM scim_groups g WHERE g.tenant_id = a.tenant_id AND g.id = a.group_id)"
    )
    op.create_foreign_key(
        GROUP,
        "role_assignments",
        "scim_groups",
        ["tenant_id", "group_id"],
        ["tenant_id", "id"],
        ondelete="CASCADE",
    )
    for name in INDEXES:
        op.drop_index(name)
    order_unique("role_id", "resource_type", "resource_id")

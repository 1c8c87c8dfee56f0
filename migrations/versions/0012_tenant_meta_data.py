"""Tenants' metadata, found across tenants, and users' e-mail addresses compared without case."""

import sqlalchemy as sa
from alembic import op

from app.users.emails import email_key
from migrations.replaceable import install

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

INDEXES = {
    "ix_users_email_key_tenant_id": "users (email_key, tenant_id)",
    "ix_custom_fields_searched_tenants": "custom_fields (field_key, field_type, id)"
    " WHERE entity_type = 'tenant' AND is_searchable AND is_active",
    "ix_custom_field_indexes_unready": "custom_field_indexes (tenant_id, field_id)"
    " WHERE state IN ('building', 'failed')",
    **{
        f"ix_custom_field_index_rows_tenants_{column}": f"custom_field_index_rows"
        f" ({column}, field_id) WHERE entity_id = tenant_id AND {column} IS NOT NULL"
        for column in ("text_key", "number_value", "date_value")
    },
}

BATCH = 5000
FIRST = "00000000-0000-0000-0000-000000000000"
READ = sa.text(
    "SELECT tenant_id, id, email, email_key FROM users"
    " WHERE (tenant_id, id) > (CAST(:tenant_id AS uuid), CAST(:id AS uuid))"
    " ORDER BY tenant_id, id LIMIT :batch"
)
# A process of the release before may change the address meanwhile; the second pass sees it.
WRITE = sa.text(
    "UPDATE users SET email_key = new.email_key FROM unnest("
    " CAST(:tenant_ids AS uuid[]), CAST(:ids AS uuid[]), CAST(:emails AS text[]),"
    " CAST(:keys AS text[])) AS new (tenant_id, id, email, email_key)"
    " WHERE users.tenant_id = new.tenant_id AND users.id = new.id AND users.email = new.email"
)


def upgrade():
    op.add_column(
        "tenants",
        sa.Column("meta_data", sa.JSON(), server_default="{}", nullable=False),
        if_not_exists=True,
    )
    op.add_column(
        "users",
        sa.Column("email_key", sa.Text(), server_default="", nullable=False),
        if_not_exists=True,
    )
    install(revision, "email_is_taken")
    with op.get_context().autocommit_block():  # after a failure, all of it can run again
        write_email_keys()
        for name, definition in INDEXES.items():
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            op.execute(f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON {definition}")
        write_email_keys()


def downgrade():
    for name in INDEXES:
        op.execute(f"DROP INDEX {name}")
    op.execute("DROP FUNCTION email_is_taken(uuid, text, uuid)")
    op.drop_column("users", "email_key")
    op.drop_column("tenants", "meta_data")


def write_email_keys():
    """Give each user the key of their address, in batches.

    Python does it, because PostgreSQL's ``lower()`` depends on the database's locale.
    """
    if op.get_context().as_sql:  # `--sql` only prints
        return
    connection = op.get_bind()
    connection.execute(sa.text("SELECT set_config('app.platform', 'on', false)"))
    place = {"tenant_id": FIRST, "id": FIRST}
    while rows := connection.execute(READ, {**place, "batch": BATCH}).all():
        place = {"tenant_id": str(rows[-1].tenant_id), "id": str(rows[-1].id)}
        keys = {row: email_key(row.email) for row in rows}
        wrong = [row for row, key in keys.items() if key != row.email_key]
        values = {
            "tenant_ids": [str(row.tenant_id) for row in wrong],
            "ids": [str(row.id) for row in wrong],
            "emails": [row.email for row in wrong],
            "keys": [keys[row] for row in wrong],
        }
        connection.execute(WRITE, values)
    connection.execute(sa.text("SELECT set_config('app.platform', '', false)"))

"""The audit trail in partitions by month, and the functions that add them and drop old rows.

The old table becomes the first partition. No row is copied: the ids are checked against the
partition's bound before, while the service uses the table. Only the exchange of the two tables
needs a lock, for some milliseconds.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.replaceable import install
from migrations.security import APPEND_ONLY, grant_function, isolate

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

INDEXES = (
    ["id"],
    ["tenant_id", "created_at", "id"],
    ["created_at", "id"],
    ["target_id", "created_at", "id"],
    ["actor", "created_at", "id"],
    ["action", "created_at", "id"],
)

# New rows have to be below the bound until there is a partition for others, so it is a week away or
# more.
LIMIT_IDS = """
DO $$
BEGIN
    ALTER TABLE public.audit_events DROP CONSTRAINT IF EXISTS ck_audit_events_first;
    EXECUTE format(
        'ALTER TABLE public.audit_events'
        ' ADD CONSTRAINT ck_audit_events_first CHECK (id < %L) NOT VALID',
        first_id_of(date_trunc('month', now() + interval '7 days', 'UTC') + interval '1 month')
    );
END
$$
"""
MOVE = """
DO $$
BEGIN
    ALTER TABLE public.audit_events SET SCHEMA partitions;
    ALTER TABLE partitions.audit_events RENAME TO audit_events_first;
END
$$
"""
# PostgreSQL takes the constraint as the proof that no row needs to be read.
ATTACH = """
DO $$
BEGIN
    EXECUTE (
        SELECT 'ALTER TABLE public.audit_events ATTACH PARTITION partitions.audit_events_first'
            ' FOR VALUES FROM (MINVALUE) TO ('
            || substring(pg_get_constraintdef(oid) FROM '''[0-9a-f-]+''') || ')'
        FROM pg_constraint WHERE conname = 'ck_audit_events_first'
    );
    ALTER TABLE partitions.audit_events_first DROP CONSTRAINT ck_audit_events_first;
END
$$
"""
DEFAULT = """
DO $$
BEGIN
    CREATE TABLE partitions.audit_events_default (LIKE public.audit_events);
    PERFORM partitions.protect('partitions.audit_events_default');
    ALTER TABLE public.audit_events ATTACH PARTITION partitions.audit_events_default DEFAULT;
END
$$
"""

FUNCTIONS = (
    "add_audit_partitions()",
    "drop_audit_partition(integer)",
    "delete_old_rows(text, integer, integer)",
)


def upgrade():
    with op.get_context().autocommit_block():
        install(revision, "first_id_of")
        op.execute(LIMIT_IDS)
        op.execute("ALTER TABLE audit_events VALIDATE CONSTRAINT ck_audit_events_first")
    op.execute("CREATE SCHEMA partitions")
    install(revision, "partitions.bounds", "partitions.protect")
    op.execute(MOVE)
    _create_table(postgresql_partition_by="RANGE (id)")
    op.execute(ATTACH)
    op.execute(DEFAULT)
    install(revision, "add_audit_partitions", "drop_audit_partition", "delete_old_rows")
    for function in FUNCTIONS:
        grant_function(function)
    op.execute("SELECT set_config('app.platform', 'on', true), add_audit_partitions()")


def downgrade():
    for function in FUNCTIONS:
        op.execute(f"DROP FUNCTION {function}")
    op.execute("CREATE SCHEMA former")
    op.execute("ALTER TABLE audit_events SET SCHEMA former")
    _create_table()
    op.execute("SELECT set_config('app.platform', 'on', true)")
    op.execute("INSERT INTO audit_events SELECT * FROM former.audit_events")
    op.execute("DROP SCHEMA former CASCADE")
    op.execute("DROP SCHEMA partitions CASCADE")
    op.execute("DROP FUNCTION first_id_of(timestamptz)")


def _create_table(**options):
    op.create_table(
        "audit_events",
        sa.Column("tenant_id", sa.UUID(), nullable=False),
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("target_type", sa.Text(), nullable=False),
        sa.Column("target_id", sa.Text(), nullable=False),
        sa.Column("before", sa.JSON(), nullable=False),
        sa.Column("after", sa.JSON(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_audit_events")),
        **options,
    )
    for columns in INDEXES:
        op.create_index(op.f(f"ix_audit_events_{'_'.join(columns)}"), "audit_events", columns)
    isolate("audit_events", APPEND_ONLY)

"""The audit trail in partitions by month, and the functions that add them and drop old rows.

The old table becomes the first partition. No row is copied: the ids are checked against the
partition's bound before, while the service uses the table. Only the exchange of the two tables
needs a lock, for some milliseconds.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.security import APPEND_ONLY, POLICY, grant_function, isolate

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

# The least UUIDv7 of a moment (RFC 9562): its milliseconds, then zeros.
FIRST_ID_OF = """
CREATE OR REPLACE FUNCTION first_id_of(moment timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
    SELECT rpad(
        lpad(to_hex(greatest(0, floor(extract(epoch FROM moment) * 1000))::bigint), 12, '0'), 32, '0'
    )::uuid
$$
"""

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

# The application's role may not use the schema. Its statements on the whole table need no right to
# partitions, and only the policy of the whole table applies to them.
PROTECT = f"""
CREATE FUNCTION partitions.protect(partition regclass) RETURNS void LANGUAGE plpgsql AS $protect$
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', partition);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', partition);
    EXECUTE format($policy${POLICY.format(table="%s")}$policy$, partition);
END
$protect$
"""

# The upper bound of each partition; NULL for the default one.
BOUNDS = """
CREATE VIEW partitions.bounds AS
SELECT inhparent::regclass AS whole, inhrelid::regclass AS partition,
    (regexp_match(pg_get_expr(relpartbound, inhrelid), 'TO \\(''(.+)''\\)'))[1]::uuid AS below
FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
WHERE relnamespace = 'partitions'::regnamespace AND relkind = 'r'
"""

# The lock lets one transaction at a time change the partitions, and lets others use the table.
# A month of which the default partition has rows already stays there: to move them would take a
# long lock.
ADD_PARTITIONS = """
CREATE FUNCTION add_audit_partitions() RETURNS integer LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET lock_timeout = '200ms' AS $$
DECLARE
    month timestamptz;
    name text;
    low uuid;
    high uuid;
    added integer := 0;
BEGIN
    IF current_setting('app.platform', true) IS DISTINCT FROM 'on' THEN
        RAISE EXCEPTION 'only the platform adds partitions' USING ERRCODE = 'insufficient_privilege';
    END IF;
    LOCK TABLE ONLY public.audit_events IN SHARE UPDATE EXCLUSIVE MODE;
    FOR month IN
        SELECT generate_series(date_trunc('month', now()), now() + interval '3 months', '1 month')
    LOOP
        name := 'audit_events_' || to_char(month, 'YYYY_MM');
        low := public.first_id_of(month);
        high := public.first_id_of(month + interval '1 month');
        CONTINUE WHEN EXISTS (
            SELECT FROM partitions.bounds b
            WHERE b.whole = 'public.audit_events'::regclass AND b.below >= high
        ) OR EXISTS (
            SELECT FROM partitions.audit_events_default d WHERE d.id >= low AND d.id < high
        );
        EXECUTE format('CREATE TABLE partitions.%I (LIKE public.audit_events)', name);
        PERFORM partitions.protect(format('partitions.%I', name)::regclass);
        EXECUTE format(
            'ALTER TABLE public.audit_events ATTACH PARTITION partitions.%I'
            ' FOR VALUES FROM (%L) TO (%L)', name, low, high
        );
        added := added + 1;
    END LOOP;
    RETURN added;
END
$$
"""

# Drops one, so that each drop is a short transaction. Its files are deleted after the commit.
DROP_PARTITION = """
CREATE FUNCTION drop_audit_partition(kept_days integer) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
    oldest regclass;
    name text;
BEGIN
    IF current_setting('app.platform', true) IS DISTINCT FROM 'on' THEN
        RAISE EXCEPTION 'only the platform drops partitions' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF (kept_days BETWEEN 31 AND 36500) IS NOT TRUE THEN
        RAISE EXCEPTION 'rows are kept for 31 to 36500 days' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    LOCK TABLE ONLY public.audit_events IN SHARE UPDATE EXCLUSIVE MODE;
    SELECT b.partition INTO oldest FROM partitions.bounds b
    WHERE b.whole = 'public.audit_events'::regclass
        AND b.below <= public.first_id_of(now() - kept_days * interval '1 day')
    ORDER BY b.below LIMIT 1;
    IF oldest IS NOT NULL THEN
        SELECT relname INTO name FROM pg_class WHERE oid = oldest;
        EXECUTE format('DROP TABLE %s', oldest);
    END IF;
    RETURN name;
END
$$
"""

# Rows that no partition of a month has, and those of a table from which nobody else may delete.
DELETE_OLD_ROWS = """
CREATE FUNCTION delete_old_rows(wanted_table text, kept_days integer, batch_size integer)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    target regclass;
    deleted bigint;
    total bigint := 0;
BEGIN
    IF current_setting('app.platform', true) IS DISTINCT FROM 'on' THEN
        RAISE EXCEPTION 'only the platform deletes old rows' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF (kept_days BETWEEN 31 AND 36500) IS NOT TRUE THEN
        RAISE EXCEPTION 'rows are kept for 31 to 36500 days' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF (batch_size BETWEEN 1 AND 10000) IS NOT TRUE THEN
        RAISE EXCEPTION 'the batch size is 1 to 10000' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF (wanted_table IN ('audit_events', 'email_events')) IS NOT TRUE THEN
        RAISE EXCEPTION 'no such table has old rows' USING ERRCODE = 'undefined_table';
    END IF;
    FOREACH target IN ARRAY CASE wanted_table
        WHEN 'email_events' THEN ARRAY['public.email_events'::regclass]
        ELSE ARRAY[
            to_regclass('partitions.audit_events_first'),
            to_regclass('partitions.audit_events_default')
        ]
    END LOOP
        CONTINUE WHEN target IS NULL;  -- the first partition was dropped
        EXECUTE format(
            'DELETE FROM %1$s WHERE ctid = ANY (ARRAY(SELECT ctid FROM %1$s'
            ' WHERE created_at < now() - $1 * interval ''1 day'' ORDER BY created_at LIMIT $2))',
            target
        ) USING kept_days, batch_size;
        GET DIAGNOSTICS deleted = ROW_COUNT;
        total := total + deleted;
    END LOOP;
    RETURN total;
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
        op.execute(FIRST_ID_OF)
        op.execute(LIMIT_IDS)
        op.execute("ALTER TABLE audit_events VALIDATE CONSTRAINT ck_audit_events_first")
    op.execute("CREATE SCHEMA partitions")
    op.execute(BOUNDS)
    op.execute(PROTECT)
    op.execute(MOVE)
    _create_table(postgresql_partition_by="RANGE (id)")
    op.execute(ATTACH)
    op.execute(DEFAULT)
    for statement in (ADD_PARTITIONS, DROP_PARTITION, DELETE_OLD_ROWS):
        op.execute(statement)
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

"""Deleting tenants and erasing users: what is to be deleted, tombstones, functions with more rights."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.security import grant, grant_function, isolate

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

PLAN_INDEX = "ix_subscriptions_plan_name"

# The constraint's name tells the application which rule it was.
REFUSE_DELETED = """
CREATE FUNCTION refuse_deleted_organization() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM deleted_organizations d WHERE d.idp_org_id = NEW.idp_org_id) THEN
        RAISE EXCEPTION 'the tenant of this organization was deleted'
            USING ERRCODE = 'unique_violation', CONSTRAINT = 'tr_tenants_deleted_organization';
    END IF;
    RETURN NULL;
END
$$
"""
# After the row, so that it also sees a deletion that commits while the row waits for its unique key.
TRIGGER = """
CREATE TRIGGER tr_tenants_deleted_organization AFTER INSERT OR UPDATE OF idp_org_id ON tenants
FOR EACH ROW EXECUTE FUNCTION refuse_deleted_organization()
"""

IS_DELETION_DUE = """
CREATE FUNCTION is_deletion_due(wanted_tenant uuid) RETURNS boolean LANGUAGE sql AS $$
    SELECT EXISTS (
        SELECT FROM public.tenants t JOIN public.tenant_deletions d ON d.tenant_id = t.id
        WHERE t.id = wanted_tenant AND t.deletes_at <= now() AND NOT t.is_active
    )
$$
"""

# A login that may update the audit trail itself needs no recorded erasure.
MAY_ERASE = """
CREATE FUNCTION may_erase(wanted_tenant uuid) RETURNS boolean LANGUAGE sql AS $$
    SELECT has_table_privilege(session_user, 'public.audit_events', 'UPDATE') OR EXISTS (
        SELECT FROM public.user_erasures e WHERE e.is_everywhere OR e.tenant_id = wanted_tenant
    )
$$
"""

# Only an index leads past the rows that earlier batches have deleted, without reading them again.
# The condition on tenant_id is repeated because ctid is unique in one partition only.
DELETE_TENANT_BATCH = """
CREATE FUNCTION delete_tenant_batch(wanted_tenant uuid, wanted_table text, batch_size integer)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    deleted bigint;
BEGIN
    IF public.is_deletion_due(wanted_tenant) IS NOT TRUE THEN
        RAISE EXCEPTION 'no deletion of this tenant is due' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF NOT EXISTS (
        SELECT FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        WHERE c.relnamespace = 'public'::regnamespace AND c.relname = wanted_table
            AND c.relkind IN ('r', 'p') AND a.attname = 'tenant_id' AND a.atttypid = 'uuid'::regtype
    ) THEN
        RAISE EXCEPTION 'no table of tenants has this name' USING ERRCODE = 'undefined_table';
    END IF;
    IF (batch_size BETWEEN 1 AND 10000) IS NOT TRUE THEN
        RAISE EXCEPTION 'the batch size is 1 to 10000' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    EXECUTE format(
        'DELETE FROM public.%1$I WHERE tenant_id = $1 AND ctid = ANY (ARRAY('
        'SELECT ctid FROM public.%1$I WHERE tenant_id = $1 LIMIT $2))',
        wanted_table
    ) USING wanted_tenant, batch_size;
    GET DIAGNOSTICS deleted = ROW_COUNT;
    RETURN deleted;
END
$$
"""

DELETE_EMAIL_EVENTS = """
CREATE FUNCTION delete_email_events(wanted_tenant uuid, addresses text[], batch_size integer)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    deleted bigint;
BEGIN
    IF (public.is_deletion_due(wanted_tenant) OR public.may_erase(NULL)) IS NOT TRUE THEN
        RAISE EXCEPTION 'nothing to delete' USING ERRCODE = 'insufficient_privilege';
    END IF;
    DELETE FROM public.email_events WHERE id = ANY (ARRAY(
        SELECT e.id FROM public.email_events e WHERE e.address = ANY (addresses) LIMIT batch_size
    ));
    GET DIAGNOSTICS deleted = ROW_COUNT;
    RETURN deleted;
END
$$
"""

REDACT_EMAIL_EVENT = """
CREATE FUNCTION redact_email_event(wanted_id uuid, redacted json)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF public.may_erase(NULL) IS NOT TRUE THEN
        RAISE EXCEPTION 'nobody to erase' USING ERRCODE = 'insufficient_privilege';
    END IF;
    UPDATE public.email_events e SET (message_id, reason, response, url, tags, metadata) = (
        SELECT r.message_id, r.reason, r.response, r.url, r.tags, r.metadata
        FROM json_populate_record(e, redacted) r
    ) WHERE e.id = wanted_id;
END
$$
"""

REDACT_AUDIT_EVENT = """
CREATE FUNCTION redact_audit_event(wanted_tenant uuid, wanted_id uuid, redacted json)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF public.may_erase(wanted_tenant) IS NOT TRUE THEN
        RAISE EXCEPTION 'nobody to erase' USING ERRCODE = 'insufficient_privilege';
    END IF;
    UPDATE public.audit_events e SET (before, after, actor, target_id, request_id) = (
        SELECT r.before, r.after, r.actor, r.target_id, r.request_id
        FROM json_populate_record(e, redacted) r
    ) WHERE e.tenant_id = wanted_tenant AND e.id = wanted_id;
END
$$
"""

FUNCTIONS = (
    "delete_tenant_batch(uuid, text, integer)",
    "delete_email_events(uuid, text[], integer)",
    "redact_email_event(uuid, json)",
    "redact_audit_event(uuid, uuid, json)",
)


def upgrade():
    with op.get_context().autocommit_block():
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {PLAN_INDEX}")
        op.execute(
            f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {PLAN_INDEX}"
            " ON subscriptions (plan_name) WHERE status_class <> 'ended'"
        )
    op.add_column(
        "tenants", sa.Column("deletes_at", postgresql.TIMESTAMP(timezone=True), nullable=True)
    )
    op.create_table(
        "deleted_organizations",
        sa.Column("idp_org_id", sa.Text(), nullable=False),
        sa.Column("deleted_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("idp_org_id", name=op.f("pk_deleted_organizations")),
    )
    op.create_table(
        "tenant_deletions",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("requested_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("requested_by", sa.Text(), nullable=False),
        sa.Column("worked_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("last_moment", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("last_id", sa.Uuid(), nullable=True),
        sa.Column("deleted_rows", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_tenant_deletions_tenant_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", name=op.f("pk_tenant_deletions")),
    )
    op.create_index(op.f("ix_tenant_deletions_worked_at"), "tenant_deletions", ["worked_at"])
    op.create_table(
        "user_erasures",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("requested_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("requested_by", sa.Text(), nullable=False),
        sa.Column("worked_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("is_everywhere", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["users.tenant_id", "users.id"],
            name=op.f("fk_user_erasures_tenant_id_user_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "user_id", name=op.f("pk_user_erasures")),
    )
    op.create_index(op.f("ix_user_erasures_worked_at"), "user_erasures", ["worked_at"])
    grant("deleted_organizations")
    isolate("tenant_deletions")
    isolate("user_erasures")
    for statement in (REFUSE_DELETED, TRIGGER, IS_DELETION_DUE, MAY_ERASE):
        op.execute(statement)
    for statement in (
        DELETE_TENANT_BATCH,
        DELETE_EMAIL_EVENTS,
        REDACT_EMAIL_EVENT,
        REDACT_AUDIT_EVENT,
    ):
        op.execute(statement)
    for function in FUNCTIONS:
        grant_function(function)


def downgrade():
    for function in (*FUNCTIONS, "may_erase(uuid)", "is_deletion_due(uuid)"):
        op.execute(f"DROP FUNCTION {function}")
    op.execute("DROP TRIGGER tr_tenants_deleted_organization ON tenants")
    op.execute("DROP FUNCTION refuse_deleted_organization()")
    op.drop_table("user_erasures")
    op.drop_table("tenant_deletions")
    op.drop_table("deleted_organizations")
    op.drop_column("tenants", "deletes_at")
    op.drop_index(PLAN_INDEX, "subscriptions")

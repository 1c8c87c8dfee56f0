"""The SQL statements of :mod:`app.privacy.tenants.deletion_stages`."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import func, select

from app.core.db.stalled import take_stalled
from app.core.db.statements import Statement
from app.core.db.tenancy import PLATFORM_TENANT_ID
from app.tenants.models import Tenant, TenantDeletion


def _statement(name: str, sql: str) -> Statement:
    return Statement(name, sql, prepare=False)


LOCK_DUE = _statement(
    "tenant_deletions.lock_due",
    """
    SELECT d.*, t.idp_org_id FROM tenant_deletions d JOIN tenants t ON t.id = d.tenant_id
    WHERE t.id = :tenant_id AND t.deletes_at <= :now FOR UPDATE OF d SKIP LOCKED
    """,
)
TAKE_STALLED = take_stalled(
    TenantDeletion,
    "worked_at",
    timedelta(seconds=60),
    TenantDeletion.tenant_id.in_(select(Tenant.id).where(Tenant.deletes_at <= func.now())),
)
BURY = _statement(
    "deleted_organizations.bury",
    """
    INSERT INTO deleted_organizations (idp_org_id, deleted_at) VALUES (:idp_org_id, now())
    ON CONFLICT DO NOTHING
    """,
)
NEXT_PAYLOADS = _statement(
    "webhook_events.next_payloads",
    """
    SELECT id, processed_at, octet_length(body) AS size FROM webhook_events
    WHERE body IS NOT NULL AND processed_at >= :last_moment
        AND (processed_at, id) > (:last_moment, :last_id)
    ORDER BY processed_at, id LIMIT :limit
    """,
)
READ_PAYLOADS = _statement(
    "webhook_events.read_payloads",
    """
    SELECT id, source, body FROM webhook_events
    WHERE id = ANY (CAST(:ids AS uuid[])) AND body IS NOT NULL
    """,
)
REMOVE_PAYLOADS = _statement(
    "webhook_events.remove_payloads_of_tenant",
    """
    UPDATE webhook_events SET body = NULL, headers = '{}'
    WHERE id = ANY (CAST(:ids AS uuid[])) AND processed_at IS NOT NULL
    """,
)
# The people and the addresses of the tenant that no other tenant has.
OWN_SUBJECTS, OWN_ADDRESSES = (
    _statement(
        f"users.own_{column}",
        f"""
        SELECT u.{column} FROM users u
        WHERE u.tenant_id = :tenant_id AND u.{column} = ANY (CAST(:names AS text[])) AND NOT EXISTS (
            SELECT FROM users o WHERE o.{column} = u.{column} AND o.tenant_id <> u.tenant_id)
        """,  # noqa: S608
    )
    for column in ("idp_user_id", "email_key")
)
OWN_SUBSCRIPTIONS = _statement(
    "subscriptions.own_ids",
    """
    SELECT unnest(ARRAY[bp_provider || ' ' || bp_subscription_id, bp_provider || ' ' || bp_customer_id])
    FROM subscriptions WHERE tenant_id = :tenant_id AND bp_provider IS NOT NULL
    UNION SELECT provider || ' ' || customer_id FROM billing_customers WHERE tenant_id = :tenant_id
    """,
)
OTHERS_ADDRESSES = _statement(
    "users.others_addresses",
    """
    SELECT email_key FROM users
    WHERE tenant_id <> :tenant_id AND email_key = ANY (CAST(:keys AS text[]))
    UNION SELECT email_key FROM invitations
    WHERE tenant_id <> :tenant_id AND email_key = ANY (CAST(:keys AS text[]))
    """,
)
NEXT_PEOPLE = _statement(
    "users.next_people",
    """
    SELECT id, idp_user_id, email, ARRAY(
        SELECT a.before ->> 'email' FROM audit_events a
        WHERE a.tenant_id = p.tenant_id AND a.target_id = CAST(p.id AS text)
            AND a.action = 'user.updated' AND a.before ->> 'email' <> '') AS former_emails
    FROM (
        SELECT tenant_id, id, idp_user_id, email FROM users
        UNION ALL SELECT tenant_id, id, '', email FROM invitations
    ) p
    WHERE tenant_id = :tenant_id AND id > :last_id ORDER BY id LIMIT :limit
    """,
)
DELETE_MAILS = {
    table: _statement(
        f"{table}.delete_of_tenant",
        f"""
        DELETE FROM {table} WHERE id IN (
            SELECT id FROM {table} WHERE address = ANY (CAST(:addresses AS text[])) LIMIT :limit
        ) RETURNING *
        """,  # noqa: S608
    )
    for table in ("email_messages", "suppressions")
}
DELETE_EMAIL_EVENTS = _statement(
    "email_events.delete_of_tenant",
    "SELECT delete_email_events(:tenant_id, CAST(:addresses AS text[]), :limit)",
)
DELETE_MAILS_FROM_FEED = [
    _statement(
        f"{table}.delete_mails",
        f"""
        DELETE FROM {table} WHERE tenant_id = '{PLATFORM_TENANT_ID}'
            AND type IN ('email.bounced', 'email.complained', 'email.suppressed')
            AND coalesce(data, after) ->> 'address' = ANY (CAST(:addresses AS text[]))
        """,  # noqa: S608
    )
    for table in ("event_outbox", "events")
]
DELETE_PEOPLE = _statement(
    "identity_objects.delete_people",
    """
    DELETE FROM identity_objects p
    WHERE p.source = ANY (CAST(:sources AS text[])) AND p.kind = 'user' AND p.object_id = ANY (CAST(:subjects AS text[]))
        AND NOT EXISTS (
            SELECT FROM identity_objects m
            WHERE m.source = p.source AND m.user_id = p.object_id AND NOT m.is_deleted
                AND m.organization_id <> :idp_org_id)
    """,
)
DELETE_ORGANIZATION = _statement(
    "identity_objects.delete_organization",
    """
    DELETE FROM identity_objects WHERE (source, kind, object_id) IN (
        SELECT source, kind, object_id FROM identity_objects
        WHERE source = ANY (CAST(:sources AS text[])) AND organization_id = :idp_org_id
        UNION ALL
        SELECT source, kind, object_id FROM identity_objects
        WHERE source = ANY (CAST(:sources AS text[])) AND kind = 'organization' AND object_id = :idp_org_id
        LIMIT :limit)
    """,
)
# The answers about subscriptions name no tenant; they begin with the id, as {"data":{"id":"…
DELETE_ANSWERS = _statement(
    "idempotency_keys.delete_of_tenant",
    """
    DELETE FROM idempotency_keys WHERE (scope, key) IN (
        SELECT scope, key FROM idempotency_keys
        WHERE position(convert_to(:tenant_id, 'UTF8') IN body) > 0
            OR position(convert_to('"idp_org_id":' || to_json(CAST(:idp_org_id AS text)), 'UTF8') IN body) > 0
            OR encode(substring(body FROM 16 FOR 36), 'escape') IN (
                SELECT CAST(id AS text) FROM subscriptions WHERE tenant_id = CAST(:tenant_id AS uuid))
        LIMIT :limit)
    """,
)
DELETE_BATCH = _statement(
    "tenants.delete_batch", "SELECT delete_tenant_batch(:tenant_id, :table, :limit)"
)

"""Hand-written SQL, for the floor and for asyncpg."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache


class Statement:
    """SQL written with ``:name`` parameters: its ``text`` has ``$1 …`` and ``names`` tells which."""

    def __init__(self, text: str) -> None:
        names = dict.fromkeys(re.findall(r"(?<!:):(\w+)", text))
        self.names = tuple(names)
        numbers = {name: f"${number}" for number, name in enumerate(names, 1)}
        self.text = re.sub(r"(?<!:):(\w+)", lambda match: numbers[match[1]], text)


USER = """id, tenant_id, idp_org_id, created_at, created_by_user_id, updated_at,
    updated_by_user_id, idp_user_id, email, first_name, last_name, is_active, meta_data"""
MEMBERSHIP = """id, tenant_id, idp_org_id, created_at, created_by_user_id, updated_at,
    updated_by_user_id, user_id, idp_membership_id, role, is_active"""
SUBSCRIPTION = """id, created_at, updated_at, bp_subscription_id, bp_customer_id, bp_plan_id,
    bp_status, plan_name, is_free_trial, start_date, auto_renew, billing_cycle,
    per_cycle_billing_amount, billing_address_line_1, billing_city, billing_state, billing_zip,
    billing_country, billing_email, billing_phone, billing_contact_name,
    send_invoice_days_before_due, send_email_receipts, send_paper_receipts"""

STATEMENTS = {
    "authenticate": Statement(
        "SELECT user_id, tenant_id, role, tenant_is_active"
        " FROM authenticate_user(:subject, :org_id)"
    ),
    "get_user": Statement(
        f"SELECT {USER}, version FROM users WHERE tenant_id = :tenant_id AND id = :id"
    ),
    "list_users": Statement(
        f"SELECT {USER} FROM users WHERE tenant_id = :tenant_id"
        " ORDER BY created_at, id LIMIT :count"
    ),
    "find_field": Statement("""
        SELECT f.id, i.state FROM custom_fields f
        JOIN custom_field_indexes i ON i.tenant_id = f.tenant_id AND i.field_id = f.id
        WHERE f.tenant_id = :tenant_id AND f.entity_type = 'user' AND f.field_key = :key
            AND f.is_searchable AND f.is_active"""),
    "search_users": Statement(f"""
        SELECT {USER} FROM users WHERE tenant_id = :tenant_id AND id IN (
            SELECT entity_id FROM custom_field_index_rows
            WHERE tenant_id = :tenant_id AND field_id = :field_id AND text_key = :value
        ) ORDER BY created_at, id LIMIT :count"""),
    "lock_user": Statement("""
        SELECT id, version, meta_data, (
            SELECT json_object_agg(f.field_key, json_build_array(f.field_type, f.options))
            FROM custom_fields f
            WHERE f.tenant_id = u.tenant_id AND f.entity_type = 'user' AND f.is_active
        ) AS rules FROM users u WHERE tenant_id = :tenant_id AND id = :id FOR UPDATE"""),
    "lock_membership": Statement(
        "SELECT id, version, role FROM memberships"
        " WHERE tenant_id = :tenant_id AND id = :id FOR UPDATE"
    ),
    "lock_subscription": Statement(
        f"SELECT {SUBSCRIPTION}, version FROM subscriptions"
        " WHERE tenant_id = :tenant_id AND id = :id FOR UPDATE"
    ),
    "flags": Statement("""
        SELECT t.is_active, t.plan_name, p.flags, (
            SELECT json_object_agg(o.flag_key, o.flag_value) FROM feature_overrides o
            WHERE o.tenant_id = t.id AND o.plan_preset_id = p.id
                AND (o.expires_at IS NULL OR o.expires_at > now())
        ) AS overrides
        FROM tenants t LEFT JOIN plan_presets p ON p.name = t.plan_name
        WHERE t.id = :tenant_id"""),
    "store_event": Statement("""
        INSERT INTO webhook_events (id, created_at, updated_at, version, source, external_id,
            event_type, status, detail, attempts, replays, next_attempt_at, headers, body, digest,
            request_id)
        VALUES (:id, now(), now(), 1, :source, :external_id, :event_type, 'pending', '', 0, 0,
            now(), :headers, :body, :digest, :request_id)
        ON CONFLICT DO NOTHING RETURNING id"""),
}

TABLES = {
    "users": (USER, True, "user.meta_data_patched", "user"),
    "memberships": (MEMBERSHIP, True, "membership.role_changed", "membership"),
    "subscriptions": (SUBSCRIPTION, False, "subscription.updated", "subscription"),
}
"""Of each table that is changed: what is shown, whether it has updated_by_user_id, the audit row."""


@cache
def updating(table: str, names: Sequence[str]) -> Statement:
    """Sets the columns ``names`` of one version of a row, adds the audit row, returns the row."""
    shown, has_author, action, target = TABLES[table]
    assignments = "".join(f"{name} = :{name}, " for name in names)
    if has_author:
        assignments += "updated_by_user_id = :actor, "
    return Statement(f"""
        WITH changed AS (
            UPDATE {table} SET {assignments} updated_at = now(), version = version + 1
            WHERE tenant_id = :tenant_id AND id = :id AND version = :version RETURNING *
        ), audited AS (
            INSERT INTO audit_events (tenant_id, id, created_at, actor, action, target_type,
                target_id, before, after, request_id)
            SELECT tenant_id, CAST(:audit_id AS uuid), updated_at, CAST(:actor AS text),
                '{action}', '{target}', CAST(id AS text), CAST(:before AS json),
                CAST(:after AS json), CAST(:request_id AS text)
            FROM changed
        ) SELECT {shown}, version FROM changed""")

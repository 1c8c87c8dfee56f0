"""Subscriptions and flags."""

from __future__ import annotations

import hashlib
from typing import Any

from email_validator import EmailNotValidError, validate_email
from psycopg2.extensions import cursor

from benchmarks.floor.core import (
    AUDITED,
    Answer,
    Caller,
    Environ,
    Refused,
    answer,
    change,
    dumps,
    json_body,
    one,
    uuid,
)

SUBSCRIPTION = (
    *("id", "created_at", "updated_at", "bp_subscription_id", "bp_customer_id", "bp_plan_id"),
    *("bp_status", "plan_name", "is_free_trial", "start_date", "auto_renew", "billing_cycle"),
    *("per_cycle_billing_amount", "billing_address_line_1", "billing_city", "billing_state"),
    *("billing_zip", "billing_country", "billing_email", "billing_phone", "billing_contact_name"),
    *("send_invoice_days_before_due", "send_email_receipts", "send_paper_receipts"),
)
SUBSCRIPTION_COLUMNS = ", ".join(SUBSCRIPTION)
GET_SUBSCRIPTION = f"""
    SELECT version, {SUBSCRIPTION_COLUMNS} FROM subscriptions
    WHERE tenant_id = %s AND id = %s FOR UPDATE"""

# What a tenant's own credential may change, with the type of each.
TEXTS = {
    *("billing_address_line_1", "billing_city", "billing_state", "billing_zip"),
    *("billing_country", "billing_email", "billing_phone", "billing_contact_name"),
}
FLAGS = {"auto_renew", "send_email_receipts", "send_paper_receipts"}

EVALUATE = """
    SELECT t.is_active, t.plan_name, p.flags, (
        SELECT json_object_agg(o.flag_key, o.flag_value) FROM feature_overrides o
        WHERE o.tenant_id = t.id AND o.plan_preset_id = p.id
            AND (o.expires_at IS NULL OR o.expires_at > now())
    ) FROM tenants t LEFT JOIN plan_presets p ON p.name = t.plan_name WHERE t.id = %s"""


def patch_subscription(
    database: cursor, caller: Caller, environ: Environ, subscription_id: str
) -> Answer:
    fields = json_body(environ)
    for name, value in fields.items():
        _check(name, value)
    row = one(database, GET_SUBSCRIPTION, (caller.tenant_id, uuid(subscription_id)))
    now = dict(zip(SUBSCRIPTION, row[1:], strict=True))
    changed = {name: value for name, value in fields.items() if now[name] != value}
    if not changed:
        return answer(SUBSCRIPTION, row)
    before = {name: now[name] for name in changed}
    values = change(caller, environ, "subscription.updated", subscription_id, before, changed)
    return answer(SUBSCRIPTION, one(database, _update(changed), {**values, **changed}))


def _update(changed: dict[str, Any]) -> str:
    assignments = ", ".join(f"{name} = %({name})s" for name in changed)
    return f"""
        WITH changed AS (
            UPDATE subscriptions SET {assignments}, updated_at = now(), version = version + 1
            WHERE tenant_id = %(tenant)s AND id = %(id)s RETURNING *
        ), audited AS ({AUDITED}) SELECT version, {SUBSCRIPTION_COLUMNS} FROM changed"""


def _check(name: str, value: Any) -> None:
    if name in TEXTS:
        good = isinstance(value, str) and len(value) <= 255
    elif name in FLAGS:
        good = isinstance(value, bool)
    else:
        good = name == "send_invoice_days_before_due" and type(value) is int and 0 <= value <= 365
    if good and name == "billing_email":
        try:
            validate_email(value, check_deliverability=False)
        except EmailNotValidError:
            good = False
    if not good:
        raise Refused("422 Unprocessable Entity", [{"loc": ["body", name]}])


def evaluate_flags(database: cursor, caller: Caller, environ: Environ) -> Answer:
    if not isinstance(json_body(environ).get("context", {}), dict):
        raise Refused("400 Bad Request", "INVALID_CONTEXT")
    is_active, plan, flags, overrides = one(database, EVALUATE, (caller.tenant_id,))
    own = overrides if overrides and is_active else {}
    body = dumps({"flags": [_evaluated(flag, own, plan, is_active) for flag in flags or ()]})
    return [("ETag", f'"{hashlib.md5(body).hexdigest()}"')], body


def _evaluated(
    flag: dict[str, Any], own: dict[str, Any], plan: str, is_active: bool
) -> dict[str, Any]:
    key = flag["flag_key"]
    is_own = key in own
    return {
        "key": key,
        "reason": "TARGETING_MATCH" if is_own else "STATIC" if is_active else "DISABLED",
        "variant": "override" if is_own else "preset",
        "metadata": {"plan": plan},
        "value": own[key] if is_own else flag["default_value"],
    }

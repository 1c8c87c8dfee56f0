"""Create and read the demo data of data.json, over the API as a client does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from sqlalchemy import func, select

from app.cli.calls import in_process
from app.cli.tokens import issue_token
from app.config import current_config
from app.core.actors import SYSTEM_CLI
from app.core.clock import utcnow
from app.core.db.statements import Statement
from app.core.db.tenancy import platform_transaction
from app.core.db.writes import insert_row
from app.core.json_text import Json
from app.emails import service as emails
from app.emails.events import EmailEvent, EmailKind, suppressions_of
from app.platform_admins import service as platform_admins
from app.surfaces.commands.answers import get, succeeded
from app.surfaces.operations import Request, Send
from app.usage import service as usage
from app.usage.models import UsageCounter

DATA = json.loads(Path(__file__).with_name("data.json").read_text(encoding="utf-8"))
TOKEN_SECONDS = 7 * 24 * 3600
LOCK_USAGE = Statement("demo.lock_usage", select(func.pg_advisory_xact_lock(7_021_110)))
"""Processes that seed at the same time follow one another."""
TENANTS, PLANS, USERS = "/v1/tenants", "/v1/billing/plans", "/v1/users"
SUBSCRIPTIONS, OVERRIDES = "/v1/billing/subscriptions", "/v1/billing/flags/overrides"
MEMBERSHIPS, FIELDS = "/v1/memberships/tenant", "/v1/custom-fields"

Found = Mapping[str, Any]


def has_demo() -> bool:
    """Whether the first demo tenant exists."""
    return bool(get(in_process(), TENANTS, {"idp_org_id": DATA["tenants"][0]["idp_org_id"]}))


def seed_demo() -> dict[str, Json]:
    """Create the missing demo data; return all ids and tokens as `flask seed --json` prints them.

    The archived field is archived again if it was restored.
    """
    send = in_process()
    with platform_transaction():
        platform_admins.add(DATA["platform_subject"], actor=SYSTEM_CLI)
    for name, flags in DATA["presets"].items():
        _create(send, PLANS, {"name": name, "flags": flags}, "preset_name_taken")
    for values in DATA["tenants"]:
        _create(send, TENANTS, values, "idp_org_id_taken")
        _fill(send, _find(send, TENANTS, idp_org_id=values["idp_org_id"]))
    _bounce(
        _user(send, _find(send, TENANTS, idp_org_id=DATA["tenants"][0]["idp_org_id"]), "viewer")
    )
    return {
        "platform_token": _token(DATA["platform_subject"], None),
        "tenants": [_read(send, values["idp_org_id"]) for values in DATA["tenants"]],
    }


def _create(send: Send, path: str, values: Found, exists: str, tenant: Found | None = None) -> None:
    """Create a row; the error ``exists`` says that there is one."""
    query = {} if tenant is None else {"tenant_id": tenant["id"]}
    answer = send(Request("POST", path, query, {}, values))
    if answer.body.get("code") != exists:
        succeeded(answer)


def _find(send: Send, path: str, **filters: str) -> Found:
    found: Found = get(send, path, filters)[0]
    return found


def _fill(send: Send, tenant: Found) -> None:
    subscription = DATA["subscriptions"][tenant["idp_org_id"]]
    _create(send, SUBSCRIPTIONS, subscription, "bp_subscription_id_taken", tenant)
    for field in (*DATA["custom_fields"], DATA["archived_field"]):
        _create(send, FIELDS, field, "field_key_taken", tenant)
    succeeded(send(Request("POST", f"{FIELDS}/{_archived_id(send, tenant)}/archive", {}, {})))
    for role, person in DATA["people"].items():
        names = {"idp_user_id": _subject(tenant, role), "email": f"{role}@{tenant['slug']}.example"}
        _create(send, USERS, {**person, **names}, "idp_user_id_taken", tenant)
        member = {"user_id": _user(send, tenant, role)["id"], "role": role}
        _create(send, MEMBERSHIPS, member, "membership_exists", tenant)
    preset_id = _find(send, PLANS, name=subscription["plan_name"])["id"]
    for values in DATA["overrides"]:
        of_preset = {**values, "plan_preset_id": preset_id}
        _create(send, OVERRIDES, of_preset, "flag_key_taken", tenant)
    if tenant["is_active"]:
        _use(UUID(tenant["id"]), **DATA["usage"][tenant["idp_org_id"]])


@platform_transaction()
def _bounce(user: Found) -> None:
    """Record that mail to the user has bounced, once: the address is on the suppression list."""
    kind, address = EmailKind.BOUNCED, user["email"]
    event = EmailEvent(
        kind=kind, message_id="demo", recipient=address, occurred_at=utcnow(),
        reason="There is no such mailbox.", suppressions=suppressions_of(kind),
    )  # fmt: skip
    emails.record([event], source="resend", webhook_event_id=UUID(user["id"]))


@platform_transaction()
def _use(tenant_id: UUID, *, feature: str, current: int, past: list[int]) -> None:
    """Count what the tenant uses in the current period, and in the months before it."""
    LOCK_USAGE.first()
    periods = usage.list_usage(tenant_id, feature=feature).items
    if len(periods) != 1 or periods[0].used:
        return
    usage.consume(tenant_id, usage.Request(feature=feature, amount=current), actor=SYSTEM_CLI)
    start = periods[0].period_start
    for used in reversed(past):
        end, start = start, _month_before(start)
        period = {"period_start": start, "period_end": end, "used": used, "announced": 0}
        insert_row(UsageCounter, {"tenant_id": tenant_id, "feature": feature, **period})


def _month_before(moment: datetime) -> datetime:
    """The same day of the month before; the day is at most the 28th."""
    return (moment.replace(day=1) - timedelta(days=1)).replace(day=moment.day)


def _read(send: Send, org_id: str) -> dict[str, Json]:
    tenant = _find(send, TENANTS, idp_org_id=org_id)
    tenant_id, subscription = tenant["id"], DATA["subscriptions"][org_id]["bp_subscription_id"]
    flag_key = DATA["overrides"][-1]["flag_key"]
    return {
        "tenant_id": tenant_id,
        "slug": tenant["slug"],
        "idp_org_id": org_id,
        "subscription_id": _find(
            send, SUBSCRIPTIONS, tenant_id=tenant_id, bp_subscription_id=subscription
        )["id"],
        "field_id": _archived_id(send, tenant),
        "override_id": _find(send, OVERRIDES, tenant_id=tenant_id, flag_key=flag_key)["id"],
        "users": [_read_member(send, tenant, role) for role in DATA["people"]],
    }


def _read_member(send: Send, tenant: Found, role: str) -> dict[str, Json]:
    user = _user(send, tenant, role)
    membership = _find(send, MEMBERSHIPS, tenant_id=tenant["id"], user_id=user["id"])
    return {
        "id": user["id"],
        "role": membership["role"],
        "membership_id": membership["id"],
        "token": _token(user["idp_user_id"], tenant["idp_org_id"]),
    }


def _user(send: Send, tenant: Found, role: str) -> Found:
    return _find(send, USERS, tenant_id=tenant["id"], idp_user_id=_subject(tenant, role))


def _archived_id(send: Send, tenant: Found) -> str:
    fields = get(send, FIELDS, {"tenant_id": tenant["id"], "limit": "100"})
    keys = {one["field_key"]: one["id"] for one in fields if one["entity_type"] == "user"}
    return str(keys[DATA["archived_field"]["field_key"]])


def _subject(tenant: Found, role: str) -> str:
    return f"{tenant['idp_org_id']}_{role}".replace("org_", "user_", 1)


def _token(subject: str, org_id: str | None) -> str:
    config = current_config()
    return issue_token(config, subject=subject, org_id=org_id, ttl=TOKEN_SECONDS)

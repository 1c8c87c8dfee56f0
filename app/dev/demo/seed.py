"""Create and read the demo data of data.json, by the services that requests and workers use."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy import func, select

from app.cli.tokens import issue_token
from app.config import current_config
from app.core.actors import SYSTEM_CLI
from app.core.db import tenancy
from app.core.db.models import Row
from app.core.db.queries import find_row
from app.core.db.statements import Statement
from app.core.db.transactions import transaction
from app.core.db.writes import insert_row
from app.core.errors import NotFound
from app.core.json_text import Json
from app.custom_fields import service as custom_fields
from app.custom_fields.models import CustomField
from app.flags import overrides
from app.flags.models import FeatureOverride
from app.memberships import service as memberships
from app.memberships.models import Membership
from app.plans import presets
from app.plans.models import PlanPreset
from app.platform_admins import service as platform_admins
from app.subscriptions import service as subscriptions
from app.subscriptions.models import Subscription
from app.tenants import service as tenants
from app.tenants.models import Tenant
from app.usage import service as usage
from app.usage.models import UsageCounter
from app.users import service as users
from app.users.models import User

DATA = json.loads(Path(__file__).with_name("data.json").read_text(encoding="utf-8"))
TOKEN_SECONDS = 7 * 24 * 3600
LOCK_SEEDING = Statement("demo.lock_seeding", select(func.pg_advisory_xact_lock(7_021_110)))
"""Processes that seed at the same time follow one another."""


def seed_demo(*, only_if_new: bool = False) -> dict[str, Json]:
    """Create the missing demo data; return all ids and tokens as `flask seed --json` prints them.

    The archived field is archived again if it was restored. ``only_if_new`` changes nothing
    where demo data exist. The ids of deleted rows are None.
    """
    with transaction():
        tenancy.enter(tenancy.PLATFORM)
        LOCK_SEEDING.first()
        if not (only_if_new and find_row(Tenant, idp_org_id=DATA["tenants"][0]["idp_org_id"])):
            platform_admins.add(DATA["platform_subject"], actor=SYSTEM_CLI)
            for name in DATA["presets"]:
                _preset(name)
            for values in DATA["tenants"]:
                _create_tenant(values)
        return {
            "platform_token": _token(DATA["platform_subject"], None),
            "tenants": [_read_tenant(values["idp_org_id"]) for values in DATA["tenants"]],
        }


def _preset(name: str) -> PlanPreset:
    found = presets.find_preset(name)
    return found or presets.create_preset(name, DATA["presets"][name], actor=SYSTEM_CLI)


def _create_tenant(values: dict[str, Json]) -> None:
    tenant = find_row(Tenant, idp_org_id=values["idp_org_id"])
    tenant = tenant or tenants.create(values, actor=SYSTEM_CLI)
    _create_subscription(tenant)
    for field in DATA["custom_fields"]:
        _field(tenant, field)
    custom_fields.archive(_field(tenant, DATA["archived_field"]).id, actor=SYSTEM_CLI)
    for role, person in DATA["people"].items():
        _create_member(tenant, role, person)
    _create_overrides(tenant)
    _create_usage(tenant)


def _create_subscription(tenant: Tenant) -> None:
    values = DATA["subscriptions"][tenant.idp_org_id]
    if _subscription(tenant) is None:
        start_date = datetime.fromisoformat(values["start_date"])
        subscriptions.create(tenant.id, {**values, "start_date": start_date}, actor=SYSTEM_CLI)


def _field(tenant: Tenant, values: dict[str, Json]) -> CustomField:
    found = find_row(CustomField, tenant_id=tenant.id, field_key=values["field_key"])
    return found or custom_fields.create(tenant.id, values, actor=SYSTEM_CLI)


def _create_member(tenant: Tenant, role: str, person: dict[str, Json]) -> None:
    user = _user(tenant, role)
    if user is None:
        email = f"{role}@{tenant.slug}.example"
        values = {**person, "idp_user_id": _idp_user_id(tenant, role), "email": email}
        user = users.create(tenant.id, values, actor=SYSTEM_CLI)
    if find_row(Membership, tenant_id=tenant.id, user_id=user.id) is None:
        memberships.create(tenant.id, {"user_id": user.id, "role": role}, actor=SYSTEM_CLI)


def _create_overrides(tenant: Tenant) -> None:
    preset = _preset(DATA["subscriptions"][tenant.idp_org_id]["plan_name"])
    for values in DATA["overrides"]:
        if find_row(FeatureOverride, tenant_id=tenant.id, flag_key=values["flag_key"]) is None:
            named = {**values, "plan_preset_id": preset.id}
            overrides.create_override(tenant.id, **named, actor=SYSTEM_CLI)


def _create_usage(tenant: Tenant) -> None:
    """Count what the tenant uses in the current period, and in the months before it."""
    values = DATA["usage"][tenant.idp_org_id]
    feature = values["feature"]
    periods = usage.list_usage(tenant.id, feature=feature).items
    if len(periods) != 1 or periods[0].used or not tenant.is_active:
        return
    request = usage.Request(feature=feature, amount=values["current"])
    usage.consume(tenant.id, request, actor=SYSTEM_CLI)
    start = periods[0].period_start
    for used in reversed(values["past"]):
        end, start = start, _month_before(start)
        insert_row(
            UsageCounter,
            {
                "tenant_id": tenant.id,
                "feature": feature,
                "period_start": start,
                "period_end": end,
                "used": used,
                "announced": 0,
            },
        )


def _month_before(moment: datetime) -> datetime:
    """The same day of the month before; the day is at most the 28th."""
    return (moment.replace(day=1) - timedelta(days=1)).replace(day=moment.day)


def _read_tenant(idp_org_id: str) -> dict[str, Json]:
    tenant = find_row(Tenant, idp_org_id=idp_org_id)
    if tenant is None:
        raise NotFound.of(Tenant)
    field_key, flag_key = DATA["archived_field"]["field_key"], DATA["overrides"][-1]["flag_key"]
    return {
        "tenant_id": str(tenant.id),
        "slug": tenant.slug,
        "idp_org_id": idp_org_id,
        "subscription_id": _id(_subscription(tenant)),
        "field_id": _id(find_row(CustomField, tenant_id=tenant.id, field_key=field_key)),
        "override_id": _id(find_row(FeatureOverride, tenant_id=tenant.id, flag_key=flag_key)),
        "users": [_read_member(tenant, role) for role in DATA["people"]],
    }


def _read_member(tenant: Tenant, role: str) -> dict[str, Json]:
    user = _user(tenant, role)
    membership = user and find_row(Membership, tenant_id=tenant.id, user_id=user.id)
    return {
        "id": _id(user),
        "role": membership.role if membership else role,
        "membership_id": _id(membership),
        "token": _token(_idp_user_id(tenant, role), tenant.idp_org_id),
    }


def _idp_user_id(tenant: Tenant, role: str) -> str:
    return f"{tenant.idp_org_id}_{role}".replace("org_", "user_", 1)


def _user(tenant: Tenant, role: str) -> User | None:
    return find_row(User, tenant_id=tenant.id, idp_user_id=_idp_user_id(tenant, role))


def _subscription(tenant: Tenant) -> Subscription | None:
    key = DATA["subscriptions"][tenant.idp_org_id]["bp_subscription_id"]
    return find_row(Subscription, tenant_id=tenant.id, bp_subscription_id=key)


def _id(row: Row | None) -> str | None:
    return None if row is None else str(row.id)


def _token(subject: str, org_id: str | None) -> str:
    config = current_config()
    return issue_token(config, subject=subject, org_id=org_id, ttl=TOKEN_SECONDS)

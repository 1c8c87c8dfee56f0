"""Making and reading the demo data, by the services that requests and workers use."""

from __future__ import annotations

from typing import Any, TypedDict, TypeVar

from flask import current_app
from sqlalchemy import func, select

from app.core.actors import SYSTEM_CLI
from app.core.db import tenancy
from app.core.db.models import Row
from app.core.db.transactions import transaction
from app.custom_fields import service as custom_fields
from app.custom_fields.models import CustomField
from app.dev import demo
from app.dev.tokens import issue_token
from app.extensions import db
from app.flags import overrides, presets
from app.flags.models import FeatureOverride, PlanPreset
from app.memberships import service as memberships
from app.memberships.models import Membership
from app.platform_admins import service as platform_admins
from app.subscriptions import service as subscriptions
from app.subscriptions.models import Subscription
from app.tenants import service as tenants
from app.tenants.models import Tenant
from app.users import service as users
from app.users.models import User

R = TypeVar("R", bound=Row)

TOKEN_SECONDS = 7 * 24 * 3600
LOCK = 7_021_110  # an advisory lock's number, the same in every process that seeds


class DemoUser(TypedDict):
    """One person of a demo tenant, with a token of theirs."""

    id: str
    role: str
    membership_id: str
    token: str


class DemoTenant(TypedDict):
    """One demo tenant; ids of rows that somebody has deleted are null."""

    tenant_id: str
    slug: str
    idp_org_id: str
    subscription_id: str | None
    field_id: str | None
    override_id: str | None
    users: list[DemoUser]


class Demo(TypedDict):
    """What there is to try the service with."""

    platform_token: str
    tenants: list[DemoTenant]


def seed_demo(*, only_if_new: bool = False) -> Demo:
    """Make what is missing of the demo data, and archive its archived field if it was restored.

    ``only_if_new`` leaves demo data that is there as it is.
    """
    platform_token = _token(demo.PLATFORM_SUBJECT, None)
    with transaction():
        tenancy.enter(tenancy.PLATFORM)
        db.session.execute(select(func.pg_advisory_xact_lock(LOCK)))
        if not (only_if_new and _find(Tenant, idp_org_id=demo.TENANTS[0]["idp_org_id"])):
            _make_platform()
            for values in demo.TENANTS:
                _make_tenant(values)
        return {
            "platform_token": platform_token,
            "tenants": [_read_tenant(values["idp_org_id"]) for values in demo.TENANTS],
        }


def _make_platform() -> None:
    platform_admins.add(demo.PLATFORM_SUBJECT, actor=SYSTEM_CLI)
    for name in demo.PRESETS:
        _preset(name)


def _preset(name: str) -> PlanPreset:
    known = presets.find_preset(name)
    return known or presets.create_preset(name, demo.PRESETS[name], actor=SYSTEM_CLI)


def _make_tenant(values: dict[str, Any]) -> None:
    tenant = _find(Tenant, idp_org_id=values["idp_org_id"])
    tenant = tenant or tenants.create(values, actor=SYSTEM_CLI)
    _make_subscription(tenant)
    _make_fields(tenant)
    for role, person in demo.PEOPLE.items():
        _make_member(tenant, role, person)
    _make_overrides(tenant)


def _make_subscription(tenant: Tenant) -> None:
    values = demo.SUBSCRIPTIONS[tenant.idp_org_id]
    if _subscription(tenant) is None:
        subscriptions.create(tenant.id, values, actor=SYSTEM_CLI)


def _make_fields(tenant: Tenant) -> None:
    for values in (*demo.CUSTOM_FIELDS, demo.ARCHIVED_FIELD):
        known = _find(CustomField, tenant_id=tenant.id, field_key=values["field_key"])
        field = known or custom_fields.create(
            tenant, {"entity_type": "user", **values}, actor=SYSTEM_CLI
        )
        if values is demo.ARCHIVED_FIELD:
            custom_fields.archive(field.id, actor=SYSTEM_CLI)


def _make_member(tenant: Tenant, role: str, person: dict[str, Any]) -> None:
    idp_user_id = _idp_user_id(tenant, role)
    user = _find(User, tenant_id=tenant.id, idp_user_id=idp_user_id)
    if user is None:
        values = {**person, "idp_user_id": idp_user_id, "email": f"{role}@{tenant.slug}.example"}
        user = users.create(tenant.id, values, actor=SYSTEM_CLI)
    if _find(Membership, tenant_id=tenant.id, user_id=user.id) is None:
        memberships.create(tenant.id, {"user_id": user.id, "role": role}, actor=SYSTEM_CLI)


def _make_overrides(tenant: Tenant) -> None:
    preset = _preset(demo.SUBSCRIPTIONS[tenant.idp_org_id]["plan_name"])
    for values in demo.OVERRIDES:
        if _override(tenant, values["flag_key"]) is None:
            overrides.create_override(
                tenant.id, **values, plan_preset_id=preset.id, actor=SYSTEM_CLI
            )


def _read_tenant(idp_org_id: str) -> DemoTenant:
    tenant = db.session.execute(select(Tenant).filter_by(idp_org_id=idp_org_id)).scalar_one()
    key = demo.ARCHIVED_FIELD["field_key"]
    return {
        "tenant_id": str(tenant.id),
        "slug": tenant.slug,
        "idp_org_id": idp_org_id,
        "subscription_id": _id(_subscription(tenant)),
        "field_id": _id(_find(CustomField, tenant_id=tenant.id, field_key=key)),
        "override_id": _id(_override(tenant, demo.OVERRIDES[-1]["flag_key"])),
        "users": [_read_member(tenant, role) for role in demo.PEOPLE],
    }


def _read_member(tenant: Tenant, role: str) -> DemoUser:
    idp_user_id = _idp_user_id(tenant, role)
    members = (
        select(User.id, Membership.role, Membership.id.label("membership_id"))
        .join(
            Membership, (Membership.tenant_id == User.tenant_id) & (Membership.user_id == User.id)
        )
        .where(User.tenant_id == tenant.id, User.idp_user_id == idp_user_id)
    )
    member = db.session.execute(members).one()
    return {
        "id": str(member.id),
        "role": member.role,
        "membership_id": str(member.membership_id),
        "token": _token(idp_user_id, tenant.idp_org_id),
    }


def _idp_user_id(tenant: Tenant, role: str) -> str:
    return f"{tenant.idp_org_id}_{role}".replace("org_", "user_", 1)


def _subscription(tenant: Tenant) -> Subscription | None:
    key = demo.SUBSCRIPTIONS[tenant.idp_org_id]["bp_subscription_id"]
    return _find(Subscription, tenant_id=tenant.id, bp_subscription_id=key)


def _override(tenant: Tenant, flag_key: str) -> FeatureOverride | None:
    return _find(FeatureOverride, tenant_id=tenant.id, flag_key=flag_key)


def _id(row: Row | None) -> str | None:
    return None if row is None else str(row.id)


def _find(model: type[R], **equal: Any) -> R | None:
    return db.session.execute(select(model).filter_by(**equal)).scalar()


def _token(subject: str, org_id: str | None) -> str:
    config = current_app.extensions["config"]
    return issue_token(config, subject=subject, org_id=org_id, ttl=TOKEN_SECONDS)

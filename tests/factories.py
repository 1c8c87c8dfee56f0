"""Rows and credentials for tests: ``create_x(**values)`` with everything left out made up.

Each call is a transaction of its own, committed, as the service would see it.
"""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID

from flask import Flask
from uuid_utils.compat import uuid7

from app.auth.keys import KEY_PREFIX, digest_of
from app.auth.models import ApiKey, PlatformAdmin
from app.auth.permissions import Role
from app.cli.tokens import HOUR, issue_token
from app.core.actors import SYSTEM_CLI
from app.core.clock import utcnow
from app.core.db.writes import insert_row
from app.credits.models import CreditBalance, CreditLot
from app.domains.models import Domain, JoinRequest
from app.flags.models import FeatureOverride
from app.invitations.models import Invitation
from app.log_streams import service as log_streams
from app.log_streams.models import LogStream
from app.memberships.models import Membership
from app.plans.models import PlanPreset
from app.rewinds.models import Rewind
from app.roles.models import AccessResource, AccessRole, ProductPermission, RoleAssignment
from app.setup_links.models import SetupLink
from app.sso_connections import service as sso_connections
from app.sso_connections.models import SsoConnection
from app.subscriptions.models import Subscription
from app.subscriptions.statuses import with_class
from app.tenants.models import Tenant
from app.usage.models import UsageCounter, UsageHold
from app.users.emails import email_key
from app.users.models import User
from app.webhooks.deliveries.models import DeliveryStatus, WebhookDelivery
from app.webhooks.endpoints import service as webhook_endpoints
from app.webhooks.endpoints.models import WebhookEndpoint
from tests import database
from tests.database import platform_transaction

PLATFORM_SUBJECT = "platform-operator"
BY_COMMAND = {"created_by_user_id": SYSTEM_CLI.id, "updated_by_user_id": SYSTEM_CLI.id}

_numbers = count(1)
_app: Flask


def bind(app: Flask) -> None:
    """Create in this application's database from now on."""
    global _app
    _app = app
    database.bind(app)


@contextmanager
def bound(app: Flask) -> Iterator[None]:
    """Create in this application's database while the block runs, then where it was before."""
    before = globals().get("_app")  # none where a proof runs as a command
    bind(app)
    try:
        yield
    finally:
        if before is not None:
            bind(before)


def save(model: Any, **values: Any) -> Any:
    """Insert a row of any model and return it."""
    with platform_transaction():
        return insert_row(model, values)


def create_tenant(**values: Any) -> Tenant:
    number = next(_numbers)
    defaults = {
        "idp_org_id": f"org_{number}",
        "name": f"Tenant {number}",
        "slug": f"tenant-{number}",
        "plan_name": "free",
    }
    return save(Tenant, **defaults | values)


def create_user(tenant: Tenant, **values: Any) -> User:
    number = next(_numbers)
    defaults = {
        "tenant_id": tenant.id,
        "idp_org_id": tenant.idp_org_id,
        "idp_user_id": f"user_{number}",
        "email": f"person{number}@example.com",
        "created_by_user_id": SYSTEM_CLI.id,
        "updated_by_user_id": SYSTEM_CLI.id,
    }
    values = defaults | values
    return save(User, **{"email_key": email_key(values["email"]), **values})


def create_membership(
    tenant: Tenant, user: User, role: str = Role.OWNER, **values: Any
) -> Membership:
    defaults = {
        "tenant_id": tenant.id,
        "idp_org_id": tenant.idp_org_id,
        "user_id": user.id,
        "role": str(role),
        "created_by_user_id": SYSTEM_CLI.id,
        "updated_by_user_id": SYSTEM_CLI.id,
    }
    return save(Membership, **defaults | values)


def create_member(
    tenant: Tenant, role: str = Role.ADMIN, **values: Any
) -> tuple[User, Membership, str]:
    """A user with a membership, and a token of theirs."""
    user = create_user(tenant, **values)
    return user, create_membership(tenant, user, role), user_token(user)


def user_token(user: User, *, ttl: float = HOUR) -> str:
    """A token of ``user`` in their own organization."""
    config = _app.extensions["config"]
    return issue_token(config, subject=user.idp_user_id, org_id=user.idp_org_id, ttl=ttl)


def create_invitation(tenant_id: UUID, **values: Any) -> Invitation:
    email = values.get("email", f"invited{next(_numbers)}@example.com")
    defaults = {
        "tenant_id": tenant_id,
        "email": email,
        "email_key": email_key(email),
        "role": "member",
        "acts_as": "owner",
        "expires_at": utcnow() + timedelta(days=1),
        "created_by_user_id": SYSTEM_CLI.id,
        "updated_by_user_id": SYSTEM_CLI.id,
    }
    return save(Invitation, **defaults | values)


def create_setup_link(tenant_id: UUID, **values: Any) -> SetupLink:
    """A link that nobody can open, because nobody knows its token."""
    defaults = {
        "tenant_id": tenant_id,
        "scopes": ["scim"],
        "digest": digest_of(secrets.token_hex()),
        "expires_at": utcnow() + timedelta(days=1),
        "created_by_user_id": SYSTEM_CLI.id,
        "updated_by_user_id": SYSTEM_CLI.id,
    }
    return save(SetupLink, **defaults | values)


def create_rewind(tenant_id: UUID, **values: Any) -> Rewind:
    """A finished rewind."""
    defaults = {
        "tenant_id": tenant_id,
        "created_by_user_id": SYSTEM_CLI.id,
        "state": "completed",
        "to_position": 0,
        "to_time": utcnow(),
        "kinds": ["users"],
        "finished_at": utcnow(),
    }
    return save(Rewind, **defaults | values)


def person_token(subject: str, email: str | None = None) -> str:
    """A token of a person, who may be nowhere a member, with a verified address."""
    return issue_token(_app.extensions["config"], subject=subject, email=email)


def platform_token(*, subject: str = PLATFORM_SUBJECT, tenant: Tenant | None = None) -> str:
    """A token of a platform superadmin, whose home is ``tenant`` if there is one."""
    admins = database.query("SELECT FROM platform_admins WHERE subject = :subject", subject=subject)
    if not admins:
        save(PlatformAdmin, subject=subject)
    org_id = None if tenant is None else tenant.idp_org_id
    return issue_token(_app.extensions["config"], subject=subject, org_id=org_id)


def create_api_key(
    tenant: Tenant | None = None, permissions: Sequence[str] = (), **values: Any
) -> str:
    """The secret of a new API key; a platform key where no tenant is given."""
    secret = KEY_PREFIX + secrets.token_urlsafe(32)
    defaults = {
        "tenant_id": None if tenant is None else tenant.id,
        "name": "test",
        "digest": digest_of(secret),
        "prefix": secret[:8],
        "permissions": [str(permission) for permission in permissions],
        "created_by_user_id": SYSTEM_CLI.id,
        "updated_by_user_id": SYSTEM_CLI.id,
    }
    save(ApiKey, **defaults | values)
    return secret


def create_role(tenant: Tenant | None, *permissions: str, **values: Any) -> AccessRole:
    """A role of the tenant with these permissions; without a tenant a template."""
    key = values.get("key", f"role-{next(_numbers)}")
    defaults = {
        "tenant_id": None if tenant is None else tenant.id,
        "key": key,
        "name": key,
        "permissions": [str(permission) for permission in permissions],
        "assignable_by": "admin",
        "created_by_user_id": SYSTEM_CLI.id,
        "updated_by_user_id": SYSTEM_CLI.id,
    }
    return save(AccessRole, **defaults | values)


def create_assignment(tenant: Tenant, role: AccessRole | str, **values: Any) -> RoleAssignment:
    """An assignment of a role, or of a template by its key; ``values`` say to whom."""
    if isinstance(role, str):
        role = database.row(AccessRole, tenant_id=None, key=role)
    resource = values.pop("resource", None)
    if resource is not None:
        values |= {"resource_type": resource.type, "resource_id": resource.id}
    defaults = {
        "tenant_id": tenant.id,
        "role_id": role.id,
        "source": "api",
        "created_by_user_id": SYSTEM_CLI.id,
        "updated_by_user_id": SYSTEM_CLI.id,
    }
    return save(RoleAssignment, **defaults | values)


def create_subscription(tenant: Tenant, **values: Any) -> Subscription:
    """A live subscription; the tenant's plan is left as it is."""
    number = next(_numbers)
    defaults = {
        "tenant_id": tenant.id,
        "bp_subscription_id": f"sub_{number}",
        "bp_customer_id": f"cus_{number}",
        "bp_plan_id": "price_1",
        "bp_status": "active",
        "plan_name": tenant.plan_name,
        "start_date": datetime(2026, 1, 1, tzinfo=UTC),
        "billing_cycle": "monthly",
        "per_cycle_billing_amount": 4900,
    }
    return save(Subscription, **with_class(defaults | values))


def create_preset(name: str = "free", **defaults: Any) -> PlanPreset:
    """A preset with a flag for each keyword, named with ``_`` for ``-``, of its value's type."""
    flags = [preset_flag(key.replace("_", "-"), value) for key, value in defaults.items()]
    return save(PlanPreset, name=name, flags=flags)


def preset_flag(flag_key: str, default_value: Any, *, is_locked: bool = False) -> dict[str, Any]:
    kinds = {bool: "boolean", str: "string", int: "number", float: "number"}
    return {
        "flag_key": flag_key,
        "flag_type": kinds.get(type(default_value), "json"),
        "default_value": default_value,
        "description": "",
        "is_locked": is_locked,
    }


def limit_flag(
    flag_key: str = "calls",
    most: int = 100,
    *,
    period: str = "none",
    policy: str = "hard",
    warn_at: Sequence[int] = (80, 100),
    **metering: Any,
) -> dict[str, Any]:
    return {
        **preset_flag(flag_key, most, is_locked=True),
        "flag_type": "limit",
        "metering": {"period": period, "policy": policy, "warn_at": list(warn_at), **metering},
    }


def credits_flag(
    flag_key: str, grants: int, *, period: str = "none", **more: Any
) -> dict[str, Any]:
    """A limit of the kind credits, of which the plan grants so many in each period."""
    flag = limit_flag(flag_key, grants, period=period)
    return {**flag, "metering": {**flag["metering"], "kind": "credits", **more}}


def create_limits(name: str = "free", *limits: dict[str, Any]) -> PlanPreset:
    """A preset with these limits; by default one limit, ``calls``."""
    return save(PlanPreset, name=name, flags=list(limits or [limit_flag()]))


def create_lot(tenant_id: UUID, feature: str = "tokens", amount: int = 1000) -> CreditLot:
    """Purchased credits, the only ones of the feature."""
    now = utcnow()
    own = {"tenant_id": tenant_id, "feature": feature}
    amounts = {"granted": amount, "remaining": amount, "spent": 0, "untold": 0, "priority": 100}
    save(CreditBalance, **own, balance=amount, told={})
    moments = {"created_at": now, "starts_at": now, "version": 1}
    return save(CreditLot, **own, **amounts, **moments, id=uuid7(), source="purchase")


def create_override(
    tenant: Tenant, preset: PlanPreset, flag_key: str, flag_value: Any, **values: Any
) -> FeatureOverride:
    defaults = {
        "tenant_id": tenant.id,
        "plan_preset_id": preset.id,
        "flag_key": flag_key,
        "flag_value": flag_value,
    }
    return save(FeatureOverride, **defaults | values)


def create_domain(tenant: Tenant, **values: Any) -> Domain:
    """A domain that nobody looks at, and that lets nobody in."""
    name = values.get("name", f"domain{next(_numbers)}.example.com")
    record = {"record_name": f"_controlplane-challenge.{name}", "record_value": f"token of {name}"}
    rule = {"join": "off", "join_role": "member", "include_subdomains": False, "enforce_sso": False}
    actors = {"created_by_user_id": SYSTEM_CLI.id, "updated_by_user_id": SYSTEM_CLI.id}
    defaults = {"tenant_id": tenant.id, "name": name, "display_name": name}
    return save(Domain, **defaults | record | rule | actors | values)


def create_join_request(tenant: Tenant, **values: Any) -> JoinRequest:
    number = next(_numbers)
    defaults = {
        "tenant_id": tenant.id,
        "domain": "example.com",
        "idp_user_id": f"newcomer_{number}",
        "email": f"newcomer{number}@example.com",
        "first_name": "",
        "last_name": "",
        "state": "pending",
        "created_by_user_id": "system:idp",
        "updated_by_user_id": "system:idp",
    }
    return save(JoinRequest, **defaults | values)


def create_hold(tenant_id: UUID, **values: Any) -> UsageHold:
    """A hold that was settled, in a period of its own."""
    now = datetime.now(UTC)
    period = {"feature": "api-calls", "period_start": now, "period_end": now}
    save(UsageCounter, tenant_id=tenant_id, **period, used=1, announced=0)
    moments = dict.fromkeys(("created_at", "expires_at", "ended_at", "period_start"), now)
    amounts = {"amount": 1, "counted": 1, "over_by": 0, "ttl_seconds": 300}
    state = {"kind": "hold", "state": "settled", "is_late": False}
    defaults = {"id": uuid7(), "feature": "api-calls", **moments, **amounts, **state}
    return save(UsageHold, tenant_id=tenant_id, **defaults | values)


def create_sso_connection(tenant_id: UUID, **values: Any) -> SsoConnection:
    """An active SSO connection of WorkOS."""
    key = f"conn_{next(_numbers)}"
    defaults = {"name": "Okta", "provider": "Okta", "type": "saml", "state": "active"}
    said = {"domains": ["acme.example"], "certificate_ends_at": None, **defaults, **values}
    with platform_transaction():
        sso_connections.mirror(tenant_id, "workos", key, said)
    return database.row(SsoConnection, tenant_id=tenant_id, source="workos", idp_connection_id=key)


def create_log_stream(tenant_id: UUID | None = None, **values: Any) -> LogStream:
    """A paused stream to an https target, of the platform without ``tenant_id``."""
    defaults: dict[str, Any] = {
        "kind": "https",
        "config": {"url": "https://logs.example.com/ingest"},
        "types": ["*"],
        "state": "paused",
    }
    with platform_transaction():
        return log_streams.create(tenant_id=tenant_id, **defaults | values, actor=SYSTEM_CLI)


def create_webhook_endpoint(tenant_id: UUID) -> WebhookEndpoint:
    """An endpoint with a failed delivery."""
    with platform_transaction():
        endpoint, _ = webhook_endpoints.create(
            url="https://hooks.example.com/",
            types=["user.*"],
            tenant_id=tenant_id,
            actor=SYSTEM_CLI,
        )
    save(
        WebhookDelivery,
        tenant_id=tenant_id,
        endpoint_id=endpoint.id,
        event_id=uuid7(),
        type="user.created",
        status=DeliveryStatus.FAILED.value,
        next_attempt_at=None,
    )
    return endpoint


def create_permission(key: str, **values: Any) -> ProductPermission:
    """A permission of the product."""
    texts = {"description": "", "group_name": ""}
    return save(ProductPermission, key=key, **texts | BY_COMMAND | values)


def create_resource(
    tenant: Tenant, type_: str, id_: str, *, parent: AccessResource | None = None, **attributes: Any
) -> AccessResource:
    """A resource; its type and id name it."""
    place = {"type": type_, "id": id_, "attributes": attributes}
    if parent is not None:
        place |= {"parent_type": parent.type, "parent_id": parent.id}
    return save(AccessResource, tenant_id=tenant.id, **place, **BY_COMMAND)

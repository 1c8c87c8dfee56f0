"""A request for each operation that changes something.

The operations come from the OpenAPI document. :data:`VALUES` has values for an operation whose
example in the document changes nothing.
"""

import json
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from flask import Flask
from uuid_utils.compat import uuid7
from werkzeug.test import TestResponse

from app.api_keys import service as api_keys
from app.auth.permissions import Permission, Role
from app.billing.models import BillingCustomer
from app.connections import service as scim
from app.core.actors import SYSTEM_CLI, SYSTEM_IDP, Actor
from app.core.clock import utcnow
from app.dev.demo.seed import seed_demo
from app.domains import joining
from app.domains import service as domains
from app.domains.joining import Newcomer
from app.domains.models import Join
from app.emails.models import Suppression
from app.identity_sync.models import IdentityObject
from app.imports.models import Import
from app.inbox.models import Status, WebhookEvent
from app.invitations import service as invitations
from app.plans.models import PlanPrice
from app.rewinds.models import Rewind
from app.roles import role_assignments
from app.roles import service as roles
from app.setup_links import service as setup_links
from app.setup_links.models import SetupScope
from app.tenants.models import Tenant
from app.users import service as users
from app.users.models import User
from app.webhooks.deliveries.models import WebhookDelivery
from tests.database import execute, platform_transaction, query, row
from tests.document import Operation, find_row, operations
from tests.factories import (
    create_domain,
    create_hold,
    create_invitation,
    create_join_request,
    create_log_stream,
    create_lot,
    create_permission,
    create_preset,
    create_resource,
    create_sso_connection,
    create_tenant,
    create_webhook_endpoint,
    credits_flag,
    save,
)
from tests.imports.files import MEDIA_TYPE, as_file, tenant_line

ADMIN = Actor("key:demo", Role.ADMIN)
CONNECTION = {
    "provider": "generic",
    "default_role": "member",
    "group_roles": {},
    "deactivate": "membership",
}
# These read by POST.
QUESTIONS = {
    "POST /access/v1/evaluation",
    "POST /access/v1/evaluations",
    "POST /access/v1/search/action",
    "POST /access/v1/search/resource",
    "POST /access/v1/search/subject",
    "POST /v1/billing/plans/{preset_id}/preview",
    "POST /v1/billing/plans/{preset_id}/flags/{key}/preview",
    "POST /v1/custom-fields/validate",
    "POST /v1/imports/check",
    "POST /v1/scim-connections/{connection_id}/test",
    "POST /v1/usage/check",
    "POST /ofrep/v1/evaluate/flags",
    "POST /ofrep/v1/evaluate/flags/{key}",
}
# They write no audit row unless a threshold is crossed or a hold exceeded.
COUNTERS = {
    "POST /v1/usage/consume",
    "POST /v1/usage/holds",
    "POST /v1/usage/holds/{hold_id}/settle",
    "POST /v1/usage/holds/{hold_id}/extend",
    "DELETE /v1/usage/holds/{hold_id}",
    "POST /v1/usage/leases",
    "PUT /v1/usage/leases/{lease_id}",
}
# It needs an API key of the provider.
COMPARISONS = {"POST /v1/billing/providers/{provider}/reconcile"}
# It needs the token of an invited person.
ACCEPTANCE = {"POST /v1/invitations/accept"}
# They store what a provider sent; the jobs that apply it make the changes.
RECEIVERS = {
    "POST /webhooks/idp",
    "POST /webhooks/billing/{provider}",
    "POST /v1/app-communications/webhooks/emailprovider",
}


def changes(app: Flask) -> list[Operation]:
    """Every operation that changes something."""
    document = app.test_client().get("/openapi.json").get_json()
    found = [
        one
        for one in operations(document)
        if one.is_change
        and one.name not in QUESTIONS | COUNTERS | COMPARISONS | ACCEPTANCE | RECEIVERS
    ]
    assert len(found) > 20
    return found


def make_world(app: Flask) -> dict[str, Any]:
    """The demo data, and a row of each table that the demo data leaves empty."""
    with app.app_context():
        demo = seed_demo()
    tenant = demo["tenants"][0]

    tenant_id = UUID(tenant["tenant_id"])
    with platform_transaction():
        api_keys.create(
            name="deploy",
            permissions=[Permission.USERS_READ],
            tenant_id=tenant_id,
            actor=SYSTEM_CLI,
        )
        for name in ("first", "second"):
            scim.create(tenant_id, {"name": name, **CONNECTION}, actor=ADMIN)
        invitation = {"email": "grace@example.com", "role": Role.MEMBER, "meta_data": {}}
        invitations.create(tenant_id, {**invitation, "expires_in_days": 7}, actor=SYSTEM_CLI)
        rule = {"name": "example.org", "join": Join.SUGGEST, "join_role": Role.MEMBER}
        facts = {"include_subdomains": False, "enforce_sso": False}
        domain = domains.create(tenant_id, {**rule, **facts}, actor=SYSTEM_CLI)
        joining.admit_to(domain, Newcomer("suggested", "suggested@example.org"), actor=SYSTEM_IDP)
        setup_links.create(
            tenant_id, [SetupScope.SCIM], lifetime=timedelta(hours=1), actor=SYSTEM_CLI
        )
        newcomer = users.create(
            tenant_id, {"idp_user_id": "newcomer", "email": "new@example.com"}, actor=SYSTEM_CLI
        )
    save(
        Suppression,
        address="ada@example.com",
        cause="complaint",
        scope="",
        source="test",
        suppressed_at=utcnow() - timedelta(days=1),
        is_active=True,
    )
    save(
        WebhookEvent,
        source="standard_webhooks",
        external_id="evt_1",
        event_type="user.created",
        status=Status.FAILED.value,
        headers={},
        body=b"{}",
        digest="",
        request_id="",
    )
    create_webhook_endpoint(tenant_id)
    create_log_stream(tenant_id, state="active", types=["user.*"])
    create_sso_connection(tenant_id)
    make_role(tenant, "clerk", member=tenant["users"][3]["membership_id"])
    create_permission("invoices:approve")
    create_resource(row(Tenant, id=tenant_id), "folder", "folder")  # one name for its whole path
    create_hold(tenant_id)
    create_lot(tenant_id)
    execute(
        "UPDATE plan_presets SET flags = (flags::jsonb || CAST(:flag AS jsonb))::json",
        flag=json.dumps(credits_flag("ai-credits", 0)),
    )
    save(Import, created_by_user_id="cli:root")
    rewind = {"created_by_user_id": "cli:root", "to_position": 1, "to_time": utcnow()}
    save(Rewind, tenant_id=tenant_id, kinds=["users"], finished_at=utcnow(), **rewind)
    save(PlanPrice, provider="stripe", price_id="price_1", plan_name="free")
    customer = {"provider": "stripe", "customer_id": "stripe", "is_manual": True}
    save(BillingCustomer, tenant_id=tenant_id, **customer)
    return {**tenant, "token": demo["platform_token"], "newcomer": newcomer}


def make_role(world: dict[str, Any], key: str, *, member: str = "") -> str:
    """A role of the tenant, which the member has; the id of the assignment, or else of the role."""
    tenant_id = UUID(world["tenant_id"])
    with platform_transaction():
        values = {"key": key, "name": key, "permissions": [], "assignable_by": Role.ADMIN}
        role = roles.create(tenant_id, values, actor=SYSTEM_CLI)
        if not member:
            return str(role.id)
        values = {"role": key, "membership_id": UUID(member)}
        return str(role_assignments.create(tenant_id, values, actor=SYSTEM_CLI).id)


def fields_of(api, world):
    query = {"tenant_id": world["tenant_id"], "entity_type": "user"}
    listed = api.get("/v1/custom-fields", token=world["token"], query_string=query)
    return [field["id"] for field in listed.get_json()["data"]]


def ended_tenant(api: Any, world: dict[str, Any], *, is_deleted: bool = False) -> dict[str, Any]:
    """The path and the body of a suspended tenant, whose deletion may be requested already."""
    tenant = create_tenant(is_active=False)
    body = {"slug": tenant.slug}
    if is_deleted:
        api.delete(f"/v1/tenants/{tenant.id}", token=world["token"], json=body)
    return {"row_id": str(tenant.id), "json": body}


def archived_field(api: Any, world: dict[str, Any]) -> str:
    field_id = fields_of(api, world)[0]
    api.post(f"/v1/custom-fields/{field_id}/archive", token=world["token"])
    return field_id


def swept_domain(world: dict[str, Any]) -> str:
    """A verified domain that suggests somebody whom the identity provider knows."""
    tenant = row(Tenant, id=UUID(world["tenant_id"]))
    place = ["2026", "x"]
    state = {"place": place, "exists": True, "attributes": {"email": ["old@example.net", place]}}
    key = {"source": "workos", "kind": "user", "object_id": "known"}
    if not query("SELECT FROM identity_objects WHERE object_id = 'known'"):
        known = {"verified_domain": "net.example", "is_deleted": False}
        save(IdentityObject, **key, **known, state={**state, "ended": None})
    execute("UPDATE tenants SET is_active = true WHERE id = :id", id=tenant.id)
    domain = create_domain(tenant, name="example.net", state="verified", join="suggest")
    return str(domain.id)


def request_of_member(world: dict[str, Any]) -> str:
    """The request of somebody who has become a member since: no seat is needed."""
    member = row(User, id=UUID(world["users"][0]["id"]))
    tenant = row(Tenant, id=member.tenant_id)
    return str(create_join_request(tenant, idp_user_id=member.idp_user_id, email=member.email).id)


def failed_delivery(world: dict[str, Any]) -> str:
    endpoint = create_webhook_endpoint(UUID(world["tenant_id"]))
    return str(row(WebhookDelivery, endpoint_id=endpoint.id).id)


def invited(api: Any, world: dict[str, Any]) -> dict[str, Any]:
    return {"row_id": str(create_invitation(UUID(world["tenant_id"])).id)}


def moment_of(api: Any) -> str:
    """Now, when all changes have positions."""
    api.sequence()
    return str(utcnow().isoformat())


def fresh(what: str) -> str:
    """A name that nothing else has."""
    return f"{what}-{uuid7().hex}"


def unused_permission() -> str:
    key = fresh("unused")
    create_permission(key)
    return key


def unused_resource(world: dict[str, Any]) -> str:
    key = fresh("unused")
    create_resource(row(Tenant, id=UUID(world["tenant_id"])), key, key)
    return key


VALUES = {
    "PUT /v1/permissions/{permission_key}": lambda api, world: {"row_id": fresh("new")},
    "DELETE /v1/permissions/{permission_key}": lambda api, world: {"row_id": unused_permission()},
    "POST /v1/roles": lambda api, world: {
        "json": {"key": "accountant", "name": "Accountant", "permissions": ["invoices:approve"]}
    },
    "PATCH /v1/roles/{role_id}": lambda api, world: {"json": {"name": "Renamed"}},
    "DELETE /v1/roles/{role_id}": lambda api, world: {"row_id": make_role(world, fresh("unused"))},
    "POST /v1/role-assignments": lambda api, world: {
        "json": {"membership_id": world["users"][1]["membership_id"], "role": "viewer"}
    },
    "DELETE /v1/role-assignments/{role_assignment_id}": lambda api, world: {
        "row_id": make_role(world, fresh("unused"), member=world["users"][2]["membership_id"])
    },
    "PUT /v1/resources/{resource_type}/{resource_id}": lambda api, world: {
        "row_id": fresh("new"),
        "json": {"attributes": {"status": "open"}},
    },
    "DELETE /v1/resources/{resource_type}/{resource_id}": lambda api, world: {
        "row_id": unused_resource(world)
    },
    "DELETE /v1/tenants/{tenant_id}": ended_tenant,
    "POST /v1/tenants/{tenant_id}/restore": lambda api, world: {
        "row_id": ended_tenant(api, world, is_deleted=True)["row_id"]
    },
    "POST /v1/tenants/{tenant_id}/rewind": lambda api, world: {
        "json": {"to": moment_of(api), "dry_run": False}
    },
    "DELETE /v1/billing/plans/{preset_id}": lambda api, world: {
        "row_id": str(create_preset("unused").id)
    },
    "PUT /v1/billing/customers/{provider}/{customer_id}": lambda api, world: {
        "row_id": "polar",
        "json": {"tenant_id": world["tenant_id"]},
    },
    "DELETE /v1/billing/customers/{provider}/{customer_id}": lambda api, world: {
        "row_id": "stripe"
    },
    "PUT /v1/billing/prices": lambda api, world: {
        "json": {"provider": "stripe", "price_id": "price_2", "plan_name": "free"}
    },
    "DELETE /v1/custom-fields/{field_id}": lambda api, world: {
        "row_id": archived_field(api, world)
    },
    "PATCH /v1/log-streams/{stream_id}": lambda api, world: {"json": {"description": "Archive"}},
    "DELETE /v1/log-streams/{stream_id}": lambda api, world: {
        "row_id": str(create_log_stream(UUID(world["tenant_id"])).id)
    },
    "DELETE /v1/webhook-endpoints/{endpoint_id}": lambda api, world: {
        "row_id": str(create_webhook_endpoint(UUID(world["tenant_id"])).id)
    },
    "PATCH /v1/domains/{domain_id}": lambda api, world: {"json": {"enforce_sso": True}},
    "DELETE /v1/domains/{domain_id}": lambda api, world: {
        "row_id": str(create_domain(row(Tenant, id=UUID(world["tenant_id"]))).id)
    },
    "POST /v1/domains/{domain_id}/sweep": lambda api, world: {
        "row_id": swept_domain(world),
        "query": {"preview": "false", "after": ""},
    },
    "POST /v1/join-requests/{join_request_id}/accept": lambda api, world: {
        "row_id": request_of_member(world)
    },
    "POST /v1/join-requests/{join_request_id}/decline": lambda api, world: {
        "row_id": str(create_join_request(row(Tenant, id=UUID(world["tenant_id"]))).id)
    },
    "POST /v1/imports": lambda api, world: {
        "data": as_file(tenant_line("imported")),
        "content_type": MEDIA_TYPE,
    },
    "PATCH /v1/scim-connections/{connection_id}": lambda api, world: {"json": {"name": "Renamed"}},
    "PATCH /v1/tenants/{tenant_id}": lambda api, world: {"json": {"name": "Renamed"}},
    "PATCH /v1/tenants/{tenant_id}/meta_data": lambda api, world: {
        "json": {"patches": {"segment": "Renamed"}}
    },
    "PATCH /v1/users/{user_id}": lambda api, world: {"json": {"first_name": "Renamed"}},
    "PATCH /v1/tenants/{tenant_id}/active": lambda api, world: {"query": {"is_active": "false"}},
    "PATCH /v1/users/{user_id}/meta_data": lambda api, world: {
        "json": {"patches": {"nickname": "Renamed"}}
    },
    "POST /v1/memberships/tenant": lambda api, world: {
        "json": {"user_id": str(world["newcomer"].id), "role": "viewer"}
    },
    "PATCH /v1/memberships/tenant/{membership_id}/role": lambda api, world: {
        "query": {"role": "billing"}
    },
    "PATCH /v1/memberships/tenant/{membership_id}/active": lambda api, world: {
        "query": {"is_active": "false"}
    },
    "PATCH /v1/billing/subscriptions/{subscription_id}": lambda api, world: {
        "json": {"billing_city": "Renamed"}
    },
    "POST /v1/billing/plans": lambda api, world: {"json": {"name": "enterprise"}},
    "POST /v1/credits/grants": lambda api, world: {
        "json": {
            "feature": "ai-credits",
            "amount": 5,
            "source": "promotion",
            "tenant_id": world["tenant_id"],
        }
    },
    "POST /v1/invitations": lambda api, world: {
        "json": {
            "email": "invited@example.com",
            "role": "member",
            "tenant_id": world["tenant_id"],
        }
    },
    "POST /v1/invitations/{invitation_id}/resend": invited,
    "DELETE /v1/invitations/{invitation_id}": invited,
    "POST /v1/setup-links": lambda api, world: {
        "json": {"scopes": ["scim"], "tenant_id": world["tenant_id"]}
    },
    "PUT /v1/usage/{feature}": lambda api, world: {"row_id": "api-calls"},
    "PATCH /v1/billing/plans/{preset_id}": lambda api, world: {"json": {"display_name": "Renamed"}},
    "POST /v1/billing/flags/overrides": lambda api, world: {
        "json": {"flag_key": "seats", "flag_value": 7}
    },
    "PATCH /v1/billing/flags/overrides/{override_id}": lambda api, world: {
        "json": {"flag_value": 8}
    },
    "POST /v1/custom-fields/reorder": lambda api, world: {
        "json": {"entity_type": "user", "field_ids": fields_of(api, world)[::-1]}
    },
    "POST /v1/custom-fields": lambda api, world: {
        "json": {
            "entity_type": "user",
            "field_key": "new_field",
            "label": "New",
            "field_type": "text",
        }
    },
    "PATCH /v1/custom-fields/{field_id}": lambda api, world: {"json": {"label": "Renamed"}},
    "POST /v1/custom-fields/{field_id}/archive": lambda api, world: {
        "row_id": fields_of(api, world)[0]
    },
    "POST /v1/webhook-deliveries/{delivery}/resend": lambda api, world: {
        "row_id": failed_delivery(world)
    },
    "POST /v1/custom-fields/{field_id}/restore": lambda api, world: {"row_id": world["field_id"]},
}


def prepare(api: Any, world: dict[str, Any], operation: Operation) -> Callable[..., TestResponse]:
    """A function that sends the request, as a platform superadmin and in the first demo tenant."""
    given = VALUES.get(operation.name, lambda *_: {})(api, world)
    query = {**operation.query, **given.get("query", {})}
    if operation.takes_a_tenant:
        query["tenant_id"] = world["tenant_id"]
    row_id = given.get("row_id", "")
    if operation.names_a_row and not row_id:
        row_id = find_row(api, operation, world["tenant_id"], world["token"])
    body = {name: given[name] for name in ("data", "content_type") if name in given}
    return partial(
        api.request,
        operation.method.upper(),
        operation.path_of(row_id),
        token=world["token"],
        query_string=query,
        **(body or {"json": given.get("json", operation.body)}),
    )

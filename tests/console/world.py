"""One row of each kind, and the addresses of all pages that can be read."""

import re
import time
from datetime import timedelta
from typing import Any

from flask import Flask
from werkzeug.routing import Rule

from app.auth.permissions import Permission
from app.billing.models import BillingCustomer
from app.core.actors import SYSTEM_CLI
from app.core.clock import utcnow
from app.credits import service as credits
from app.events.models import Event
from app.identity_sync import sync
from app.identity_sync.events import Change, UserEvent
from app.imports.models import Import, ImportFault
from app.inbox.models import WebhookEvent
from app.plans.models import PlanPrice
from app.rewinds.models import Rewind
from app.usage import holds
from app.usage.models import EPOCH, UsageCounter, UsageDay
from app.webhooks.deliveries.models import WebhookDelivery
from tests import database
from tests.custom_fields.fields import create_field
from tests.database import platform_transaction
from tests.factories import (
    create_api_key,
    create_assignment,
    create_domain,
    create_invitation,
    create_join_request,
    create_limits,
    create_log_stream,
    create_member,
    create_override,
    create_permission,
    create_resource,
    create_role,
    create_setup_link,
    create_sso_connection,
    create_subscription,
    create_webhook_endpoint,
    credits_flag,
    limit_flag,
    platform_token,
    preset_flag,
    save,
)
from tests.scim.directory import create_connection

ATTACK = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{7*7}}"
# They need more than the ids of rows: a secret, an address, or a row in another state.
ADDRESS = "<img/src=x>@example.com"  # which no address forbids
RULE = {"join": "suggest", "join_role": "member"}
LEFT_OUT_NAMES = """
    begin_oidc confirm_link finish_oidc read_asset read_brand remove_suppression restore_field
    sign_in unknown_page
"""
LEFT_OUT = {f"console.{name}" for name in LEFT_OUT_NAMES.split()}


def create_world(tenant: Any) -> dict[str, Any]:
    """Rows of a tenant; the ids by the names that they have in the addresses."""
    flags = (
        *({**limit_flag(), "description": ATTACK}, credits_flag("tokens", 100)),
        *(preset_flag("theme", "plain"), preset_flag("beta", False)),
    )
    preset = create_limits("free", *flags)
    user, membership, _ = create_member(tenant, "owner", first_name="Ines", last_name="Okafor")
    create_override(tenant, preset, "theme", "rich")
    create_api_key(tenant, [Permission.USERS_READ])
    ((key_id,),) = database.query("SELECT id FROM api_keys")
    endpoint, event = create_webhook_endpoint(tenant.id), _event(tenant)
    database.execute("UPDATE webhook_deliveries SET event_id = :id", id=event.id)
    customer = {"provider": "stripe", "customer_id": "cus_1"}
    save(BillingCustomer, tenant_id=tenant.id, **customer, is_manual=True)
    price = save(PlanPrice, provider="stripe", price_id="price_1", plan_name="free")
    create_sso_connection(tenant.id, name=ATTACK, certificate_ends_at=utcnow())
    return {
        **customer,
        **_metered(tenant),
        **_roles(tenant, membership),
        "price_id": price.id,
        "tenant_id": tenant.id,
        "idp_org_id": tenant.idp_org_id,
        "user_id": user.id,
        "membership_id": membership.id,
        "subscription_id": create_subscription(tenant).id,
        "field_id": _fields(tenant)[0].id,
        "plan_id": preset.id,
        "key_id": key_id,
        "key": "theme",
        "event_id": _webhook_event().id,
        "import_id": _import().id,
        "evt_id": f"evt_{event.id.hex}",
        "connection_id": create_connection(tenant)[0].id,
        "endpoint_id": endpoint.id,
        "stream_id": _stream(tenant),
        "kind": "https",
        "action": "test",
        "delivery_id": database.row(WebhookDelivery).id,
        "purpose": "assign_plan",
        "invitation_id": create_invitation(tenant.id, email=ADDRESS, digest="x").id,
        "request_id": create_join_request(tenant, first_name=ATTACK, email=ADDRESS).id,
        "domain_id": create_domain(tenant, state="verified", **RULE).id,
        "rewind_id": _rewind(tenant),
        "link_id": create_setup_link(tenant.id, contact=ADDRESS).id,
        "user": user,
    }


def _stream(tenant: Any) -> Any:
    """The id of a log stream; its settings and its last test have markup."""
    config = {"url": "https://logs.example.com/?" + "<b>"}
    stream = create_log_stream(tenant.id, config=config, description=ATTACK)
    values = {"at": utcnow(), "error": ATTACK}
    database.execute(
        "UPDATE log_stream_progress SET tested_at = :at, test_error = :error", **values
    )
    return stream.id


def send(api: Any, method: str, path: str, body: Any = None, **query: Any) -> Any:
    """A change by the platform, which has its position afterwards; the row."""
    answer = api.request(method, path, token=platform_token(), json=body, query_string=query)
    assert answer.status_code < 300, answer.text
    api.sequence()
    return answer.get_json()["data"]


def create_past(api: Any, *, is_whole: bool = False) -> dict[str, Any]:
    """A tenant with one person, both of which have changed after the ``moment``.

    A whole second, which forms can name, has to be waited for.
    """
    flags = [preset_flag("theme", "plain")]
    plan = {"name": "free", "display_name": "Free", "flags": flags}
    send(api, "POST", "/v1/billing/plans", plan)
    tenant = send(api, "POST", "/v1/tenants", {"name": "Acme", "idp_org_id": "org_past"})
    of = {"tenant_id": tenant["id"]}
    person = {"idp_user_id": "u1", "email": "ada@acme.example", "first_name": "Ada"}
    user = send(api, "POST", "/v1/users", person, **of)
    send(api, "POST", "/v1/memberships/tenant", {"user_id": user["id"], "role": "owner"}, **of)
    moment = utcnow()
    if is_whole:
        moment = moment.replace(microsecond=0) + timedelta(seconds=1)
        time.sleep((moment - utcnow()).total_seconds() + 0.05)
    send(api, "PATCH", f"/v1/tenants/{tenant['id']}", {"name": "Other"})
    send(api, "PATCH", f"/v1/users/{user['id']}", {"first_name": "Eve"})
    return {"id": tenant["id"], "user_id": user["id"], "moment": moment.isoformat()}


def _rewind(tenant: Any) -> Any:
    """The id of a rewind that has left a row out."""
    left = {"kind": "users", "id": str(tenant.id), "code": "email_taken", "detail": ATTACK}
    values = {"left_out": [left], "left_out_total": 1, "counts": {"users": {"updated": 2}}}
    place = {"tenant_id": tenant.id, "to_position": 1, "to_time": utcnow(), "kinds": ["users"]}
    ended = {"state": "completed", "finished_at": utcnow(), "position": 2, "done": 2}
    return save(Rewind, **place, **values, **ended, created_by_user_id="platform:ops").id


def use(tenant: Any, feature: str, *amounts: int) -> None:
    """What the last days have used; the last one is today."""
    counter = {"tenant_id": tenant.id, "feature": feature, "period_start": EPOCH}
    for place, amount in enumerate(amounts):
        day = utcnow().date() - timedelta(days=len(amounts) - 1 - place)
        save(UsageDay, **counter, day=day, used=sum(amounts[: place + 1]), added=amount)
    save(UsageCounter, **counter, used=sum(amounts), announced=0)


def know(*addresses: str) -> None:
    """People whom the identity provider has told of, and whose addresses it has verified."""
    at = utcnow()
    told = [
        UserEvent(
            object_id=address,
            change=Change.CREATED,
            email=address,
            email_verified=True,
            occurred_at=at,
        )
        for address in addresses
    ]
    with platform_transaction():
        sync.apply(told, source="workos", event_id="evt_1", roles={})


def pages_of(app: Flask, method: str, name: str = "") -> list[Rule]:
    """The rules of the console that take ``method``, or those of one page."""
    return [
        rule
        for rule in app.url_map.iter_rules()
        if rule.endpoint.startswith("console.")
        and method in (rule.methods or ())
        and not rule.rule.startswith("/console/setup")  # other sessions have them
        and (not name or rule.endpoint == f"console.{name}")
    ]


def address_of(rule: Rule, world: dict[str, Any]) -> str:
    """The address of a page, with the ids of the world."""
    return re.sub(r"<(?:[^<>]+:)?(\w+)>", lambda found: str(world[found[1]]), rule.rule)


def addresses(
    app: Flask, world: dict[str, Any], *, of_tenant: bool = False, method: str = "GET"
) -> list[str]:
    """The addresses of the pages that take ``method``, or only of those of the tenant."""
    found = {
        address_of(rule, world)
        for rule in pages_of(app, method)
        if rule.endpoint not in LEFT_OUT and ("tenant_id" in rule.arguments or not of_tenant)
    }
    return sorted(found)


def one_of_each(app: Flask, world: dict[str, Any], method: str = "GET") -> list[str]:
    """As :func:`addresses`, without the tenant's address of a page that the platform has as well."""
    rules = sorted(pages_of(app, method), key=lambda rule: len(rule.arguments), reverse=True)
    found = {rule.endpoint: rule for rule in rules if rule.endpoint not in LEFT_OUT}
    return sorted(address_of(rule, world) for rule in found.values())


def _metered(tenant: Any) -> dict[str, Any]:
    """What the pages of limits and credits show; the ids of a hold and of purchased credits."""
    use(tenant, "calls", *[9] * 7)
    with platform_transaction():
        hold = holds.hold(tenant.id, feature="calls", amount=5, ttl_seconds=300, reference=ATTACK)
        values = {"source": "purchase", "priority": 100, "reference": ATTACK}
        lot = credits.grant(tenant.id, "tokens", 1000, **values, actor=SYSTEM_CLI)
    return {"hold_id": hold.id, "lot_id": lot.id}


def _roles(tenant: Any, membership: Any) -> dict[str, Any]:
    """A role with permissions that have the names of flags, and its assignment for a resource."""
    for key in ("theme", "calls", "tokens"):
        create_permission(key, description=ATTACK, group_name="invoices")
    role = create_role(tenant, "theme", key="clerk", name=ATTACK, inherits="viewer")
    place = create_resource(tenant, "project", ATTACK)
    assignment = create_assignment(tenant, role, membership_id=membership.id, resource=place)
    return {"role_id": role.id, "assignment_id": assignment.id}


def _fields(tenant: Any) -> list[Any]:
    return [
        create_field(tenant, field_key="department", label="Department"),
        create_field(tenant, field_key="team", label="Team", is_searchable=True),
        create_field(tenant, field_key="segment", label="Segment", entity_type="tenant"),
    ]


def _event(tenant: Any) -> Any:
    database.execute(
        "INSERT INTO event_feed (id, last_position) VALUES (1, 1) ON CONFLICT DO NOTHING"
    )
    values = {"type": "user.created", "actor": "platform", "is_platform_actor": True}
    return save(Event, tenant_id=tenant.id, position=1, before={}, after={}, **values)


def _import() -> Any:
    numbers = {"created": 1, "updated": 1, "unchanged": 1, "failed": 1}
    made = save(
        Import,
        created_by_user_id="platform:ops",
        state="completed",
        lines_total=4,
        lines_done=4,
        lines_failed=1,
        counts={"user": numbers},
        finished_at=utcnow(),
    )
    errors = [{"loc": ["body", "email"], "msg": ATTACK, "type": "missing", "input": None}]
    fault = {"line": 3, "type": "user", "idp_org_id": "org_1", "name": ATTACK, "errors": errors}
    save(ImportFault, import_id=made.id, **fault)
    return made


def _webhook_event() -> Any:
    return save(
        WebhookEvent,
        source="standard_webhooks",
        external_id="evt_1",
        event_type="user.created",
        digest="x",
        body=b'{"type": "user.created", "data": {"id": "user_1"}}',
        headers={"webhook-id": "evt_1"},
        request_id="",
    )

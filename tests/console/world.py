"""One row of each kind, and the addresses of all pages that can be read."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

from flask import Flask

from app.auth.permissions import Permission
from app.core.actors import SYSTEM_CLI
from app.webhook_endpoints import service as webhook_endpoints
from app.webhooks.models import WebhookEvent
from tests import database
from tests.custom_fields.fields import create_field
from tests.database import platform_transaction
from tests.factories import (
    create_api_key,
    create_limits,
    create_member,
    create_override,
    create_subscription,
    limit_flag,
    preset_flag,
    save,
)
from tests.scim.directory import create_connection

# They need more than the ids of rows: a secret, an address, or a row in another state.
LEFT_OUT = {
    "console.begin_oidc",
    "console.confirm_link",
    "console.download_audit",
    "console.finish_oidc",
    "console.read_asset",
    "console.remove_suppression",
    "console.restore_field",
    "console.sign_in",
    "console.unknown_page",
}


def create_world(tenant: Any) -> dict[str, Any]:
    """Rows of a tenant; the ids by the names that they have in the addresses."""
    preset = create_limits("free", limit_flag(), preset_flag("theme", "plain"))
    user, membership, _ = create_member(tenant, "owner", first_name="Ines", last_name="Okafor")
    create_override(tenant, preset, "theme", "rich")
    create_api_key(tenant, [Permission.USERS_READ])
    ((key_id,),) = database.query("SELECT id FROM api_keys")
    return {
        "tenant_id": tenant.id,
        "idp_org_id": tenant.idp_org_id,
        "user_id": user.id,
        "membership_id": membership.id,
        "subscription_id": create_subscription(tenant).id,
        "field_id": create_field(tenant, field_key="department", label="Department").id,
        "plan_id": preset.id,
        "key_id": key_id,
        "key": "theme",
        "event_id": _webhook_event().id,
        "connection_id": create_connection(tenant)[0].id,
        "endpoint_id": _endpoint(tenant).id,
        "delivery_id": uuid4(),  # its page does not read it
        "user": user,
    }


def addresses(
    app: Flask, world: dict[str, Any], *, of_tenant: bool = False, method: str = "GET"
) -> list[str]:
    """The addresses of the pages that take ``method``, or only of those of the tenant."""
    found = []
    for rule in app.url_map.iter_rules():
        is_page = rule.endpoint.startswith("console.") and method in (rule.methods or ())
        is_wanted = "tenant_id" in rule.arguments or not of_tenant
        if is_page and is_wanted and rule.endpoint not in LEFT_OUT:
            values = {name: str(world[name]) for name in rule.arguments}
            found.append(re.sub(r"<(?:\w+:)?(\w+)>", lambda m, v=values: v[m[1]], rule.rule))
    return sorted(set(found))


def _endpoint(tenant: Any) -> Any:
    values = {"url": "https://hooks.example.com/all", "types": ["*"]}
    with platform_transaction():
        return webhook_endpoints.create(**values, tenant_id=tenant.id, actor=SYSTEM_CLI)[0]


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

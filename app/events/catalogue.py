"""The types of events: a closed list, each with the shape of its ``data``.

``plan.*`` and ``email.*`` are the platform's; all others also reach the tenant that they are about.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from flask_smorest import Api

from app.api_keys.schemas import ApiKeySchema
from app.core.json_text import Json
from app.core.openapi.examples import example_of
from app.core.validation.schemas import Schema
from app.custom_fields.schemas import CustomFieldSchema
from app.emails.schemas import EmailEventSchema, SuppressionSchema
from app.flags.preset_schemas import PlanPresetSchema
from app.flags.schemas import OverrideSchema
from app.memberships.schemas import TenantMembershipSchema
from app.subscriptions.schemas import SubscriptionSchema, TrialSchema
from app.tenants.schemas import TenantSchema
from app.usage.schemas import LimitUseSchema
from app.users.schemas import UserSchema
from app.webhook_endpoints.schemas import WebhookEndpointSchema


class EventType(NamedTuple):
    """What has happened, the schema of ``data``, and an example of ``changes``."""

    summary: str
    shape: type[Schema]
    changes: Mapping[str, tuple[Json, Json]] = {}


CATALOGUE = {
    "api_key.created": EventType("An API key was created.", ApiKeySchema),
    "api_key.revoked": EventType(
        "An API key was revoked.", ApiKeySchema, {"revoked_at": (None, "2026-01-31T12:00:00Z")}
    ),
    "custom_field.archived": EventType(
        "A custom field was archived.", CustomFieldSchema, {"is_active": (True, False)}
    ),
    "custom_field.created": EventType("A custom field was created.", CustomFieldSchema),
    "custom_field.deleted": EventType(
        "A custom field was deleted; `data` is what it was.", CustomFieldSchema
    ),
    "custom_field.reordered": EventType(
        "A custom field has a new place.", CustomFieldSchema, {"sort_order": (2, 0)}
    ),
    "custom_field.restored": EventType(
        "A custom field was restored.", CustomFieldSchema, {"is_active": (False, True)}
    ),
    "custom_field.updated": EventType(
        "A custom field was changed.", CustomFieldSchema, {"label": ("Centre", "Cost centre")}
    ),
    "email.bounced": EventType("A message was refused permanently.", EmailEventSchema),
    "email.complained": EventType("A recipient reported a message as spam.", EmailEventSchema),
    "email.suppressed": EventType("An address is to get no more mail.", SuppressionSchema),
    "limit.reached": EventType("All of a limit is used.", LimitUseSchema),
    "limit.warning": EventType("Most of a limit is used.", LimitUseSchema),
    "membership.activated": EventType(
        "A membership was activated.", TenantMembershipSchema, {"is_active": (False, True)}
    ),
    "membership.created": EventType("A user became a member.", TenantMembershipSchema),
    "membership.deactivated": EventType(
        "A membership was ended.", TenantMembershipSchema, {"is_active": (True, False)}
    ),
    "membership.role_changed": EventType(
        "A member has another role.", TenantMembershipSchema, {"role": ("member", "admin")}
    ),
    "membership.updated": EventType(
        "The identity provider changed a membership.",
        TenantMembershipSchema,
        {"role": ("member", "admin")},
    ),
    "override.created": EventType("A feature override was created.", OverrideSchema),
    "override.deleted": EventType(
        "A feature override was deleted; `data` is what it was.", OverrideSchema
    ),
    "override.expired": EventType("A feature override has ended.", OverrideSchema),
    "override.updated": EventType(
        "A feature override was changed.", OverrideSchema, {"flag_value": (5, 10)}
    ),
    "plan.created": EventType("A plan preset was created.", PlanPresetSchema),
    "plan.deleted": EventType(
        "A plan preset was deleted; `data` is what it was.", PlanPresetSchema
    ),
    "plan.updated": EventType(
        "A plan preset was changed.", PlanPresetSchema, {"name": ("growth", "scale")}
    ),
    "subscription.canceled": EventType(
        "A cancellation was recorded.", SubscriptionSchema, {"auto_renew": (True, False)}
    ),
    "subscription.created": EventType("A subscription was created.", SubscriptionSchema),
    "subscription.plan_unknown": EventType(
        "A subscription names a plan that no preset has.", SubscriptionSchema
    ),
    "subscription.updated": EventType(
        "A subscription was changed.", SubscriptionSchema, {"bp_status": ("active", "past_due")}
    ),
    "tenant.activated": EventType(
        "A suspended tenant was activated.", TenantSchema, {"is_active": (False, True)}
    ),
    "tenant.created": EventType("A tenant was created.", TenantSchema),
    "tenant.deleted": EventType(
        "A tenant was deleted; `data` has only what is left of it.", TenantSchema
    ),
    "tenant.deletion_requested": EventType(
        "A tenant is suspended, and deleted after `TENANT_GRACE_DAYS`.",
        TenantSchema,
        {"deletes_at": (None, "2026-03-02T12:00:00Z")},
    ),
    "tenant.meta_data_patched": EventType(
        "A tenant's metadata was changed.",
        TenantSchema,
        {"meta_data": ({}, {"segment": "enterprise"})},
    ),
    "tenant.over_seats": EventType(
        "The identity provider added members beyond the plan's seats.",
        TenantSchema,
        {"free_seats": (0, -1)},
    ),
    "tenant.ownerless": EventType(
        "The identity provider removed a tenant's last active owner.", TenantSchema
    ),
    "tenant.plan_changed": EventType(
        "A tenant has another plan.", TenantSchema, {"plan_name": ("free", "growth")}
    ),
    "tenant.restored": EventType(
        "The deletion of a tenant was withdrawn.",
        TenantSchema,
        {"deletes_at": ("2026-03-02T12:00:00Z", None)},
    ),
    "tenant.suspended": EventType(
        "A tenant was suspended.", TenantSchema, {"is_active": (True, False)}
    ),
    "tenant.updated": EventType(
        "A tenant was changed.", TenantSchema, {"name": ("Acme", "Acme Ltd")}
    ),
    "trial.ended": EventType("An assigned plan has ended.", TrialSchema),
    "trial.ending": EventType("An assigned plan ends within three days.", TrialSchema),
    "user.created": EventType("A user was created.", UserSchema),
    "user.directory_updated": EventType(
        "A SCIM directory says something else of a user that is no field of the user.",
        UserSchema,
        {"directory": ({"title": "Analyst"}, {"title": "Countess"})},
    ),
    "user.erased": EventType("A user's personal data was erased.", UserSchema),
    "user.meta_data_patched": EventType(
        "A user's metadata was changed.", UserSchema, {"meta_data": ({}, {"team": "blue"})}
    ),
    "user.updated": EventType(
        "A user was changed.", UserSchema, {"first_name": ("Augusta", "Ada")}
    ),
    "webhook_endpoint.disabled": EventType(
        "The service has disabled a webhook endpoint; `disabled_reason` says why.",
        WebhookEndpointSchema,
        {"is_active": (True, False), "disabled_reason": (None, "gone")},
    ),
}


def describe_webhooks(api: Api) -> dict[str, Json]:
    """The ``webhooks`` of the OpenAPI document: a request for each type.

    One of them is also the example of the schema ``Event``.
    """
    operations = {name: _operation(api, name) for name in CATALOGUE}
    schemas = api.spec.components.schemas
    shown = operations["membership.role_changed"]["requestBody"]["content"]["application/json"]
    example = example_of(shown["schema"], {"components": {"schemas": schemas}})
    schemas["Event"]["examples"] = [example]
    return {name: {"post": operation} for name, operation in operations.items()}


def _operation(api: Api, name: str) -> dict[str, Json]:
    summary, shape, changes = CATALOGUE[name]
    event = api.spec.components.schemas["Event"]
    example = {field: {"before": old, "after": new} for field, (old, new) in changes.items()}
    properties = {
        **event["properties"],
        "type": {"const": name, "description": summary},
        "data": {
            **api.ma_plugin.converter.resolve_nested_schema(shape),
            "description": event["properties"]["data"]["description"],
        },
        "changes": {**event["properties"]["changes"], "examples": [example]},
    }
    del properties["truncated"]
    schema = {
        "type": "object",
        "title": f"Event {name}",
        "description": "An event of more than 20 KiB has no `data` and no `changes`, and"
        " `truncated` is true.",
        "required": event["required"],
        "properties": properties,
    }
    return {
        "operationId": name,
        "summary": summary,
        "tags": ["events"],
        "security": [],
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
        "responses": {"2XX": {"description": "The event was received."}},
    }

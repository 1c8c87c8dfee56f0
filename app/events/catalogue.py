"""The catalogue of events: each type of app/audit/event_types.py with the schema of its ``data``.

``plan.*``, ``permission.*`` and ``email.*`` are the platform's; all others also reach the tenant that they are about.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from flask_smorest import Api

from app.api_keys.schemas import ApiKeySchema
from app.audit.event_types import DESCRIBED
from app.core.json_text import Json
from app.core.openapi.examples import example_of
from app.core.validation.schemas import Schema
from app.credits.schemas import CreditLotSchema, CreditRevocationSchema
from app.custom_fields.schemas import CustomFieldSchema
from app.domains.schemas import DomainSchema, JoinRequestSchema
from app.emails.schemas import EmailEventSchema, SuppressionSchema
from app.flags.schemas import OverrideSchema
from app.invitations.schemas import InvitationSchema, InvitationTokenSchema
from app.log_streams.schemas import LogStreamSchema
from app.memberships.schemas import TenantMembershipSchema
from app.plans.schemas import PlanPresetSchema, TrialSchema
from app.roles.schemas import (
    AccessPermissionSchema,
    AccessRoleSchema,
    ResourceSchema,
    RoleAssignmentSchema,
)
from app.sso_connections.schemas import SsoConnectionSchema
from app.subscriptions.schemas import SubscriptionSchema
from app.tenants.schemas import TenantSchema
from app.usage.day_schemas import LimitForecastSchema
from app.usage.schemas import LimitOverrunSchema, LimitUseSchema
from app.users.schemas import UserSchema
from app.webhooks.endpoints.schemas import WebhookEndpointSchema


class EventType(NamedTuple):
    """The meaning of a type of events, the schema of ``data``, and an example of ``changes``."""

    summary: str
    shape: type[Schema]
    changes: Mapping[str, tuple[Json, Json]]


SCHEMAS: dict[str, type[Schema]] = {
    "api_key": ApiKeySchema,
    "credits": CreditLotSchema,
    "custom_field": CustomFieldSchema,
    "domain": DomainSchema,
    "email": EmailEventSchema,
    "invitation": InvitationSchema,
    "join_request": JoinRequestSchema,
    "limit": LimitUseSchema,
    "log_stream": LogStreamSchema,
    "membership": TenantMembershipSchema,
    "override": OverrideSchema,
    "permission": AccessPermissionSchema,
    "plan": PlanPresetSchema,
    "resource": ResourceSchema,
    "role": AccessRoleSchema,
    "role_assignment": RoleAssignmentSchema,
    "sso_connection": SsoConnectionSchema,
    "subscription": SubscriptionSchema,
    "tenant": TenantSchema,
    "trial": TrialSchema,
    "user": UserSchema,
    "webhook_endpoint": WebhookEndpointSchema,
    "credits.revoked": CreditRevocationSchema,
    "email.suppressed": SuppressionSchema,
    "invitation.created": InvitationTokenSchema,
    "invitation.resent": InvitationTokenSchema,
    "limit.forecast": LimitForecastSchema,
    "limit.overrun": LimitOverrunSchema,
}
"""The first word of a type, or a whole type, -> the schema of ``data``."""

CATALOGUE = {
    name: EventType(summary, SCHEMAS.get(name) or SCHEMAS[name.partition(".")[0]], changes)
    for name, (summary, changes) in DESCRIBED.items()
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

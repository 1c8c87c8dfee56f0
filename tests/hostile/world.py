"""A tenant with one of everything, and everybody who may ask for it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count, pairwise
from typing import Any
from urllib.parse import quote

from flask import Flask

from app.audit.service import record
from app.auth.permissions import PLATFORM_ONLY, Permission, Role
from app.core.actors import SYSTEM_CLI
from app.core.clock import utcnow
from app.core.db.queries import Change
from app.custom_fields.models import CustomField, FieldIndex
from app.emails.models import Suppression
from app.events import positions
from app.events.models import Event
from app.imports.models import Import
from app.inbox.models import WebhookEvent
from app.plans.models import PlanPreset, PlanPrice
from app.tenants.models import Tenant
from app.users.models import User
from app.webhooks.deliveries.models import WebhookDelivery
from tests import database, factories
from tests.hostile.document import Document, Operation, Place
from tests.hostile.wire import Answer, send
from tests.scim.directory import create_connection

FLAG = "single-sign-on"
LIMIT = "api-calls"
ADDRESS = "bounced@example.com"
MARK = "@@hostile@@"

_numbers = count(1)


@dataclass(frozen=True)
class World:
    """A tenant, a credential per kind of caller, and an id for every path parameter."""

    app: Flask
    document: Document
    tenant: Tenant
    credentials: Mapping[str, str]
    ids: Mapping[str, str]

    @property
    def superadmin(self) -> str:
        return self.credentials["superadmin"]

    def send(
        self,
        operation: Operation,
        *,
        ids: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        as_: str = "superadmin",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """A request of the operation, right but for what is given; ids and query are in URL escapes."""
        path = operation.path
        for name in operation.named("path"):
            path = path.replace(f"{{{name}}}", {**self._escaped_ids, **(ids or {})}[name])
        known = {**operation.query, **self._tenant_choice(operation), **(query or {})}
        text = "&".join(f"{name}={value}" for name, value in known.items())
        if body is None and operation.schema:
            body = json.dumps(self.body(operation)).encode()
        return send(
            self.app,
            operation.method,
            f"{path}?{text}",
            token=self.credentials[as_],
            body=body,
            headers=headers,
        )

    def body(self, operation: Operation) -> dict[str, Any]:
        """A right body with only what must be there; texts that nothing bounds are new each time."""
        body = {}
        for name, value in operation.least_body.items():
            schema = operation.fields[name]
            if schema.get("format") == "uuid":
                value = self.ids.get(name, value)
            elif isinstance(value, str) and not {"format", "enum", "anyOf", "$ref"} & schema.keys():
                value = f"{value}_{next(_numbers)}"
            body[name] = value
        return body

    def body_with(self, operation: Operation, place: Place, fragment: bytes) -> bytes:
        """The bytes of a right body that has ``fragment`` at ``place``."""
        body: Any = self.body(operation)
        root, schema = body, operation.schema
        for step, below in pairwise(place):
            schema = self.document.below(schema, step)
            inside = self.document.example(schema)
            if not isinstance(inside, dict | list):
                inside = {} if isinstance(below, str) else []
            if isinstance(root, dict):
                root[step] = inside
            else:
                root[:] = [inside]
            root = inside
        if isinstance(root, list):
            root[:] = [MARK]
        else:
            root[place[-1]] = MARK
        return json.dumps(body).encode().replace(json.dumps(MARK).encode(), fragment)

    @property
    def _escaped_ids(self) -> dict[str, str]:
        return {name: quote(value) for name, value in self.ids.items()}

    def _tenant_choice(self, operation: Operation) -> dict[str, str]:
        asked = "tenant_id" in operation.named("query") and operation.is_change
        return {"tenant_id": str(self.tenant.id)} if asked else {}


def create_world(app: Flask, document: Document) -> World:
    """Make it; each call makes another tenant with rows of its own."""
    early = datetime(2026, 1, 1, tzinfo=UTC)  # before the moments of examples
    tenant = factories.create_tenant(plan_name=f"plan-{next(_numbers)}", created_at=early)
    flags = [
        factories.preset_flag(FLAG, False),
        factories.limit_flag(LIMIT, period="day"),
        factories.credits_flag("ai-credits", 0),
    ]
    preset = factories.save(PlanPreset, name=tenant.plan_name, flags=flags)
    factories.create_api_key(tenant)  # the first one listed, which may be revoked
    credentials = {role.value: factories.create_member(tenant, role)[2] for role in Role}
    owner = factories.create_user(tenant)
    credentials["tenant key"] = factories.create_api_key(
        tenant, sorted(set(Permission) - PLATFORM_ONLY)
    )
    credentials["platform key"] = factories.create_api_key(None, sorted(Permission))
    credentials["superadmin"] = factories.platform_token(tenant=tenant)
    membership, role = (
        factories.create_membership(tenant, owner, Role.OWNER),
        factories.create_role(tenant),
    )
    rows = {
        "tenant_id": tenant,
        "user_id": factories.create_user(tenant),
        "membership_id": membership,
        "role_id": role,
        "role_assignment_id": factories.create_assignment(
            tenant, role, membership_id=membership.id
        ),
        "endpoint_id": factories.create_webhook_endpoint(tenant.id),
        "stream_id": factories.create_log_stream(tenant.id),
        "connection_id": create_connection(tenant)[0],
        "sso_connection_id": factories.create_sso_connection(tenant.id),
        "subscription_id": factories.create_subscription(tenant),
        "preset_id": preset,
        "override_id": factories.create_override(tenant, preset, FLAG, True),
        "field_id": _custom_field(tenant),
        "event_id": _webhook_event(),
        "hold_id": factories.create_hold(tenant.id),
        "lease_id": factories.create_hold(tenant.id, kind="lease"),
        "import_id": factories.save(Import, created_by_user_id="cli:root"),
        "domain_id": factories.create_domain(tenant),
        "join_request_id": factories.create_join_request(tenant),
        "lot_id": factories.create_lot(tenant.id),
        "rewind_id": factories.create_rewind(tenant.id),
        "setup_link_id": factories.create_setup_link(tenant.id),
        "invitation_id": factories.create_invitation(tenant.id),
    }
    _create_suppression()
    price = {"provider": "stripe", "price_id": f"price-{next(_numbers)}"}
    factories.save(PlanPrice, plan_name=tenant.plan_name, **price)
    ids = {name: str(row.id) for name, row in rows.items()}
    ids |= {"key": FLAG, "address": ADDRESS, "feature": LIMIT}
    ids["permission_key"] = factories.create_permission(f"invoices:{next(_numbers)}").key
    place = factories.create_resource(tenant, "project", f"project-{next(_numbers)}")
    ids |= {"resource_type": place.type, "resource_id": place.id}
    ids |= {"provider": "stripe", "customer_id": f"cus-{next(_numbers)}"}
    (delivery,) = database.rows(WebhookDelivery, tenant_id=tenant.id)
    ids["delivery"] = str(delivery.id)
    ids["evt_id"] = _event(app, rows["user_id"])
    listed = _listed_ids(app, document, credentials["superadmin"])
    return World(app, document, tenant, credentials, listed | ids)


def _listed_ids(app: Flask, document: Document, token: str) -> dict[str, str]:
    """Of each path with one parameter at its end, the first id that the list above it shows."""
    found = {}
    for operation in document.operations:
        match = re.fullmatch(r"([^{]+)/\{(\w+)\}", operation.path)
        if match and document.operation("get", match[1]):
            listed = send(app, "get", match[1], token=token).json["data"]
            if listed and "id" in listed[0]:
                found[match[2]] = listed[0]["id"]
    return found


def _custom_field(tenant: Tenant) -> CustomField:
    field = factories.save(
        CustomField,
        tenant_id=tenant.id,
        idp_org_id=tenant.idp_org_id,
        entity_type="user",
        field_key="cost_center",
        label="Cost center",
        field_type="text",
        is_searchable=True,
    )
    factories.save(FieldIndex, tenant_id=tenant.id, field_id=field.id, state="ready")
    return field


def _webhook_event() -> WebhookEvent:
    return factories.save(
        WebhookEvent,
        source="workos",
        external_id=f"event-{next(_numbers)}",
        event_type="user.created",
        status="failed",
        headers={"content-type": "application/json"},
        body=b'{"type": "user.created", "signature": "hidden"}',
        digest="0" * 64,
        request_id="",
    )


def _event(app: Flask, user: User) -> str:
    """The id of an event of the feed."""
    with factories.platform_transaction():
        record(
            "user.updated", user, Change({"first_name": "x"}, {"first_name": ""}), actor=SYSTEM_CLI
        )
    with app.app_context():
        while positions.sequence():
            pass
    return f"evt_{database.rows(Event, tenant_id=user.tenant_id)[-1].id.hex}"


def _create_suppression() -> None:
    factories.save(
        Suppression,
        address=ADDRESS,
        cause="bounced",
        scope=f"scope-{next(_numbers)}",
        source="resend",
        suppressed_at=utcnow(),
        is_active=True,
    )

"""Webhook endpoints: create, list, change, delete, rotate the secret."""

from __future__ import annotations

import json
import secrets
import time
from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import func, select, text

from app.audit.outbox import types_of
from app.audit.service import record, record_creation
from app.core.actors import Actor
from app.core.clock import utcnow
from app.core.db import queries
from app.core.db.list_conditions import Condition
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.db.queries import Change
from app.core.db.statements import Statement
from app.core.db.tenancy import PLATFORM_TENANT_ID
from app.core.db.writes import insert_row
from app.core.errors import Conflict, Invalid, NotFound, value_error
from app.core.json_text import Json
from app.tenants.models import Tenant
from app.webhooks.endpoints import encryption
from app.webhooks.endpoints.models import (
    DisabledReason,
    Signing,
    WebhookEndpoint,
    WebhookEndpointState,
)

MAX_ENDPOINTS = 20  # of a tenant, and of the platform
OLD_SECRET_HOURS = 24
MAX_OLD_SECRETS = 4
SECRET_BYTES = 32

LOCK_PLATFORM = Statement(
    "webhook_endpoints.lock_platform", select(func.pg_advisory_xact_lock(7_021_132))
)

_failing = WebhookEndpoint.is_active & text(
    "EXISTS (SELECT FROM webhook_endpoint_states s WHERE s.failing_since IS NOT NULL"
    " AND s.tenant_id = webhook_endpoints.tenant_id AND s.endpoint_id = webhook_endpoints.id)"
)
IS_FAILING = {True: _failing, False: ~_failing}


class TooManyEndpoints(Conflict):
    code = "too_many_webhook_endpoints"
    detail = f"There can be at most {MAX_ENDPOINTS} webhook endpoints; delete one first."


def get_endpoint(endpoint_id: UUID | str) -> WebhookEndpoint:
    return queries.get_row(WebhookEndpoint, endpoint_id)


def list_endpoints(
    paging: Paging = FIRST_PAGE, *, tenant_id: UUID | None = None, is_failing: bool | None = None
) -> Page:
    """One page of a tenant's endpoints (for the platform, of all), only failing or only others."""
    found = [] if is_failing is None else [Condition(IS_FAILING[is_failing], {})]
    return paginate(WebhookEndpoint, paging, *found, tenant_id=tenant_id)


def create(
    *,
    url: str,
    types: Sequence[str],
    tenant_id: UUID | None = None,
    description: str = "",
    headers: Mapping[str, str] | None = None,
    rate_limit: int | None = None,
    signing: Signing = Signing.V1,
    is_active: bool = True,
    actor: Actor,
) -> tuple[WebhookEndpoint, str | None]:
    """Create an endpoint; ``tenant_id`` None makes one of the platform.

    Returns it and its secret, which is shown once; None where the endpoint has a public key. Raises
    SecretsKeyMissing, NotFound for an unknown tenant, TooManyEndpoints, and Invalid for types that
    the tenant has no events of.
    """
    encryption.keys()
    owner = lock_owner(tenant_id)
    check_types(types, owner)
    if queries.count_where(WebhookEndpoint, tenant_id=owner) >= MAX_ENDPOINTS:
        raise TooManyEndpoints
    secret, public_key = _new_key(signing)
    values = {
        "tenant_id": owner,
        "url": url,
        "types": sorted(set(types)),
        "description": description,
        "header_names": sorted(headers or {}),
        "rate_limit": rate_limit,
        "signing": signing.value,
        "public_key": public_key,
        "is_active": is_active,
        "disabled_reason": None if is_active else DisabledReason.UNTESTED.value,
        **actor.authorship,
    }
    endpoint = insert_row(WebhookEndpoint, values)
    state = {
        "tenant_id": owner,
        "endpoint_id": endpoint.id,
        "secret": encryption.encrypt(secret),
        "headers": _encrypted(headers),
    }
    insert_row(WebhookEndpointState, state)
    record_creation("webhook_endpoint.created", endpoint, actor=actor)
    return endpoint, None if public_key else secret


def lock_owner(tenant_id: UUID | None) -> UUID:
    """Let no other request add a row of the tenant, or of the platform; the rows' ``tenant_id``.

    Raises NotFound for an unknown tenant.
    """
    if tenant_id is not None:
        queries.lock_with(Tenant, queries.visible_id(tenant_id))
    else:
        LOCK_PLATFORM.first()
    return tenant_id or PLATFORM_TENANT_ID


def update_endpoint(
    endpoint_id: UUID | str, values: Mapping[str, Json], *, actor: Actor
) -> WebhookEndpoint:
    """Change fields of an endpoint; ``is_active`` true also forgets why it was disabled.

    Raises NotFound, SecretsKeyMissing for new headers, and Invalid as :func:`create` does.
    """
    endpoint = queries.lock_row(WebhookEndpoint, endpoint_id)
    changed = {name: value for name, value in values.items() if name != "headers"}
    if "types" in changed:
        changed["types"] = sorted(set(changed["types"]))
    if changed.get("is_active"):
        changed["disabled_reason"] = None
    if "headers" in values:
        changed["header_names"] = sorted(values["headers"])
    check_types(changed.get("types", ()), endpoint.tenant_id)
    key = {"tenant_id": endpoint.tenant_id, "endpoint_id": endpoint.id}
    if "headers" in values:
        headers = _encrypted(values["headers"])
        queries.update_where(WebhookEndpointState, key, {"headers": headers})
    if changed.get("is_active") and not endpoint.is_active:
        queries.update_where(WebhookEndpointState, key, {"failing_since": None})
    endpoint, change = queries.update_row(WebhookEndpoint, endpoint, changed, actor_id=actor.id)
    if change is None and values.get("headers"):
        change = Change({}, {"headers": "changed"})  # nobody may read their values
    record("webhook_endpoint.updated", endpoint, change, actor=actor)
    return endpoint


def delete(endpoint_id: UUID | str, *, actor: Actor) -> None:
    """Delete an endpoint. A job deletes its deliveries. Raises NotFound."""
    endpoint: Any = queries.lock_row(WebhookEndpoint, endpoint_id)
    queries.delete_row(WebhookEndpoint, endpoint)
    record("webhook_endpoint.deleted", endpoint, Change(endpoint._asdict(), {}), actor=actor)


def rotate(endpoint_id: UUID | str, *, actor: Actor) -> tuple[WebhookEndpoint, str | None]:
    """Give the endpoint a new secret; the present secret also signs for 24 hours.

    Returns what :func:`create` does. Raises NotFound and SecretsKeyMissing.
    """
    endpoint = queries.lock_row(WebhookEndpoint, endpoint_id)
    secret, public_key = _new_key(Signing(endpoint.signing))
    until = utcnow() + timedelta(hours=OLD_SECRET_HOURS)
    key = {"tenant_id": endpoint.tenant_id, "endpoint_id": endpoint.id}
    state: Any = queries.find_row(WebhookEndpointState, **key)
    try:
        old = {encryption.decrypt(state.secret): until.timestamp(), **old_secrets(endpoint, state)}
    except encryption.Undecryptable:
        old = {}  # the sender cannot sign with them either
    kept = dict(list(old.items())[:MAX_OLD_SECRETS])
    changes = {"secret": secret, "old_secret": json.dumps(kept)}
    encrypted = {name: encryption.encrypt(text) for name, text in changes.items()}
    queries.update_where(WebhookEndpointState, key, encrypted)
    values = {"public_key": public_key, "old_secret_until": until}
    endpoint, change = queries.update_row(WebhookEndpoint, endpoint, values, actor_id=actor.id)
    record("webhook_endpoint.secret_rotated", endpoint, change, actor=actor)
    return endpoint, None if public_key else secret


def old_secrets(endpoint: WebhookEndpoint, state: WebhookEndpointState) -> dict[str, float]:
    """The replaced secrets that still sign, newest first, each with its end in epoch seconds.

    Raises Undecryptable.
    """
    if state.old_secret is None or endpoint.old_secret_until is None:
        return {}
    text, last = encryption.decrypt(state.old_secret), endpoint.old_secret_until.timestamp()
    # Release 2.0 stored one secret, not JSON object.
    found: dict[str, float] = json.loads(text) if text.startswith("{") else {text: last}
    return {secret: until for secret, until in found.items() if time.time() < min(until, last)}


def disable(endpoint_id: UUID, reason: DisabledReason, *, actor: Actor) -> bool:
    """Deliver no more to an endpoint, and say why; False where it was not active, or is gone."""
    try:
        endpoint = queries.lock_row(WebhookEndpoint, endpoint_id)
    except NotFound:
        return False
    if not endpoint.is_active:
        return False
    values = {"is_active": False, "disabled_reason": reason.value}
    endpoint, change = queries.update_row(WebhookEndpoint, endpoint, values, actor_id=actor.id)
    record("webhook_endpoint.disabled", endpoint, change, actor=actor)
    return True


def with_secret(endpoint: WebhookEndpoint, secret: str | None) -> SimpleNamespace:
    """The endpoint's columns and its ``secret``, for the answer that shows it."""
    columns = WebhookEndpoint.__table__.columns.keys()
    return SimpleNamespace(**{name: getattr(endpoint, name) for name in columns}, secret=secret)


def _new_key(signing: Signing) -> tuple[str, str | None]:
    """The signing key (v1: ``whsec_…``, v1a: ``whsk_…``), and v1a's public key (``whpk_…``)."""
    if signing is Signing.V1:
        return f"whsec_{b64encode(secrets.token_bytes(SECRET_BYTES)).decode()}", None
    private = Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes_raw()
    both = private.private_bytes_raw() + public
    return f"whsk_{b64encode(both).decode()}", f"whpk_{b64encode(public).decode()}"


def _encrypted(headers: Mapping[str, str] | None) -> str | None:
    return encryption.encrypt(json.dumps(dict(headers))) if headers else None


def check_types(types: Sequence[str], owner: UUID) -> None:
    """Raise Invalid for types of which a tenant has no events."""
    errors = [
        value_error(["body", "types", place], "only the platform has these events", pattern)
        for place, pattern in enumerate(types)
        if all(known.startswith(("plan.", "email.")) for known in types_of(pattern))
    ]
    if errors and owner != PLATFORM_TENANT_ID:
        raise Invalid(*errors)

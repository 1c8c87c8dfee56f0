"""Requests and answers of /v1/webhook-endpoints."""

from __future__ import annotations

import re
from collections.abc import Iterable

from app.audit.outbox import NO_SUCH_TYPE, types_of
from app.audit.schemas import OwnerId
from app.core.errors import Entry, Invalid, error, value_error
from app.core.http.pagination import ONE_TENANT, PageQuerySchema
from app.core.json_text import Json
from app.core.outgoing import AddressRefused, check_url, guarded
from app.core.validation.fields import (
    AwareDateTime,
    Bool,
    Choice,
    Int,
    JsonObject,
    ListOf,
    Str,
    Uuid,
)
from app.core.validation.schemas import AttributedSchema, Schema
from app.webhooks.endpoints.models import DisabledReason, Signing

MAX_URL, MAX_HEADER, MAX_HEADERS, MAX_TYPES, MAX_RATE = 2_000, 2_000, 20, 50, 1_000
HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}", re.ASCII)
HEADER_VALUE = re.compile(r"[!-~]([ -~]*[!-~])?", re.ASCII)
RESERVED = re.compile(
    r"webhook-.*|host|content-.*|connection|transfer-encoding|te|trailer|upgrade|expect|keep-alive"
    r"|proxy-.*|accept-encoding|traceparent|tracestate|user-agent",
    re.IGNORECASE,
)


ADDRESS = {"description": "https, at a public address, without a user name or password."}
TYPES = {
    "description": "Which events to deliver; `membership.*` stands for all that begin so, `*` for"
    " all; see the [event types](../reference/event-types.md).",
    "minItems": 1,
    "maxItems": MAX_TYPES,
}


class Url(Str):
    """Where events may be sent; the address of the URL's host is checked at each delivery."""

    def from_json(self, value: object) -> str:
        url = str(super().from_json(value))
        try:
            check_url(url, only_public=guarded().only_public)
        except AddressRefused as refusal:
            raise Invalid(value_error((), str(refusal), url)) from None
        return url


class TypePattern(Str):
    """A type of events; one that ends in ``*`` stands for all that begin so."""

    def from_json(self, value: object) -> str:
        pattern = str(super().from_json(value))
        if not types_of(pattern):
            raise Invalid(value_error((), NO_SUCH_TYPE, pattern))
        return pattern


class Headers(JsonObject):
    """Header names and their values."""

    keywords = {"additionalProperties": {"type": "string"}, "maxProperties": MAX_HEADERS}

    def from_json(self, value: object) -> dict[str, Json]:
        headers: dict[str, Json] = super().from_json(value)
        if found := list(_header_errors(headers)):
            raise Invalid(*found)
        return headers


class Documented(Schema):
    """Descriptions and examples of the fields that the schemas here share."""

    examples = {
        "url": "https://hooks.example.com/billing",
        "types": ["subscription.*", "tenant.plan_changed"],
        "description": "Billing data warehouse",
        "headers": {"Authorization": "Bearer 7f2c"},
        "header_names": ["Authorization"],
        "rate_limit": 50,
        "public_key": None,
        "old_secret_until": None,
        "disabled_reason": None,
        "secret": "whsec_…",
    }
    descriptions = {
        "description": "What the endpoint is for; for people.",
        "header_names": "The names of the headers that each delivery has besides the signature's.",
        "rate_limit": "The most attempts in a second; null for no limit.",
        "signing": "`v1`: HMAC-SHA256 with a secret; `v1a`: Ed25519.",
    }


class WebhookEndpointSchema(Documented, AttributedSchema):
    """A webhook endpoint, without its secret and the values of its headers."""

    tenant_id = OwnerId(
        nullable=True, description="Null for an endpoint of the platform, which gets all events."
    )
    url = Str(description="Where events are sent.")
    types = ListOf(Str(), description="Which events are delivered.")
    description = Str()
    header_names = ListOf(Str())
    rate_limit = Int(nullable=True)
    signing = Choice(Signing)
    public_key = Str(nullable=True, description="Verifies the signatures of `v1a`; null for `v1`.")
    old_secret_until = AwareDateTime(
        nullable=True, description="Until then the secret before the last rotation signs too."
    )
    is_active = Bool(description="Whether events are delivered.")
    disabled_reason = Choice(
        DisabledReason,
        nullable=True,
        description="Why the service has disabled the endpoint: `gone`, it answered 410;"
        " `failing`, nothing but failures for 120 hours. `untested`: it was created with"
        " `is_active` false, and gets tests only.",
    )


class WebhookEndpointSecretSchema(WebhookEndpointSchema):
    """An endpoint with its new secret, which no other answer shows."""

    optional = ("secret",)

    secret = Str(
        nullable=True,
        description="Verifies the signatures of `v1`; null for `v1a`. Absent if the answer is"
        " replayed for an Idempotency-Key.",
    )


class WebhookEndpointUpdateSchema(Documented):
    """The fields to change. ``headers`` replaces all headers."""

    url = Url(min_length=1, max_length=MAX_URL, metadata=ADDRESS)
    types = ListOf(TypePattern(), metadata=TYPES)
    description = Str(max_length=1_000)
    headers = Headers(description="Sent with each delivery. Stored encrypted and never shown.")
    rate_limit = Int(ge=1, le=MAX_RATE, nullable=True)
    is_active = Bool(
        description="Events that come while it is false are not delivered, until they are"
        " recovered; deliveries that wait are kept."
    )


class WebhookEndpointCreateSchema(WebhookEndpointUpdateSchema):
    """A new endpoint."""

    url = Url(required=True, min_length=1, max_length=MAX_URL, metadata=ADDRESS)
    types = ListOf(TypePattern(), required=True, metadata=TYPES)
    signing = Choice(Signing, load_default=Signing.V1)


class WebhookEndpointQuerySchema(PageQuerySchema):
    """Filters of the list of endpoints."""

    tenant_id = Uuid(metadata=ONE_TENANT)
    is_failing = Bool(
        description="Only active endpoints whose last attempts have all failed, or only others."
    )


def _header_errors(headers: dict[str, Json]) -> Iterable[Entry]:
    if len(headers) > MAX_HEADERS:
        yield value_error((), f"there can be at most {MAX_HEADERS} headers")
        return
    if len({name.lower() for name in headers}) < len(headers):
        yield value_error((), "a header is given twice")
    for name, value in headers.items():
        if not HEADER_NAME.fullmatch(name):
            yield value_error((), "this is no name of a header", name)
        elif RESERVED.fullmatch(name):
            yield value_error((name,), "the service sets this header")
        elif not isinstance(value, str):
            yield error((name,), "string_type", "Input should be a valid string", value)
        elif len(value) > MAX_HEADER or not HEADER_VALUE.fullmatch(value):
            reason = f"must be at most {MAX_HEADER} printable ASCII characters"
            yield value_error((name,), reason)

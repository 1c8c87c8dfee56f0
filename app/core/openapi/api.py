"""flask-smorest's Api with this service's error handlers, settings and additions to OpenAPI."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from threading import Lock
from typing import Any

import flask_smorest
from apispec.ext.marshmallow import MarshmallowPlugin
from flask import Flask, Response, request

from app.core import json_text
from app.core.http import deprecations
from app.core.http.error_handlers import register_error_handlers
from app.core.openapi.components import HEADERS, RESPONSES, SCHEMAS
from app.core.openapi.descriptions import (
    SchemaDescriptions,
    component_name,
    describe_paths,
    summary,
    with_description,
)
from app.core.openapi.examples import add_examples
from app.core.validation.fields import Choice
from app.core.version import HEADER, VERSION

SECURITY_SCHEMES = {
    "user_token": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "A token of the identity provider.",
    },
    "api_key": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "sk_…",
        "description": "An API key made at `POST /v1/api-keys` or by `flask api-keys create`.",
    },
}

DESCRIPTION = f"""Every answer of `/v1` with a body is `{{"data": …}}`; OFREP, SCIM and the receivers of
webhooks have the forms of their standards and providers. A refusal is `{{"detail": …}}`, with a `code`
where the status alone is ambiguous. A 422 lists the errors and their places.

- **Lists** are `{{"data": […], "next_cursor": …}}`: give `next_cursor` as `cursor` for the next page, for
  `/v1/events` as `after`.
- **Single resources** have an `ETag`: send it as `If-Match` to change that version only (else 412), or as
  `If-None-Match` to get 304 while nothing has changed.
- **Requests sent twice**: a POST or PATCH with an `Idempotency-Key` has one effect within 24 hours.
- **Times** are RFC 3339 in UTC; **amounts** are integers in minor units of the currency.
- **Every answer** names the service's version in `{HEADER}` and the request in `X-Request-Id`. Where rate
  limits are on, `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset` (seconds) describe the limit,
  as do `RateLimit-Policy: "credential";q=6000;w=60` and `RateLimit: "credential";r=5999;t=60`.
- **Deprecated** operations and parameters answer with `Deprecation` (RFC 9745) and `Sunset` (RFC 8594).
- **429 and 503** have `Retry-After`: send the request again after so many seconds.
"""

OPENAPI_SETTINGS = {
    "API_TITLE": "Tenant control plane",
    "API_VERSION": VERSION,
    "API_SPEC_OPTIONS": {
        "info": {
            "summary": "Tenants, users, subscriptions, plans, feature flags, usage and events.",
            "description": DESCRIPTION,
            "contact": {"name": "The operator of this installation"},
            "license": {"name": "None has been chosen", "identifier": "NONE"},
        }
    },
    "OPENAPI_VERSION": "3.1.0",
    "OPENAPI_URL_PREFIX": "/",
    "OPENAPI_JSON_PATH": "openapi.json",
}


def choice2component(converter: Any, field: Any, ret: dict[str, Any]) -> dict[str, Any]:
    """Document an enumeration as a component, which all fields of that enumeration share."""
    if not isinstance(field, Choice):
        return {}
    name = component_name(field.enumeration)
    values = [member.value for member in field.enumeration]
    if name not in converter.spec.components.schemas:
        component = {"type": "string", "enum": values, "title": name}
        converter.spec.components.schema(
            name, {**component, "description": summary(field.enumeration)}
        )
    del ret["type"], ret["enum"]
    reference = converter.spec.components.get_ref("schema", name)
    return {"anyOf": [reference, {"type": "null"}]} if field.allow_none else reference


def as_deep_object(converter: Any, field: Any, ret: dict[str, Any]) -> dict[str, Any]:
    """Let generated clients send an object in the query as ``name[key]=value``."""
    is_deep = getattr(field, "deep_object", False)
    return {"style": "deepObject", "explode": True} if is_deep else {}


def with_example(converter: Any, field: Any, ret: dict[str, Any]) -> dict[str, Any]:
    """Take the field's example from ``Schema.examples``, unless the field has its own."""
    examples = getattr(field.parent, "examples", {})
    has_own = ret.get("examples") != getattr(field, "keywords", {}).get("examples")
    return {"examples": [examples[field.name]]} if field.name in examples and not has_own else {}


def without_null_default(converter: Any, field: Any, ret: dict[str, Any]) -> dict[str, Any]:
    """Remove ``"default": null`` from a field that refuses null."""
    if "default" in ret and ret["default"] is None and not field.allow_none:
        del ret["default"]
    return {}


class Api(flask_smorest.Api):
    """flask-smorest's Api; error handlers and error schemas are this service's."""

    DEFAULT_ERROR_RESPONSE_NAME = None

    def __init__(self, describe_webhooks: Callable[[Api], Mapping[str, Any]]) -> None:
        """``describe_webhooks`` returns ``webhooks`` of the document: their names and operations."""
        super().__init__()
        self._describe_webhooks = describe_webhooks
        self._blueprints: list[flask_smorest.Blueprint] = []
        self._building = Lock()

    def init_app(self, app: Flask, **options: Any) -> None:
        """Bind to ``app`` and describe how to authenticate."""
        app.config.from_mapping(OPENAPI_SETTINGS)
        super().init_app(
            app,
            spec_kwargs={
                "extra_plugins": [SchemaDescriptions()],
                "marshmallow_plugin": MarshmallowPlugin(schema_name_resolver=component_name),
            },
            **options,
        )
        for describe in (with_example, choice2component, with_description, without_null_default):
            self.ma_plugin.converter.add_attribute_function(describe)
        self.ma_plugin.converter.add_parameter_attribute_function(as_deep_object)
        for name, scheme in SECURITY_SCHEMES.items():
            self.spec.components.security_scheme(name, scheme)
        for name, schema in SCHEMAS.items():
            self.spec.components.schema(name, schema)
        for name, header in HEADERS.items():
            self.spec.components.header(name, header)

    def register_blueprint(self, blp: flask_smorest.Blueprint, **options: Any) -> None:
        """Register the routes. Their description takes time, so it is made for the document only."""
        self._app.register_blueprint(blp, **options)
        self._blueprints.append(blp)

    def _openapi_json(self) -> Response:
        response = Response(self._written, content_type="application/json")
        response.add_etag()
        response.make_conditional(request)
        return response

    @cached_property
    def _written(self) -> bytes:
        return json_text.dumps(self.document())

    def document(self) -> dict[str, Any]:
        """The OpenAPI document, built when it is first needed."""
        with self._building:
            return self._document

    @cached_property
    def _document(self) -> dict[str, Any]:
        for blueprint in self._blueprints:
            name, description = blueprint.name, blueprint.description
            blueprint.register_views_in_doc(self, self._app, self.spec, name=name, parameters=None)
            self.spec.tag({"name": name, "description": description})
        webhooks = self._describe_webhooks(self)
        document = {
            **self.spec.to_dict(),
            "servers": [{"url": self._app.config["PUBLIC_URL"].rstrip("/") or "/"}],
            "webhooks": webhooks,
        }
        describe_paths(document)
        deprecations.mark(document["paths"])
        add_examples(document)
        return document

    def webhook_example(self, name: str) -> Any:
        """An example of the body of a webhook that the service sends."""
        described = self.document()["webhooks"][name]["post"]["requestBody"]
        return described["content"]["application/json"]["example"]

    def _register_responses(self) -> None:
        """Register the two 422 responses in place of flask-smorest's response for every status."""
        for name, response in RESPONSES.items():
            self.spec.components.response(name, response)

    def _register_pagination_header(self) -> None:
        """Register no header: a list has ``next_cursor`` in its body instead."""

    def _register_error_handlers(self) -> None:
        register_error_handlers(self._app)

"""flask-smorest's Api with this service's errors, security schemes and document settings."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import flask_smorest
from flask import Flask

from app.core.contract import SCHEMAS, VALIDATION_FAILED
from app.core.error_handlers import register_error_handlers

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

OPENAPI_SETTINGS = {
    "API_TITLE": "Tenant control plane",
    "API_VERSION": "v1",
    "OPENAPI_VERSION": "3.1.0",
    "OPENAPI_URL_PREFIX": "/",
    "OPENAPI_JSON_PATH": "openapi.json",
}


class Api(flask_smorest.Api):
    """One error shape only: flask-smorest's own handlers and error schema are not registered."""

    DEFAULT_ERROR_RESPONSE_NAME = None

    def init_app(self, app: Flask, **options: Any) -> None:
        """Bind to ``app`` and describe how to authenticate."""
        app.config.from_mapping(OPENAPI_SETTINGS)
        super().init_app(app, **options)
        for name, scheme in SECURITY_SCHEMES.items():
            self.spec.components.security_scheme(name, scheme)
        for name, schema in SCHEMAS.items():
            self.spec.components.schema(name, schema)

    def _register_responses(self) -> None:
        """Only the answer that ``@blp.arguments`` refers to; the rest is in ``core/contract.py``."""
        self.spec.components.response(HTTPStatus(422).name, VALIDATION_FAILED)

    def _register_error_handlers(self) -> None:
        register_error_handlers(self._app)

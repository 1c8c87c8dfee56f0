"""Cross-origin requests: scripts of pages from ``CORS_ORIGINS`` may use /v1 and /ofrep.

Credentials are in the ``Authorization`` header, never in cookies. So no answer has
``Access-Control-Allow-Credentials``. Answers allow one origin each, never ``*``. A preflight needs
no credential and is not counted for the rate limits. Error answers have the headers too, so a
script can read them.
"""

from __future__ import annotations

from collections.abc import Collection

from flask import Flask, Response, request
from werkzeug.datastructures import HeaderSet

PATHS = ("/v1/", "/ofrep/")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
REQUEST_HEADERS = (
    "Authorization",
    "Content-Type",
    "Idempotency-Key",
    "Last-Event-ID",
    "If-Match",
    "If-None-Match",
    "X-Consistency",
    "X-Request-Id",
    "X-Source-Timestamp",
)
RESPONSE_HEADERS = (
    "Deprecation",
    "ETag",
    "Idempotent-Replayed",
    "Link",
    "Location",
    "RateLimit",
    "RateLimit-Limit",
    "RateLimit-Policy",
    "RateLimit-Remaining",
    "RateLimit-Reset",
    "Retry-After",
    "Sunset",
    "X-API-Version",
    "X-Consistency",
    "X-Plan-Unknown",
    "X-Request-Id",
    "X-Update-Ignored",
)
PREFLIGHT_SECONDS = 7200  # for which a browser may cache a preflight; Chromium caches no longer


def allow_origins(app: Flask, origins: Collection[str]) -> None:
    """Let scripts of these origins use the API. An empty collection changes nothing."""
    if not origins:
        return

    @app.before_request
    def answer_preflight() -> Response | None:
        """Answer a preflight of an allowed origin. Routing answers any other OPTIONS with 405."""
        is_preflight = request.method == "OPTIONS" and request.access_control_request_method
        if not is_preflight or not request.path.startswith(PATHS) or request.origin not in origins:
            return None
        response = Response(status=204)
        response.access_control_allow_methods = HeaderSet(METHODS)
        response.access_control_allow_headers = HeaderSet(REQUEST_HEADERS)
        response.access_control_max_age = PREFLIGHT_SECONDS
        return response

    @app.after_request
    def add_headers(response: Response) -> Response:
        if request.path.startswith(PATHS):
            response.vary.add("Origin")
            if request.origin in origins:
                response.access_control_allow_origin = request.origin
                response.access_control_expose_headers = HeaderSet(RESPONSE_HEADERS)
        return response

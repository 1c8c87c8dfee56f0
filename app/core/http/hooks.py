"""The hooks that run before and after every request to any endpoint."""

from __future__ import annotations

import logging
import time

from flask import Response, current_app
from werkzeug.exceptions import NotFound

from app.core.errors import BadRequest, PermissionDenied
from app.core.http import deprecations
from app.core.http.body_limits import body_limit
from app.core.http.endpoint import NOBODY, Endpoint, Guarded
from app.core.http.rate_limit import RateLimits
from app.core.http.request import current_request
from app.core.observability import logs
from app.core.observability.metrics import METHODS, count_request
from app.core.version import HEADER, VERSION

log = logging.getLogger(__name__)


def begin() -> None:
    """Set the request's id and the limit of its body, and refuse malformed requests.

    Raises NotFound if the path begins with ``//`` or contains a NUL character. Raises BadRequest if
    an HTTP/1.1 request has no ``Host`` or several, and PermissionDenied for a view without access.
    """
    request = current_request()
    request.started = time.perf_counter()
    logs.begin_request(request.headers.get("X-Request-Id"))
    path = request.environ["PATH_INFO"]
    sent = request.environ.get("REQUEST_URI") or path  # waitress changes //v1 to /v1 in PATH_INFO
    if sent.startswith("//") or path.startswith("//") or "\0" in path:
        raise NotFound
    host = request.environ.get("HTTP_HOST", ",")  # waitress joins repeated headers by commas
    if "," in host and request.environ["SERVER_PROTOCOL"] == "HTTP/1.1":
        raise BadRequest("A request of HTTP/1.1 has one Host header.")  # RFC 9112, section 3.2
    request.max_content_length = request.max_form_memory_size = body_limit(request.path)
    if request.endpoint is None:
        return
    view = current_app.view_functions[request.endpoint]
    if not isinstance(view, Guarded) or view.access is NOBODY:
        raise PermissionDenied("This endpoint names no permission.")


def finish(response: Response) -> Response:
    """Add the headers of every answer, and log the request."""
    request = current_request()
    response.headers["X-Request-Id"] = logs.current_request_id()
    response.headers[HEADER] = VERSION
    RateLimits.add_headers(request, response)
    view = current_app.view_functions.get(request.endpoint or "")
    if isinstance(view, Endpoint):
        deprecations.add_headers(response, view.operation_id, request.args)
    method = request.method if request.method in METHODS else "other"
    route = request.url_rule.rule if request.url_rule else "unrouted"
    seconds = time.perf_counter() - request.started
    count_request(method, route, response.status_code, seconds)
    fields = {"method": method, "route": route, "status": response.status_code}
    log.info("request", extra={**fields, "duration_ms": round(seconds * 1000, 2)})
    return response

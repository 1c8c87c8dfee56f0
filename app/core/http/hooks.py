"""What runs before and after every request, whatever its endpoint."""

from __future__ import annotations

import time

from flask import Flask, Response, g, request
from werkzeug.exceptions import NotFound

from app.core.errors import PermissionDenied
from app.core.http.body_limits import body_limit
from app.core.http.rate_limit import IS_COUNTED, RateLimits
from app.core.observability import logs
from app.core.observability.metrics import observe_request
from app.core.version import HEADER, VERSION


def register_hooks(app: Flask, limits: RateLimits) -> None:
    """Give each request an id and its limits, and count and log each response."""

    @app.before_request
    def begin() -> None:
        """Begin the request's log, set the body limit, and count the request if it is guarded.

        Raises NotFound for a path that begins with ``//`` or has a NUL character, PermissionDenied
        for a view without ``access``, and TooManyRequests beyond the rate limit.
        """
        g.started = time.perf_counter()
        logs.begin_request(request.headers.get("X-Request-Id"))
        path = request.environ["PATH_INFO"]
        if path.startswith("//") or "\0" in path:  # Werkzeug would match //v1/users as /v1/users
            raise NotFound
        request.max_content_length = body_limit(request.path)
        request.max_form_memory_size = request.max_content_length
        if request.endpoint is None:
            return
        access = getattr(app.view_functions[request.endpoint], "access", None)
        if access is None:
            raise PermissionDenied("This endpoint names no permission.")
        is_guarded = getattr(access, "permission", None) is not None
        if is_guarded and IS_COUNTED not in request.environ:
            limits.count_request(is_scim=getattr(access, "is_scim", False))

    @app.after_request
    def finish(response: Response) -> Response:
        response.headers["X-Request-Id"] = logs.current_request_id()
        response.headers[HEADER] = VERSION
        limits.add_headers(response)
        observe_request(response.status_code, time.perf_counter() - g.started)
        return response

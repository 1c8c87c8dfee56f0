"""What runs before and after every request, whatever its endpoint."""

from __future__ import annotations

import time

from flask import Flask, Response
from flask.globals import request_ctx
from werkzeug.exceptions import NotFound

from app.core.errors import PermissionDenied
from app.core.http import state
from app.core.http.body_limits import body_limit
from app.core.http.endpoint import Guarded
from app.core.http.rate_limit import RateLimits
from app.core.observability import logs
from app.core.observability.metrics import observe_request
from app.core.version import HEADER, VERSION


def register_hooks(app: Flask, limits: RateLimits) -> None:
    """Register the hooks: ids and body limits before each request, metrics and a log line after it."""

    @app.before_request
    def begin() -> None:
        """Begin the request's state and log, and set the limit of its body.

        Raises NotFound for a path that begins with ``//`` or has a NUL character, and
        PermissionDenied for a view without ``access``.
        """
        current = request_ctx.request
        state.begin(current)
        logs.begin_request(current.headers.get("X-Request-Id"))
        path = current.environ["PATH_INFO"]
        sent = current.environ.get("REQUEST_URI") or path  # the server makes //v1/users /v1/users
        if sent.startswith("//") or path.startswith("//") or "\0" in path:
            raise NotFound
        current.max_content_length = current.max_form_memory_size = body_limit(current.path)
        if current.endpoint is None:
            return
        view = app.view_functions[current.endpoint]
        if not isinstance(view, Guarded) or view.access is None:
            raise PermissionDenied("This endpoint names no permission.")

    @app.after_request
    def finish(response: Response) -> Response:
        current = state.current_state()
        response.headers["X-Request-Id"] = logs.current_request_id()
        response.headers[HEADER] = VERSION
        limits.add_headers(current, response)
        observe_request(
            current.request, response.status_code, time.perf_counter() - current.started
        )
        return response

    @app.teardown_request
    def end(fault: BaseException | None) -> None:
        state.end()

"""Answers exceptions with the two error bodies; no stack trace, SQL text or secret is sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import psycopg2
from flask import Flask, Response, current_app, request
from sqlalchemy.exc import TimeoutError as PoolTimeout
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound

from app.core.db.transactions import RowChanged
from app.core.errors import AppError, DatabaseUnavailable, Forbidden, Invalid, Unauthenticated
from app.core.http.body_limits import TOO_LARGE
from app.core.http.routing import allowed_methods, redirect_to_slashless
from app.core.observability.logs import add_facts, current_facts
from app.core.validation import messages

_SENT_HEADERS = ("Allow", "Retry-After", "WWW-Authenticate")


def register_error_handlers(app: Flask) -> None:
    """Answer every error of ``app`` with one of the two bodies.

    An unavailable database is 503. Any other exception is logged and answered with a 500 without
    details.
    """
    app.log_exception = _log  # type: ignore[method-assign]
    app.register_error_handler(AppError, _app_error)
    app.register_error_handler(HTTPException, _http_exception)
    for unavailable in (
        psycopg2.OperationalError,
        psycopg2.InterfaceError,
        PoolTimeout,
        RowChanged,
    ):
        app.register_error_handler(unavailable, _database_unavailable)


def _log(exc_info: Any) -> None:
    """Log as Flask does, without the path, which may contain personal data."""
    current_app.logger.error("request_failed", exc_info=exc_info)


def _app_error(error: AppError) -> Response:
    if isinstance(error, Unauthenticated | Forbidden):
        _describe_refusal(error)
    body = messages.body(error.errors) if isinstance(error, Invalid) else _json(error.body())
    return _answer(error.status, body, error.headers)


def _describe_refusal(error: Unauthenticated | Forbidden) -> None:
    """Add to the request's log line why it is refused, the kind of credential, and the address.

    The line names the principal as well, where the credential has one.
    """
    reason = error.reason if isinstance(error, Unauthenticated) else error.code
    kind = current_facts().get("credential", "none")
    add_facts(reason=reason or "forbidden", credential=kind, address=request.remote_addr or "")


def _http_exception(error: HTTPException) -> Response:
    if isinstance(error, NotFound) and request.routing_exception is error:  # not from a view
        redirect = redirect_to_slashless(
            request,
            current_app.create_url_adapter(request),
            current_app.config.get("PUBLIC_URL", ""),
        )
        if redirect is not None:
            return redirect
    status = error.code or 500
    detail = TOO_LARGE if status == 413 else HTTPStatus(status).phrase
    headers = {name: value for name, value in error.get_headers() if name in _SENT_HEADERS}
    if isinstance(error, MethodNotAllowed):
        headers["Allow"] = allowed_methods(error, current_app.url_map, request.path)
    return _answer(status, _json({"detail": detail}), headers)


def _database_unavailable(error: Exception) -> Response:
    current_app.logger.warning("database_unavailable", extra={"reason": str(error)})
    return _app_error(DatabaseUnavailable())


def _json(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def _answer(status: int, body: bytes, headers: Mapping[str, str]) -> Response:
    response = Response(body, status=status, content_type="application/json")
    response.headers.update(headers)
    return response

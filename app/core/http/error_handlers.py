"""Answers exceptions with the two error bodies; no stack trace, SQL text or secret is sent.

A protocol such as SCIM has its own error body, see :func:`answer_errors`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from http import HTTPStatus
from types import TracebackType

import psycopg2
from flask import Flask, Response, current_app, request
from sqlalchemy.exc import TimeoutError as PoolTimeout
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound

from app.core import errors
from app.core.db.transactions import RowChanged
from app.core.errors import AppError, DatabaseUnavailable, Forbidden, Invalid, Unauthenticated
from app.core.http.body_limits import TOO_LARGE, body_limit
from app.core.http.routing import allowed_methods, redirect_to_slashless
from app.core.observability.logs import add_facts, current_facts
from app.core.validation import messages

WriteBody = Callable[[AppError], bytes]
"""A function that writes the body of an error's answer."""

JSON = "application/json"
HANDLED = (
    AppError,
    HTTPException,
    psycopg2.OperationalError,
    psycopg2.InterfaceError,
    PoolTimeout,
    RowChanged,
)
_SENT_HEADERS = ("Allow", "Retry-After", "WWW-Authenticate")
_protocols: dict[str, tuple[WriteBody, str]] = {}


def register_error_handlers(app: Flask) -> None:
    """Answer every error of ``app``.

    An unavailable database is answered with 503. An unexpected exception is logged and answered
    with 500, without details.
    """
    app.log_exception = _log  # type: ignore[method-assign]
    for kind in HANDLED:
        app.register_error_handler(kind, _answer)


def answer_errors(where: str, write_body: WriteBody, content_type: str = JSON) -> None:
    """Answer the errors of a protocol by ``write_body``. Call it while its module is imported.

    ``where`` is the name of a blueprint, or a path. A path stands for all paths below it too, also
    for those without a route. If several calls match a request, the first call counts.
    """
    _protocols[where] = write_body, content_type


def _log(
    exc_info: tuple[type, BaseException, TracebackType | None] | tuple[None, None, None],
) -> None:
    """Log an exception as Flask does, but without the path, which may contain personal data."""
    current_app.logger.error("request_failed", exc_info=exc_info)


def _answer(error: Exception) -> Response:
    if isinstance(error, NotFound) and request.routing_exception is error:  # no view
        urls = current_app.create_url_adapter(request)
        redirect = redirect_to_slashless(request, urls)
        if redirect is not None:
            return redirect
    known = _known_error(error)
    write_body, content_type = _protocol()
    view = current_app.view_functions.get(request.endpoint or "")
    status = getattr(view, "invalid_status", 422) if isinstance(known, Invalid) else known.status
    response = Response(write_body(known), status, content_type=content_type)
    response.headers.update(known.headers)
    return response


def _protocol() -> tuple[WriteBody, str]:
    for where, protocol in _protocols.items():
        if where == request.blueprint or f"{request.path}/".startswith(f"{where}/"):
            return protocol
    return _write_body, JSON


def _write_body(error: AppError) -> bytes:
    if isinstance(error, Invalid):
        return messages.body(error.errors)
    text = json.dumps(error.body(), ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="replace")


def _known_error(error: Exception) -> AppError:
    """The exception as an AppError. The log gets the reason of a 401, 403 or 503."""
    if isinstance(error, HTTPException):
        return _http_error(error)
    if not isinstance(error, AppError):
        current_app.logger.warning("database_unavailable", extra={"reason": str(error)})
        return DatabaseUnavailable()
    view = current_app.view_functions.get(request.endpoint or "")
    if isinstance(error, errors.NotFound) and getattr(view, "is_of_contract", False):
        return errors.NotFound()
    if isinstance(error, Unauthenticated | Forbidden):
        reason = error.reason if isinstance(error, Unauthenticated) else error.code
        kind = current_facts().get("credential", "none")
        add_facts(reason=reason or "forbidden", credential=kind, address=request.remote_addr or "")
    return error


def _http_error(error: HTTPException) -> AppError:
    known = AppError(HTTPStatus(error.code or 500).phrase)
    known.status = error.code or 500
    known.headers = {name: text for name, text in error.get_headers() if name in _SENT_HEADERS}
    if isinstance(error, MethodNotAllowed):
        known.headers["Allow"] = allowed_methods(error, current_app.url_map, request.path)
    if known.status == 413:
        known.detail = TOO_LARGE.format(limit=body_limit(request.path))
    return known

"""Answers exceptions with the two error bodies; no stack trace, SQL text or secret is sent.

A blueprint of another protocol has its own error body, see :func:`answer_errors`. So have all
paths of a protocol, see :func:`answer_errors_below`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any

import psycopg2
from flask import Blueprint, Flask, Response, current_app, request
from sqlalchemy.exc import TimeoutError as PoolTimeout
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound

from app.core.db.transactions import RowChanged
from app.core.errors import AppError, DatabaseUnavailable, Forbidden, Invalid, Unauthenticated
from app.core.http.body_limits import TOO_LARGE, body_limit
from app.core.http.routing import allowed_methods, redirect_to_slashless
from app.core.observability.logs import add_facts, current_facts
from app.core.validation import messages

WriteBody = Callable[[AppError], bytes]
"""Writes the body of an error's answer."""

JSON = "application/json"
_protocols: dict[str, tuple[WriteBody, str]] = {}

_SENT_HEADERS = ("Allow", "Retry-After", "WWW-Authenticate")


def register_error_handlers(app: Flask) -> None:
    """Answer every error of ``app`` with one of the two bodies.

    An unavailable database is 503. Any other exception is logged and answered with a 500 without
    details.
    """
    app.log_exception = _log  # type: ignore[method-assign]
    answer_errors(app, _write_body)
    app.register_error_handler(NotFound, _redirect_or_not_found)


def answer_errors(target: Flask | Blueprint, write_body: WriteBody) -> None:
    """Answer the errors of an application, or of the requests to one blueprint, with this body.

    A blueprint's body takes precedence. Requests that no route matches have no blueprint.
    """
    answer = partial(_answer, write_body)
    for kind in (
        AppError,
        HTTPException,
        psycopg2.OperationalError,
        psycopg2.InterfaceError,
        PoolTimeout,
        RowChanged,
    ):
        target.register_error_handler(kind, answer)


def answer_errors_below(prefix: str, write_body: WriteBody, content_type: str) -> None:
    """Answer the errors of all paths below ``prefix`` with this body.

    This includes requests that no route matches. Call it when the protocol's module is imported.
    """
    _protocols[prefix] = write_body, content_type


def _log(exc_info: Any) -> None:
    """Log as Flask does, without the path, which may contain personal data."""
    current_app.logger.error("request_failed", exc_info=exc_info)


def _answer(write_body: WriteBody, error: Exception) -> Response:
    known = _known_error(error)
    path, content_type = request.path, JSON
    for prefix, protocol in _protocols.items():
        if path == prefix or path.startswith(f"{prefix}/"):
            write_body, content_type = protocol
            break
    response = Response(write_body(known), known.status, content_type=content_type)
    response.headers.update(known.headers)
    return response


def _redirect_or_not_found(error: NotFound) -> Response:
    redirect = None
    if request.routing_exception is error:  # not from a view
        redirect = redirect_to_slashless(
            request,
            current_app.create_url_adapter(request),
            current_app.config.get("PUBLIC_URL", ""),
        )
    return redirect or _answer(_write_body, error)


def _write_body(error: AppError) -> bytes:
    return messages.body(error.errors) if isinstance(error, Invalid) else _json(error.body())


def _known_error(error: Exception) -> AppError:
    """The error as one of ours; refusals and an unavailable database are logged."""
    if isinstance(error, HTTPException):
        return _http_error(error)
    if not isinstance(error, AppError):
        current_app.logger.warning("database_unavailable", extra={"reason": str(error)})
        return DatabaseUnavailable()
    if isinstance(error, Unauthenticated | Forbidden):
        _describe_refusal(error)
    return error


def _describe_refusal(error: Unauthenticated | Forbidden) -> None:
    """Add to the request's log line why it is refused, the kind of credential, and the address.

    The line names the principal as well, where the credential has one.
    """
    reason = error.reason if isinstance(error, Unauthenticated) else error.code
    kind = current_facts().get("credential", "none")
    add_facts(reason=reason or "forbidden", credential=kind, address=request.remote_addr or "")


def _http_error(error: HTTPException) -> AppError:
    status = error.code or 500
    headers = {name: value for name, value in error.get_headers() if name in _SENT_HEADERS}
    if isinstance(error, MethodNotAllowed):
        headers["Allow"] = allowed_methods(error, current_app.url_map, request.path)
    detail = HTTPStatus(status).phrase
    if status == 413:
        detail = TOO_LARGE.format(limit=body_limit(request.path))
    known = AppError(detail, headers=headers)
    known.status = status
    return known


def _json(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")

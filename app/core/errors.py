"""The errors that services raise, and their two JSON bodies.

Every error is an :class:`AppError`. A failed validation (:class:`Invalid`) is answered with
FastAPI's body, ``{"detail": [{type, loc, msg, input, ctx?}, …]}``. Any other error is answered with
``{"detail": "sentence"}``, and with ``"code": "snake_case"`` where the status alone is ambiguous.
Each code has a class of its own. A route names the classes that it can raise in ``@blp.raises``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

Location = Sequence[str | int]
Entry = dict[str, Any]
"""One entry of a 422's ``detail``: type, loc, msg, input and optionally ctx."""


class AppError(Exception):
    """An error that the client can act on.

    A subclass sets ``status``, the HTTP status, and ``detail``, the default sentence of the body.
    """

    status = 500
    code: str | None = None
    detail = "Error"
    keys: Mapping[str, Mapping[str, Any]] = {}
    """Further keys of the body, each with its JSON Schema, for the OpenAPI document."""

    def __init__(
        self, detail: str | None = None, *, headers: Mapping[str, str] | None = None
    ) -> None:
        self.detail = detail or self.detail
        super().__init__(self.detail)
        self.headers = dict(headers or {})

    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = {"detail": self.detail}
        if self.code is not None:
            body["code"] = self.code
        return body


class BadRequest(AppError):
    """400: the request cannot be parsed."""

    status = 400


class Unauthenticated(AppError):
    """401: the credential is missing or not valid. Only the log shows the ``reason``."""

    status = 401
    detail = "Not authenticated"

    def __init__(self, *, reason: str = "credential_invalid") -> None:
        super().__init__(headers={"WWW-Authenticate": "Bearer"})
        self.reason = reason


class Forbidden(AppError):
    """403: the credential is valid but lacks the permission."""

    status = 403


class PermissionDenied(Forbidden):
    """The credential lacks a permission that the endpoint or a part of the request needs."""

    code = "permission_denied"
    detail = "This needs a permission that the credential does not have."


class ProviderField(Forbidden):
    code = "provider_field"
    detail = "Only a platform credential can change the provider's fields."


class NotFound(AppError):
    """404: the row does not exist, or the credential cannot see it.

    The answers of the nine operations in the interface document have no ``code``.
    """

    status = 404
    detail = "Not Found"

    @staticmethod
    @cache
    def of(what: type | str) -> type[NotFound]:
        """The error with the code ``<name>_not_found``; ``what`` is the name, or a model."""
        name = what if isinstance(what, str) else getattr(what, "resource_name", what.__name__)
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
        return type("RowNotFound", (NotFound,), {"code": f"{words}_not_found"})


class Conflict(AppError):
    """409: the state of the data does not allow the change."""

    status = 409


class TooLarge(AppError):
    """413: the body is larger than the service reads from this sender."""

    status = 413


class UnsupportedMediaType(AppError):
    """415: the endpoint does not accept the body's Content-Type."""

    status = 415


class PreconditionFailed(AppError):
    """412: ``If-Match`` names a version that is no longer current."""

    status = 412
    code = "stale_version"
    detail = "The resource has changed since the version in If-Match, or that is not its ETag."


class Unavailable(AppError):
    """503: a service that the request needs is not available; a retry may succeed."""

    status = 503

    def __init__(self) -> None:
        super().__init__(headers={"Retry-After": "5"})


class DatabaseUnavailable(Unavailable):
    """PostgreSQL did not answer in time, or each attempt had a conflict with a transaction."""

    code = "database_unavailable"
    detail = "The database is not available."


class Invalid(AppError):
    """422: FastAPI's ``HTTPValidationError``.

    :func:`error`, :func:`value_error` and :mod:`app.core.validation.messages` build the entries.
    """

    status = 422
    detail = "Validation failed"

    def __init__(self, *errors: Entry) -> None:
        super().__init__()
        self.errors = list(errors)


def error(
    loc: Location, type_: str, msg: str, value: object = None, ctx: Mapping[str, Any] | None = None
) -> Entry:
    """One entry; its keys are in pydantic's order."""
    entry = {"type": type_, "loc": list(loc), "msg": msg, "input": value}
    if ctx is not None:
        entry["ctx"] = dict(ctx)
    return entry


def value_error(loc: Location, reason: str, value: object = None) -> Entry:
    """The entry for a value that breaks a rule of this service, as pydantic's ``value_error``."""
    return error(loc, "value_error", f"Value error, {reason}", value, {"error": {}})


def first_line(fault: Exception) -> str:
    """The first line of an error's message. For a SQLAlchemy error it is the database's message."""
    return str(getattr(fault, "orig", None) or fault).strip().partition("\n")[0]

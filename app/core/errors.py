"""The errors a service may raise, and the two bodies they become.

Every refusal is an :class:`AppError`. A validation failure is answered with
FastAPI's body (``{"detail": [{type, loc, msg, input, ctx?}, …]}``), anything
else with ``{"detail": "sentence"}`` and, where the status alone is ambiguous,
``"code": "snake_case"``. No stack trace, SQL text or secret is ever sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Location = Sequence[str | int]


class AppError(Exception):
    """A refusal that the client can act on; ``status`` is its HTTP status."""

    status = 500

    def __init__(
        self,
        detail: str | None = None,
        *,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code
        self.headers = dict(headers or {})

    def body(self) -> dict[str, Any]:
        """The JSON body of the answer."""
        body: dict[str, Any] = {"detail": self.detail}
        if self.code is not None:
            body["code"] = self.code
        return body


class BadRequest(AppError):
    """400: the request cannot be read at all."""

    status = 400


class Unauthenticated(AppError):
    """401: no credential, or one that does not hold."""

    status = 401

    def __init__(self, detail: str = "Not authenticated") -> None:
        super().__init__(detail, headers={"WWW-Authenticate": "Bearer"})


class Forbidden(AppError):
    """403: a valid credential that may not do this."""

    status = 403


class NotFound(AppError):
    """404: no such row, or none this credential can see."""

    status = 404

    def __init__(self) -> None:
        super().__init__("Not Found")


class Conflict(AppError):
    """409: the state of the data does not allow it."""

    status = 409


class PreconditionFailed(AppError):
    """412: ``If-Match`` names a version that is no longer current."""

    status = 412

    def __init__(self) -> None:
        super().__init__(
            "The resource has changed since the version named in If-Match.", code="stale_version"
        )


class PayloadTooLarge(AppError):
    """413: the body is larger than this endpoint takes."""

    status = 413


class Unavailable(AppError):
    """503: something this request needs is away; the same request may succeed later."""

    status = 503

    def __init__(self, detail: str, *, code: str = "unavailable", retry_after: int = 5) -> None:
        super().__init__(detail, code=code, headers={"Retry-After": str(retry_after)})


class Invalid(AppError):
    """422: FastAPI's ``HTTPValidationError``; build its entries with :func:`error`."""

    status = 422

    def __init__(self, *errors: dict[str, Any]) -> None:
        super().__init__("Validation failed")
        self.errors = list(errors)

    def body(self) -> dict[str, Any]:
        return {"detail": self.errors}


def error(
    loc: Location,
    type_: str,
    msg: str,
    value: Any = None,
    ctx: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """One entry of a 422's ``detail``, its keys in pydantic's order."""
    entry = {"type": type_, "loc": list(loc), "msg": msg, "input": value}
    if ctx is not None:
        entry["ctx"] = dict(ctx)
    return entry

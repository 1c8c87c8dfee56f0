"""Errors below /scim: the body of RFC 7644 §3.12, for whatever goes wrong."""

from __future__ import annotations

from app.core import json_text
from app.core.errors import AppError, BadRequest, Invalid
from app.memberships.seats import SeatLimit
from app.users.emails import EmailTaken, ErasureRequested
from app.users.service import IdpUserIdTaken

SCIM_JSON = "application/scim+json"
SCHEMA = "urn:ietf:params:scim:api:messages:2.0:Error"


class ScimError(AppError):
    """An error with a ``scim_type`` of RFC 7644 table 9, or without a ``scim_type``."""

    def __init__(self, status: int, detail: str, *, scim_type: str | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.scim_type = scim_type


def invalid_value(detail: str) -> ScimError:
    return ScimError(400, detail, scim_type="invalidValue")


def translate(error: AppError) -> AppError:
    """An error of the services as SCIM answers it.

    A directory would send a 409 again; so a limit of seats, or a requested erasure, is 403.
    """
    match error:
        case Invalid():
            return invalid_value("; ".join(entry["msg"] for entry in error.errors))
        case BadRequest():
            return ScimError(400, error.detail, scim_type="invalidSyntax")
        case EmailTaken() | IdpUserIdTaken():
            return ScimError(409, error.detail, scim_type="uniqueness")
        case SeatLimit() | ErasureRequested():
            return ScimError(403, error.detail)
    return error


def write_error(error: AppError) -> bytes:
    """The body of any error."""
    body = {"schemas": [SCHEMA], "status": str(error.status)}
    scim_type = getattr(error, "scim_type", None)
    if scim_type:
        body["scimType"] = scim_type
    return json_text.dumps({**body, "detail": error.detail})

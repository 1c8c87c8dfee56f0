"""POST /scim/oauth/token: OAuth 2.0 client credentials (RFC 6749 section 4.4, RFC 7523)."""

from __future__ import annotations

from base64 import b64decode
from urllib.parse import unquote_plus

from flask import Blueprint, Response, request

from app.auth.guard import public
from app.connections import clients
from app.connections.clients import InvalidClient, OAuthError
from app.core import json_text
from app.core.db import retries
from app.core.errors import AppError
from app.core.http.rate_limit import rate_limits
from app.core.http.request import current_request
from app.core.http.routing import own_address
from app.core.validation.scalars import unstorable

PATH = "/scim/oauth/token"
ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
JSON = "application/json"
CODES = {429: "temporarily_unavailable", 500: "server_error", 503: "temporarily_unavailable"}

blp = Blueprint("scim_oauth", __name__)


@blp.post(PATH)
@public
def token() -> Response:
    """Give a connection an access token for its client credentials."""
    rate_limits().count_request(current_request(), is_scim=True)
    form = _form()
    if "grant_type" not in form:
        raise OAuthError("invalid_request", "grant_type is missing.")
    if form["grant_type"] != "client_credentials":
        raise OAuthError("unsupported_grant_type", "grant_type must be client_credentials.")
    try:
        granted = retries.run(lambda: _grant(form))
    except InvalidClient as refusal:
        rate_limits().count_failed_authentication(current_request())
        if "Authorization" in request.headers:
            refusal.headers["WWW-Authenticate"] = 'Basic realm="scim"'
        raise
    body = {
        "access_token": granted,
        "token_type": "Bearer",
        "expires_in": int(clients.LIFETIME.total_seconds()),
    }
    headers = {"Cache-Control": "no-store", "Pragma": "no-cache"}
    return Response(json_text.dumps(body), 200, headers, content_type=JSON)


def _form() -> dict[str, str]:
    """The parameters; raises OAuthError for a parameter that is sent twice or cannot be stored."""
    form = request.form
    if any(len(values) > 1 for values in form.listvalues()):
        raise OAuthError("invalid_request", "A parameter is repeated.")
    if unstorable(dict(form)):
        raise OAuthError("invalid_request", "A parameter has text that cannot be stored.")
    return dict(form)


def _grant(form: dict[str, str]) -> str:
    assertion = form.get("client_assertion")
    if assertion is not None:
        if form.get("client_assertion_type") != ASSERTION_TYPE:
            raise OAuthError("invalid_request", f"client_assertion_type must be {ASSERTION_TYPE}.")
        return clients.grant_to_assertion(assertion, own_address(request) + PATH)
    if "Authorization" in request.headers:
        return clients.grant_to_secret(*_basic())
    if "client_id" not in form or "client_secret" not in form:
        raise InvalidClient("client_id and client_secret, or client_assertion, are missing.")
    return clients.grant_to_secret(form["client_id"], form["client_secret"])


def _basic() -> tuple[str, str]:
    """The client's id and secret in the header, which are encoded as in a form."""
    scheme, _, credential = request.headers["Authorization"].partition(" ")
    try:
        client_id, _, secret = b64decode(credential, validate=True).decode().partition(":")
    except ValueError:
        raise InvalidClient from None
    if scheme.lower() != "basic":
        raise InvalidClient
    return unquote_plus(client_id), unquote_plus(secret)


def write_error(error: AppError) -> bytes:
    """The body of RFC 6749 section 5.2, for whatever goes wrong."""
    is_own = isinstance(error, OAuthError)
    code = error.code if is_own else CODES.get(error.status, "invalid_request")
    return json_text.dumps({"error": code, "error_description": error.detail})

"""/scim/v2: one view for all methods and paths, so that each error has SCIM's body.

`scim2-server` routes the request. It is loaded by the first authenticated request.
"""

from __future__ import annotations

from flask import Blueprint, Response
from flask.blueprints import BlueprintSetupState
from werkzeug.exceptions import MethodNotAllowed
from werkzeug.routing import Rule

from app.connections import activity, oauth
from app.core.db import retries, transactions
from app.core.errors import NotFound
from app.core.http.error_handlers import answer_errors
from app.core.http.rate_limit import rate_limits
from app.core.http.request import Request, current_request
from app.scim import access
from app.scim.errors import SCIM_JSON, write_error

PREFIX = "/scim"
VERSION = "v2"

blp = Blueprint("scim", __name__)


def answer(path: str, request: Request) -> Response:
    """The answer to a request, in the open transaction; raises AppError."""
    version, _, rest = path.partition("/")
    connection = access.enter(request)
    if version != VERSION:
        raise NotFound(detail=f"The base of SCIM is {PREFIX}/{VERSION}.")
    from app.scim import protocol

    if request.method != "GET" and not rest.endswith(".search"):
        transactions.current_transaction().is_confirming = True
    return protocol.serve(request, f"/{rest}", connection)


@blp.endpoint("scim.serve")
@access.with_token
def serve(path: str = "") -> Response:
    """Serve a request of the connection whose token it has, in one transaction.

    Its rule has all methods, so the token endpoint's other methods arrive here as well.
    """
    request = current_request()
    rate_limits().count_request(request, is_scim=True)
    if request.path == oauth.PATH:
        raise MethodNotAllowed
    return retries.run(lambda: answer(path, request))


@blp.record
def _add_rules(state: BlueprintSetupState) -> None:
    """Add rules that match every method; one without a route is answered with 405 by the view."""
    for rule in (PREFIX, f"{PREFIX}/", f"{PREFIX}/<path:path>"):
        state.app.url_map.add(Rule(rule, endpoint="scim.serve"))


blp.after_request(activity.record)
answer_errors(oauth.PATH, oauth.write_error, oauth.JSON)  # the first that matches counts
answer_errors(PREFIX, write_error, SCIM_JSON)

"""Routing as FastAPI has it: no path stands for another, but for the slash at its end."""

from __future__ import annotations

from urllib.parse import quote

from flask import Flask, Request, Response, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound
from werkzeug.routing import Map, MapAdapter

_IN_PATH = "/:@!$&'()*+,;="
_IN_QUERY = "%/?:@!$&'()*+,;=[]"


def configure_routing(app: Flask) -> None:
    """Call before the first route: slashes are not merged, OPTIONS is answered like any method."""
    app.url_map.merge_slashes = False
    app.url_map.strict_slashes = True
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    app.before_request(_refuse_odd_path)


def redirect_to_slashless(
    request: Request, urls: MapAdapter | None, public_url: str
) -> Response | None:
    """307 to the path without its trailing slashes; None where there is no such path either.

    The address is absolute: ``public_url``, or else the one that the request was sent to.

    The method is not looked at: the path redirected to answers 405 itself. The body is not read.
    """
    path = request.path.rstrip("/")
    if path in ("", request.path) or urls is None or not urls.allowed_methods(path):
        return None
    base = public_url.rstrip("/") or f"{request.scheme}://{request.host}"
    location = base + quote(path, safe=_IN_PATH)
    if request.query_string:
        location += f"?{quote(request.query_string, safe=_IN_QUERY)}"
    return Response(status=307, headers={"Location": location})


def is_unrouted(error: HTTPException, request: Request) -> bool:
    """Whether ``error`` says that no route matches, rather than that a view found no row."""
    return request.routing_exception is error


def allowed_methods(error: MethodNotAllowed, urls: Map, path: str) -> str:
    """``Allow``: a path that is a rule by itself has no methods of one that merely matches it."""
    own = [rule.methods or set() for rule in urls.iter_rules() if rule.rule == path]
    return ", ".join(sorted(set().union(*own) if own else error.valid_methods or ()))


def _refuse_odd_path() -> None:
    """Werkzeug matches ``//v1/users`` as ``/v1/users``; and nothing is named with U+0000."""
    path = request.environ["PATH_INFO"]
    if path.startswith("//") or "\0" in path:
        raise NotFound

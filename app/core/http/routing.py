"""Routing as in FastAPI: a path matches exactly; one with a trailing slash is redirected."""

from __future__ import annotations

from urllib.parse import quote

from flask import Flask, Request, Response
from werkzeug.exceptions import MethodNotAllowed
from werkzeug.routing import Map, MapAdapter

_IN_PATH = "/:@!$&'()*+,;="
_IN_QUERY = "%/?:@!$&'()*+,;=[]"


def configure_routing(app: Flask) -> None:
    """Do not merge slashes, and answer OPTIONS like any other method. Call before the first route."""
    app.url_map.merge_slashes = False
    app.url_map.strict_slashes = True
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False


def redirect_to_slashless(
    request: Request, urls: MapAdapter | None, public_url: str
) -> Response | None:
    """A 307 to the path without its trailing slashes; None if that path has no route either.

    The address is absolute. If ``public_url`` is empty, it has the request's scheme and host.
    The method is not checked: the new path answers 405 itself. The body is not read.
    """
    path = request.path.rstrip("/")
    if path in ("", request.path) or urls is None or not urls.allowed_methods(path):
        return None
    base = public_url.rstrip("/") or f"{request.scheme}://{request.host}"
    location = base + quote(path, safe=_IN_PATH)
    if request.query_string:
        location += f"?{quote(request.query_string, safe=_IN_QUERY)}"
    return Response(status=307, headers={"Location": location})


def allowed_methods(error: MethodNotAllowed, urls: Map, path: str) -> str:
    """The ``Allow`` header. A rule without parameters hides the methods of a rule with parameters."""
    own = [rule.methods or set() for rule in urls.iter_rules() if rule.rule == path]
    return ", ".join(sorted(set().union(*own) if own else error.valid_methods or ()))

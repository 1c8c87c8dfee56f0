"""Routing as in FastAPI: a path matches exactly; one with a trailing slash is redirected."""

from __future__ import annotations

from urllib.parse import quote

from flask import Flask, Request, Response, current_app
from werkzeug.exceptions import MethodNotAllowed
from werkzeug.routing import Map, MapAdapter, RequestRedirect
from werkzeug.sansio.utils import get_host

_IN_PATH = "/:@!$&'()*+,;="
_IN_QUERY = "%/?:@!$&'()*+,;=[]"


def configure_routing(app: Flask) -> None:
    """Do not merge slashes, and answer OPTIONS like any other method. Call before the first route."""
    app.url_map.merge_slashes = False
    app.url_map.strict_slashes = True
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False


def redirect_to_slashless(request: Request, urls: MapAdapter | None) -> Response | None:
    """A 307 to the path without its trailing slashes.

    None if the path has none, or if the path without them has no route.

    The address is absolute. The method is not checked: the new path answers 405 itself. The body is
    not read.
    """
    path = request.path.rstrip("/")
    if path in ("", request.path) or urls is None or not urls.allowed_methods(path):
        return None
    return _redirect(request, path)


def redirect_to_slash(request: Request) -> Response | None:
    """A 307 where the path needs a slash at its end, in place of werkzeug's.

    Werkzeug's has the host of the ``Host`` header.
    """
    if not isinstance(request.routing_exception, RequestRedirect):
        return None
    return _redirect(request, request.path.rstrip("/") + "/")


def _redirect(request: Request, path: str) -> Response:
    location = own_address(request) + quote(path, safe=_IN_PATH)
    if request.query_string:
        location += f"?{quote(request.query_string, safe=_IN_QUERY)}"
    return Response(status=307, headers={"Location": location})


def own_address(request: Request) -> str:
    """The service's address, without a slash at its end: ``PUBLIC_URL``.

    Without it the ``X-Forwarded-Host`` of a trusted proxy, else the address that the client connected
    to. Never the ``Host`` header, because a client can send any. ProxyFix stores the host of a trusted
    proxy in SERVER_NAME too, and the original values under its own key.
    """
    if public_url := current_app.config.get("PUBLIC_URL", ""):
        return str(public_url).rstrip("/")
    environ = request.environ
    original = environ.get("werkzeug.proxy_fix.orig", environ)
    is_named = environ["SERVER_NAME"] != original["SERVER_NAME"]
    host = request.host if is_named else get_host(request.scheme, None, request.server)
    return f"{request.scheme}://{host or 'localhost'}"  # on a Unix socket there is no host


def allowed_methods(error: MethodNotAllowed, urls: Map, path: str) -> str:
    """The ``Allow`` header. A rule without parameters hides the methods of a rule with parameters."""
    own = [rule.methods or set() for rule in urls.iter_rules() if rule.rule == path]
    return ", ".join(sorted(set().union(*own) if own else error.valid_methods or ()))

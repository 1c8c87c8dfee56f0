"""Routing as in FastAPI: paths match exactly; a path with a wrong trailing slash is redirected."""

from __future__ import annotations

from urllib.parse import quote

from flask import Flask, Request, Response, current_app
from werkzeug.exceptions import MethodNotAllowed
from werkzeug.routing import Map, MapAdapter
from werkzeug.sansio.utils import get_host

_IN_PATH = "/:@!$&'()*+,;="
_IN_QUERY = "%/?:@!$&'()*+,;=[]"


def configure_routing(app: Flask) -> None:
    """Match paths exactly, and let OPTIONS get 405. Call it before the first route is added."""
    app.url_map.merge_slashes = False
    app.url_map.strict_slashes = True
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False


def redirect_to_slashless(request: Request, urls: MapAdapter | None) -> Response | None:
    """A 307 to the path without its trailing slashes.

    None if the path has no trailing slash, or if the path without its slashes has no route.

    ``Location`` is an absolute URL. The method is not checked: the new path answers 405 itself. The
    body is not read.
    """
    path = request.path.rstrip("/")
    if path in ("", request.path) or urls is None or not urls.allowed_methods(path):
        return None
    location = own_address(request) + quote(path, safe=_IN_PATH)
    if request.query_string:
        location += f"?{quote(request.query_string, safe=_IN_QUERY)}"
    return Response(status=307, headers={"Location": location})


def own_address(request: Request) -> str:
    """The service's URL, without a slash at its end: ``PUBLIC_URL`` if it is set.

    Otherwise the host is ``X-Forwarded-Host`` of a trusted proxy, else the address on which the
    server listens. It is never the ``Host`` header, because a client can send any. ProxyFix stores
    a trusted proxy's host in SERVER_NAME too, and the original value in ``orig``.
    """
    if public_url := current_app.config.get("PUBLIC_URL", ""):
        return str(public_url).rstrip("/")
    environ = request.environ
    original = environ.get("werkzeug.proxy_fix.orig", environ)
    is_named = environ["SERVER_NAME"] != original["SERVER_NAME"]
    host = request.host if is_named else get_host(request.scheme, None, request.server)
    return f"{request.scheme}://{host or 'localhost'}"  # on a Unix socket there is no host


def allowed_methods(error: MethodNotAllowed, urls: Map, path: str) -> str:
    """The ``Allow`` header. If a rule equals the path, rules with parameters do not count."""
    own = [rule.methods or set() for rule in urls.iter_rules() if rule.rule == path]
    return ", ".join(sorted(set().union(*own) if own else error.valid_methods or ()))

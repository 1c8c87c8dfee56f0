"""The console's blueprint with all of its pages, and the way into it from ``/``."""

from __future__ import annotations

from flask import Flask, Response, redirect, request
from werkzeug.exceptions import NotFound

from app.auth.guard import public
from app.console import pages, sign_in  # noqa: F401 - they register their pages
from app.console.access import signed_in_without_tenant
from app.console.assets import asset_response
from app.console.blueprint import console
from app.console.brand import brand_response


@console.get("/assets/<digest>/<name>")
@public
def read_asset(digest: str, name: str) -> Response:
    """Send a style sheet or a script."""
    try:
        return asset_response(name, digest)
    except KeyError:
        raise NotFound from None


@console.get("/brand/<name>")
@public
def read_brand(name: str) -> Response:
    """Send the logo or the colours of the setup pages."""
    response = brand_response(name)
    if response is None:
        raise NotFound
    return response


@console.get("/<path:rest>")
@signed_in_without_tenant
def unknown_page(rest: str) -> Response:
    """Answer every other path below /console with the console's own 404."""
    raise NotFound


def open_console(app: Flask) -> None:
    """Serve the console, and lead from ``/`` to it, or to the documentation."""
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    app.register_blueprint(console)

    @app.get("/")
    @public
    def start() -> Response:
        """Lead a browser to the console, and any other client to the documentation."""
        is_browser = "text/html" in dict(request.accept_mimetypes)  # not only */*
        response = redirect("/console" if is_browser else "/docs", 302)
        response.headers["Vary"] = "Accept"
        return response  # type: ignore[return-value]

"""The stream process: event streams, and reads of the event feed that wait.

Its gunicorn worker class runs each request in a greenlet (gevent), so thousands can wait in one
process. A greenlet is interrupted only where it waits, so the code here needs no locks.
"""

from __future__ import annotations

from typing import cast

from flask import Flask

import app as service
from app.core.http.endpoint import Endpoint
from app.core.http.error_handlers import register_error_handlers
from app.events.routes import blp as events
from app.operations.routes import blp as operations
from app.streams.hub import EXTENSION, Hub
from app.streams.routes import BLUEPRINTS, waiting


def create_app() -> Flask:
    """The WSGI application of the stream process. It reads the primary only."""
    # After a restart thousands of clients come back at once, and wait for their turn.
    settings = {"DATABASE_REPLICA_URLS": "", "DB_POOL_TIMEOUT": "60"}
    made = service.create_app(settings, with_commands=False, register=_register)
    made.extensions[EXTENSION].start()
    return made


def _register(made: Flask) -> None:
    register_error_handlers(made)
    hub = made.extensions[EXTENSION] = Hub(made)
    made.extensions["health"] = []  # the web processes' /metrics has what the database counts
    for blueprint in (*BLUEPRINTS, events, operations):
        made.register_blueprint(blueprint)
    name = f"{events.name}.list_events"
    listing = cast("Endpoint", made.view_functions[name])
    made.view_functions[name] = waiting(listing, hub)

"""All generated pages."""

from __future__ import annotations

from pathlib import Path

from flask import Flask

from app.cli import COMMANDS
from app.config import SETTINGS
from app.dev.commands import COMMANDS as DEVELOPMENT_COMMANDS
from app.dev.reference import commands, configuration, endpoints, errors, event_types
from app.events.catalogue import CATALOGUE
from app.surfaces.operations import operations_of

FOLDER = Path(__file__).parents[3] / "docs" / "reference"


def render_all(app: Flask) -> dict[str, str]:
    """The text of each generated page by its file name in :data:`FOLDER`."""
    document = app.test_client().get("/openapi.json").get_json()
    return {
        "commands.md": commands.render(app, (*COMMANDS, *DEVELOPMENT_COMMANDS)),
        "configuration.md": configuration.render(SETTINGS),
        "endpoints.md": endpoints.render(operations_of(document)),
        "errors.md": errors.render(document),
        "event-types.md": event_types.render(CATALOGUE),
    }

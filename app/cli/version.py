"""The command ``flask version``."""

from __future__ import annotations

import platform
from importlib.metadata import version as version_of

import click

from app.cli.base import OperatorCommand, json_option
from app.core.version import VERSION
from app.surfaces.commands.text import print_text

PACKAGES = ("Flask", "flask-smorest", "SQLAlchemy", "psycopg2-binary", "rq", "gunicorn")


@click.command("version", cls=OperatorCommand)
@json_option
def version(as_json: bool) -> None:
    """Show the versions of the service and its packages."""
    versions = {
        "service": VERSION,
        "Python": platform.python_version(),
        **{name: version_of(name) for name in PACKAGES},
    }
    lines = [f"{name} {number}" for name, number in versions.items()]
    print_text("\n".join(lines), versions, as_json=as_json)

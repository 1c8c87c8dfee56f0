"""The WSGI entry point: ``gunicorn wsgi:app``; ``flask`` commands find the app here too."""

import gc
import os

gc.disable()  # garbage collections would take half of the time that a start takes, and find nothing

import click  # noqa: E402

from app import create_app  # noqa: E402

# Flask's own variable: it is set where a `flask …` command imports this.
is_command = os.environ.get("FLASK_RUN_FROM_CLI") == "true"
try:
    app = create_app(with_commands=is_command, quiet=is_command)
except click.ClickException as fault:  # such as a wrong configuration
    raise SystemExit(f"Error: {fault.format_message()}") from None

gc.freeze()  # everything that exists now lasts: exclude it from later collections
gc.enable()

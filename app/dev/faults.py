"""What goes wrong on a developer's machine, said in one sentence."""

from __future__ import annotations

import click


class DevError(click.ClickException):
    """One sentence for the person at the terminal; a command that raises it exits with 1."""

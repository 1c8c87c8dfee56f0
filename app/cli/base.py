"""Shared by hand-written commands: the transaction, the error messages, the options.

Results go to standard output. Logs, progress and prompts go to standard error.
"""

from __future__ import annotations

from collections.abc import Callable

import click
import psycopg2
from flask import current_app
from flask.cli import AppGroup
from psycopg2.errors import UndefinedTable
from sqlalchemy.exc import ProgrammingError

from app.core.db.transactions import RowChanged
from app.core.errors import AppError, Entry, Invalid, NotFound, first_line
from app.surfaces.commands.answers import where_listed
from app.surfaces.commands.refusals import Command, Refused, WrongArguments, reason
from app.surfaces.commands.text import printable

ROWS = {"connection_id": "SCIM connection", "resume": "import", "subject": "platform superadmin"}
"""What a parameter names whose name is not that of a row and ``_id``."""

NOT_MIGRATED = "The database is not migrated: run flask db upgrade."
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")


class OperatorCommand(Command):
    """A command by hand. An error of the service or of PostgreSQL is one line."""

    def refusal(self, ctx: click.Context, fault: Exception) -> click.ClickException | None:
        match fault:
            case Invalid():
                detail = "; ".join(map(fault_text, fault.errors))
                return WrongArguments(detail, {"detail": fault.errors})
            case NotFound() if fault.detail == NotFound.detail:
                detail = _missing_row(ctx) or fault.detail
                return Refused(detail, {**fault.body(), "detail": detail})
            case AppError():
                return Refused(fault.detail, fault.body())
            case RowChanged():
                return Refused("Another transaction changed this row. Run the command again.")
            case UndefinedTable() | ProgrammingError(orig=UndefinedTable()):
                return Refused(NOT_MIGRATED)
            case psycopg2.Error():
                return Refused(f"PostgreSQL: {first_line(fault)}")
        return super().refusal(ctx, fault)


class Group(AppGroup):
    """A group of commands by hand, which run in the application's context."""

    command_class = OperatorCommand


def local_address() -> str:
    """The URL of the service on this machine: that of the last ``flask dev``."""
    address: Callable[[], str] = current_app.extensions["local_address"]
    return address()


def fault_text(fault: Entry) -> str:
    """An entry of a 422 as ``place: reason``; the first part of its ``loc``, ``body``, is left out."""
    place = ".".join(map(str, fault["loc"][1:]))
    return f"{place}: {reason(fault)}".removeprefix(": ")


def _missing_row(ctx: click.Context) -> str:
    """Which row is missing, by the command's words (``There is no SCIM connection 17.``)."""
    for name, value in ctx.params.items():
        kind = ROWS.get(name) or name.removesuffix("_id")
        if kind != name and isinstance(value, str):
            return f"There is no {kind} {printable(value)}{where_listed(name, value)}."
    return ""

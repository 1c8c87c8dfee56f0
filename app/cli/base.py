"""What commands by hand share: the transaction, the error messages, the options.

Results go to standard output. Logs, progress and prompts go to standard error.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click
import psycopg2
from flask import current_app

from app.core.db import tenancy
from app.core.db.transactions import RowChanged, transaction
from app.core.errors import AppError, Invalid, NotFound, first_line
from app.surfaces.commands.refusals import Refused, not_utf8, reason
from app.surfaces.commands.text import printable

F = TypeVar("F", bound=Callable[..., Any])

ROWS = {
    "connection_id": "SCIM connection",
    "resume": "import",
    "subject": "platform superadmin",
}
"""What a parameter names whose name is not that of a row and ``_id``."""

yes_option = click.option("--yes", is_flag=True, help="Do not ask.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")


def operator(command: F) -> F:
    """Run a command in one transaction that sees every tenant; errors as :func:`one_line_errors`."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        with transaction():
            tenancy.enter(tenancy.PLATFORM)
            return command(*args, **kwargs)

    return one_line_errors(run)  # type: ignore[return-value]


def one_line_errors(command: Callable[..., Any]) -> Callable[..., Any]:
    """Print an error of the service or of PostgreSQL as one line, with exit code 1."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except Invalid as refusal:
            # The first part of ``loc`` is that of the request, such as ``body``.
            faults = [
                f"{'.'.join(map(str, fault['loc'][1:]))}: {reason(fault)}"
                for fault in refusal.errors
            ]
            raise Refused("; ".join(faults)) from None
        except NotFound as refusal:
            raise Refused(_missing_row(refusal)) from None
        except AppError as refusal:
            raise Refused(refusal.detail or "Not found.") from None
        except RowChanged:
            raise Refused(
                "Another transaction changed this row at the same time. Run the command again."
            ) from None
        except UnicodeEncodeError as fault:
            raise not_utf8(fault) from None
        except psycopg2.Error as fault:
            raise Refused(f"PostgreSQL: {first_line(fault)}") from None

    return run


def local_address() -> str:
    """The URL of the service on this machine: that of the last ``flask dev``."""
    address: Callable[[], str] = current_app.extensions["local_address"]
    return address()


def _missing_row(refusal: NotFound) -> str:
    """Which row is missing, by the command's words: ``There is no SCIM connection 17.``"""
    if refusal.detail == NotFound.detail:
        for name, value in click.get_current_context().params.items():
            kind = ROWS.get(name) or name.removesuffix("_id")
            if kind != name and isinstance(value, str):
                return f"There is no {kind} {printable(value)}."
    return refusal.detail

"""What commands print about errors, and the question before they destroy something."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

import click

from .text import print_json, printable


class Refused(click.ClickException):
    """A refusal: one sentence or, with ``--json``, the body of the API's answer."""

    def __init__(self, message: str, body: Any = None) -> None:
        super().__init__(message)
        self.body = body or {"detail": message}
        context = click.get_current_context(silent=True)
        self.as_json = context is not None and bool(context.params.get("as_json"))

    def show(self, file: IO[Any] | None = None) -> None:
        """Print it on standard error."""
        if self.as_json:
            print_json(self.body, err=True)
        else:
            super().show(file)


class Incomplete(Refused):
    """The command lacks an option."""

    exit_code = 2


def not_utf8(fault: UnicodeEncodeError) -> click.UsageError:
    """The error for an argument that cannot be sent."""
    return click.UsageError(f"This is not UTF-8: {fault.object[:100]!a}")


def ask(question: str, *, yes: bool) -> None:
    """Ask on standard error, unless ``yes``. Without consent the command ends with exit code 1.

    Call it outside a transaction: PostgreSQL ends one that waits for a person.
    """
    if yes:
        return
    try:
        click.confirm(printable(question), abort=True, err=True)
    except click.Abort:
        raise Refused("Nothing was changed. With --yes nothing is asked.") from None


def reason(fault: Mapping[str, Any]) -> str:
    """What is wrong with a value, for people: without the words that FastAPI's clients expect.

    A value that violates our own rule is named, because it may be one of several in an option.
    """
    told, value = str(fault["msg"]).removeprefix("Value error, "), fault["input"]
    if fault["type"] == "value_error" and value and isinstance(value, str):
        return f"{told}: {printable(value[:100])}"
    return told

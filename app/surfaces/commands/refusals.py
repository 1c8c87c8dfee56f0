"""The messages of commands about errors, and asking for a yes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import click

from .text import print_json, printable

REASONS = {  # for some types of errors, in place of FastAPI's
    "extra_forbidden": "there is no such field",
    "string_pattern_mismatch": "{} is not of the allowed form: {}",
    "uuid_parsing": "{} is not an id",
}

ANY_TEXT = "text without control characters"
FORMS = {
    r"^[a-z0-9]+(-[a-z0-9]+)*$": "lower-case letters and digits, with single hyphens between them",
    r"^[a-z][a-z0-9_]{0,62}$": "a lower-case letter, then at most 62 of a-z, 0-9 and _",
    r"^[a-z][a-z0-9_-]{0,63}$": "a lower-case letter, then at most 63 of a-z, 0-9, _ and -",
    r"^[A-Za-z][A-Za-z0-9_.:-]{0,63}$": "a letter, then at most 63 letters, digits, _, ., : and -",
    r"^[A-Za-z0-9._-]{1,128}$": "1 to 128 letters, digits, ., _ and -",
    r"^[^\x01-\x1F\x7F-\x9F]*$": ANY_TEXT,
}
"""The patterns of names, in words."""


class Refused(click.ClickException):
    """A refusal: one sentence, and the body of the API's answer."""

    def __init__(self, message: str, body: Any = None) -> None:
        super().__init__(message)
        self.body = body


class WrongArguments(Refused):
    """Values are missing or wrong: what the API answers with 422."""

    exit_code = 2


class Command(click.Command):
    """A command whose errors are one sentence, or JSON with ``--json``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        as_json = "--json" in args
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as fault:
            if as_json:
                _end_with_json(ctx, fault)
            raise

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as fault:
            refusal = self.refusal(ctx, fault)
            if refusal is None:
                raise
            if ctx.params.get("as_json"):
                _end_with_json(ctx, refusal)
            raise refusal from None

    def refusal(self, ctx: click.Context, fault: Exception) -> click.ClickException | None:
        """The message for an exception; None if it is a fault of the program."""
        if isinstance(fault, UnicodeEncodeError):
            return click.UsageError(f"This is not UTF-8: {fault.object[:100]!a}")
        return fault if isinstance(fault, click.ClickException) else None


def _end_with_json(ctx: click.Context, fault: click.ClickException) -> NoReturn:
    """Print the body of the API's answer, or the sentence, on standard error, and exit."""
    body = getattr(fault, "body", None) or {"detail": fault.format_message()}
    print_json(body, err=True)
    ctx.exit(fault.exit_code)


def ask(question: str, *, yes: bool) -> None:
    """Ask on standard error, unless ``yes``. Without consent the command ends with exit code 1.

    Call it outside a transaction: PostgreSQL ends a transaction that waits for a person.
    """
    if yes:
        return
    try:
        click.confirm(printable(question), abort=True, err=True)
    except click.Abort:
        raise Refused("Nothing was changed. With --yes nothing is asked.") from None


def reason(fault: Mapping[str, Any]) -> str:
    """The fault of a value, for people: without the words that FastAPI's clients expect.

    A value that violates our own rule is named, because it may be one of several in an option.
    """
    told, value = str(fault["msg"]).removeprefix("Value error, "), fault["input"]
    if known := REASONS.get(fault["type"]):
        context = [FORMS.get(str(one), one) for one in fault.get("ctx", {}).values()]
        return known.format(printable(str(value)[:100]), *context)
    if fault["type"] == "value_error" and value and isinstance(value, str):
        return f"{told.rstrip('.')}: {printable(value[:100])}"
    return told

"""All options that take a time accept and refuse the same values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import click
import pytest

from app.cli.times import Time
from tests.cli.test_help import commands

ID = "01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f"
TIMES = {
    "audit list --after": [],
    "audit list --before": [],
    "flags override --expires-at": ["acme", "beta", "true"],
    "subscriptions cancel --canceled-at": [ID],
    "subscriptions update --source-timestamp": [ID],
    "tenants plan set --until": ["acme", "free"],
    "webhook-endpoints recover --since": [ID],
}
"""Each option that takes a time, with the arguments of its command."""


def convert(text):
    return Time().convert(text, None, None)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2030-01-31", datetime(2030, 1, 31, tzinfo=UTC)),
        ("2030-01-31T12:00", datetime(2030, 1, 31, 12, tzinfo=UTC)),
        ("2030-01-31 12:00:00.5", datetime(2030, 1, 31, 12, 0, 0, 500_000, tzinfo=UTC)),
        ("2030-01-31T12:00:00Z", datetime(2030, 1, 31, 12, tzinfo=UTC)),
        ("2030-01-31T12:00:00+02:00", datetime(2030, 1, 31, 10, tzinfo=UTC)),
    ],
)
def test_a_time_without_an_offset_is_utc(text, moment):
    found = convert(text)

    assert (found, found.utcoffset()) == (moment, timedelta(0))


def test_a_time_that_was_converted_stays():
    moment = datetime(2030, 1, 31, tzinfo=timezone(timedelta(hours=2)))

    assert convert(moment) is moment


@pytest.mark.parametrize(
    "text", ["", "tomorrow", "2020", "1767225600", "2030-02-30", "0001-01-01T00:00:00+23:00"]
)
def test_another_text_is_refused_with_an_example(text):
    with pytest.raises(click.BadParameter) as refusal:
        convert(text)

    assert refusal.value.message == (
        f"{text!r} is no time, such as 2030-01-31 or 2030-01-31T12:00:00Z."
    )


def test_every_option_that_takes_a_time_has_the_type():
    found = {
        f"{words} {option.opts[0]}"
        for words, command in commands().items()
        for option in command.params
        if isinstance(option.type, Time)
    }
    others = {
        f"{words} {option.opts[0]}"
        for words, command in commands().items()
        for option in command.params
        if isinstance(option.type, click.DateTime)
        or "RFC 3339" in (getattr(option, "help", 0) or "")
    }

    assert (found, others) == (set(TIMES), set())


@pytest.mark.parametrize("option", sorted(TIMES))
def test_the_error_names_the_option(app, option):
    words = [*option.split()[:-1], *TIMES[option], option.split()[-1], "tomorrow"]

    ended = app.test_cli_runner().invoke(args=words)

    assert (ended.exit_code, ended.stdout) == (2, "")
    assert f"Error: Invalid value for '{option.split()[-1]}'" in ended.stderr
    assert "such as 2030-01-31" in ended.stderr

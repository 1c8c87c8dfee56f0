"""Times as options take them, and their distance from now."""

from datetime import datetime, timedelta

import click
import pytest

from app.core.clock import rfc3339, utcnow
from app.surfaces.commands.times import Moment, Time, relative
from tests.cli.test_help import commands

ID = "01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f"
NOW = datetime.fromisoformat("2026-11-24T12:00:00+00:00")


@pytest.fixture
def noon(monkeypatch):
    monkeypatch.setattr("app.surfaces.commands.times.utcnow", lambda: NOW)


def convert(text, *, is_past=False):
    return Time(is_past=is_past).convert(text, None, None)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2030-01-31", "2030-01-31T00:00:00Z"),
        ("2030-01-31T12:00", "2030-01-31T12:00:00Z"),
        ("2030-01-31 12:00:00.5", "2030-01-31T12:00:00.500000Z"),
        ("2030-01-31T12:00:00Z", "2030-01-31T12:00:00Z"),
        ("2030-01-31T12:00:00+02:00", "2030-01-31T10:00:00Z"),
    ],
)
def test_a_time_without_an_offset_is_utc(text, moment):
    assert convert(text) == moment


@pytest.mark.parametrize(
    ("text", "is_past", "moment"),
    [
        ("14d", False, "2026-12-08T12:00:00Z"),
        ("2w", False, "2026-12-08T12:00:00Z"),
        ("90m", False, "2026-11-24T13:30:00Z"),
        ("45s", False, "2026-11-24T12:00:45Z"),
        ("12h", True, "2026-11-24T00:00:00Z"),
        ("-1d", False, "2026-11-23T12:00:00Z"),
        ("+1d", True, "2026-11-25T12:00:00Z"),
    ],
)
def test_a_span_is_from_now(noon, text, is_past, moment):
    assert convert(text, is_past=is_past) == moment


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("10m", "2026-11-24T11:50:00Z"),
        ("2026-11-20", "2026-11-20T00:00:00Z"),
        ("20261120", "20261120"),
        ("4711", "4711"),
        ("beginning", "beginning"),
        ("-1h", "2026-11-24T11:00:00Z"),
        ("q8Yx_0-Zt1uV" * 4, "q8Yx_0-Zt1uV" * 4),
    ],
)
def test_a_moment_is_a_time_of_the_past_or_a_position(noon, text, moment):
    assert Moment(is_past=True).convert(text, None, None) == moment


@pytest.mark.parametrize("text", ["", "10min", "Friday", "1 hour ago"])
def test_a_wrong_moment_is_refused_with_the_forms_that_there_are(app, text):
    for words in (["users", "list", "--as-of"], ["history", "diff", "acme"]):
        ended = app.test_cli_runner().invoke(args=[*words, text])

        assert (ended.exit_code, ended.stdout) == (2, "")
        assert f"{text!r} is not a time, such as" in ended.stderr
        assert "10m (10 minutes ago; units: s, m, h, d, w), or a position" in ended.stderr


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tomorrow",
        "2020",
        "14",
        "1767225600",
        "2030-02-30",
        "0001-01-01T00:00:00+23:00",
    ],
)
def test_another_text_is_refused_with_an_example(text):
    with pytest.raises(click.BadParameter) as refusal:
        convert(text)

    assert refusal.value.message == (
        f"{text!r} is not a time, such as 2030-01-31, 2030-01-31T12:00:00Z or 14d (units: s, m, h, d, w)."
    )


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (13 * 86_400, "in 13 days"),
        (13.999 * 86_400, "in 14 days"),
        (86_400, "in 1 day"),
        (-3600, "1 hour ago"),
        (-125, "2 minutes ago"),
        (40 * 86_400, "in 40 days"),
        (800 * 86_400, "in 2 years"),
        (3, "just now"),
    ],
)
def test_the_distance_has_the_largest_unit(noon, seconds, told):
    assert relative(rfc3339(NOW + timedelta(seconds=seconds))) == told


@pytest.mark.parametrize("text", ["", "2030", "2030-13-01T00:00:00Z", "at 2030-01-01T00:00:00Z"])
def test_another_text_has_no_distance(text):
    assert relative(text) == ""


def test_every_time_of_an_operation_has_the_type(app):
    found = {
        f"{words} {option.opts[0]}": getattr(option.type, "inner", option.type)
        for words, command in commands(app).items()
        for option in command.params
        if isinstance(getattr(option.type, "inner", option.type), Time)
    }

    past = {name for name, kind in found.items() if kind.is_past}
    assert {"audit list --created-after", "webhook-endpoints recover --since"} <= past
    assert {
        "tenants plan set --until",
        "flags override --expires-at",
        "tenants list --plan-ends-before",
        "sso-connections list --certificate-ends-before",
    } <= found.keys() - past
    assert "subscriptions update --source-timestamp" in past


@pytest.mark.parametrize(
    "option", ["tenants plan set acme pro --until", "users list --created-after"]
)
def test_the_error_names_the_option(app, option):
    ended = app.test_cli_runner().invoke(args=[*option.split(), "tomorrow"])

    assert (ended.exit_code, ended.stdout) == (2, "")
    assert f"Error: Invalid value for '{option.split()[-1]}'" in ended.stderr
    assert "such as 2030-01-31" in ended.stderr


def test_14d_is_two_weeks_from_now(app, api):
    ended = app.test_cli_runner().invoke(
        args=["api-keys", "create", "--name", "n", "--permission", "users:read",
              "--expires-at", "14d", "--yes"]
    )  # fmt: skip

    assert rfc3339(utcnow() + timedelta(days=14))[:10] in ended.stdout

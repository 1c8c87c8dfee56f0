"""An error names what its user has written: the option, the argument, or a field of ``--set``."""

from __future__ import annotations

import pytest

from tests.factories import create_tenant

ID = "01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f"


def test_refuses_an_argument_that_is_not_utf_8(app):
    ended = app.test_cli_runner().invoke(args=["tenants", "show", "a\udcff"])

    assert (ended.exit_code, ended.stdout) == (2, "")
    assert r"Error: This is not UTF-8: 'a\udcff'" in ended.stderr


@pytest.mark.parametrize("words", [["export", "--tenant", "acme"], ["tenants", "export", "acme"]])
def test_names_a_file_that_cannot_be_written(app, tmp_path, words):
    create_tenant(slug="acme")
    path = tmp_path / "missing" / "file"

    ended = app.test_cli_runner().invoke(args=[*words, "--output", str(path)])

    assert ended.exit_code == 1
    assert f"Error: Could not open file '{path}': No such file or directory" in ended.stderr


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (["access", "explain", "users:read", "--key", "x"], "--key"),
        (["api-keys", "create", "--name", "", "--permission", "users:read"], "--name"),
        (["custom-fields", "create", "--tenant", "acme", "--field-key", "", "--label", "l",
          "--field-type", "text"], "--field-key"),
        (["events", "list", "--types", "x"], "--types"),
        (["events", "list", "--after", str(2**63)], "--after"),
        (["platform-admins", "add", ""], "SUBJECT"),
        (["search", ""], "QUERY..."),
        (["tenants", "plan", "set", "acme", "x"], "PLAN"),
        (["tenants", "update", "acme", "--set", "name="], "name"),
        (["usage", "set", "acme", "seats", "x", "--reason", "r"], "USED"),
        (["usage", "reset", "acme", "seats"], "FEATURE"),
        (["users", "patch-meta-data", "x", "[]"], "JSON"),
        (["webhook-endpoints", "create", "x"], "URL"),
        (["webhook-endpoints", "create", "https://a.example", "--type", "x"], "--type.0"),
        (["webhook-endpoints", "test", ID, "--type", "x"], "--type"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else value,
)  # fmt: skip
def test_names_what_was_written(app, words, place):
    create_tenant(slug="acme")

    ended = app.test_cli_runner().invoke(args=words)

    assert ended.exit_code in (1, 2)
    assert f"Error: {place}: " in ended.stderr

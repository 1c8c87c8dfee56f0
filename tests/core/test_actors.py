"""The actor of a command: the operating system's user."""

import getpass
import os

import pytest

from app.core.actors import LONGEST_NAME, SYSTEM_CLI, system_user


@pytest.fixture
def log_name(monkeypatch):
    """Set the name that the operating system tells."""
    return lambda name: monkeypatch.setenv("LOGNAME", name)


class TestCommands:
    def test_are_recorded_as_the_operating_systems_user(self):
        assert SYSTEM_CLI.id == f"cli:{getpass.getuser()}"

    def test_are_recorded_as_a_user_id_without_a_name(self, monkeypatch):
        for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
            monkeypatch.delenv(variable, raising=False)
        monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])

        assert system_user() == str(os.getuid())

    @pytest.mark.parametrize(
        ("name", "recorded"),
        [("ada\nlovelace", "ada?lovelace"), ("\x1b[31m", "?[31m"), ("x" * 500, "x" * LONGEST_NAME)],
    )
    def test_are_recorded_by_a_short_and_printable_name(self, log_name, name, recorded):
        log_name(name)

        assert system_user() == recorded

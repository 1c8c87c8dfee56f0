"""``controlplane``, as far as it differs from the generated commands of ``flask``."""

import pytest
from click.testing import CliRunner

from app.surfaces.commands.command import GeneratedCommand
from tests.cli.test_help import commands
from tests.factories import platform_token

pytestmark = pytest.mark.usefixtures("importable")


@pytest.mark.parametrize(
    ("words", "hint"),
    [("console link", "console"), ("doctor", "doctor"), ("whoami", None), ("consol", None)],
)
def test_an_unknown_command_is_answered_with_where_others_are(words, hint):
    from controlplane.main import main

    ended = CliRunner().invoke(main, words.split())

    assert ended.exit_code == 2
    assert ("on the server's machine?" in ended.stderr) == bool(hint)
    assert not hint or f"Is it `flask {hint}`, on" in ended.stderr


def test_the_commands_of_the_installation_are_those_by_hand(app):
    from controlplane.main import BY_HAND

    found = commands(app).items()
    assert {words for words, one in found if not isinstance(one, GeneratedCommand)} == BY_HAND


def test_a_token_is_described_by_its_subject_or_its_prefix(app):
    from controlplane.main import described

    assert described("sk_0123456789abcdef") == "the API key sk_0123456…"
    assert described(platform_token(subject="root-1")) == "the access token of root-1"
    assert described("a.b.c") == "the API key a.b.c…"

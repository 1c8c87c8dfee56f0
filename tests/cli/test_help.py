"""What holds for every command: help for strangers, JSON for scripts, a question before harm."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import click
import pytest

from app.cli import COMMANDS
from app.dev.commands import COMMANDS as DEVELOPMENT_COMMANDS

# They run until they are stopped, print no rows, or print JSON anyway.
WITHOUT_JSON = {
    "audit tail", "dev", "export", "jobs background", "jobs scheduler", "jobs sender", "jobs sequencer",
    "jobs worker", "mcp", "tenants export", "users export",
}  # fmt: skip
TOP = (*COMMANDS, *DEVELOPMENT_COMMANDS)
HARMFUL = {
    "api-keys revoke", "custom-fields delete", "flags delete-override", "plans delete",
    "platform-admins remove", "scim delete", "tenants delete", "tenants plan clear", "tenants suspend",
    "users delete", "users erase", "webhook-endpoints delete",
}  # fmt: skip


def commands() -> dict[str, click.Command]:
    """Every command by its words."""
    return {words: command for one in TOP for words, command in named(one)}


def named(command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """The command, or all commands of the group, by their words."""
    if not isinstance(command, click.Group):
        yield command.name, command
        return
    for one in command.commands.values():
        yield from ((f"{command.name} {words}", found) for words, found in named(one))


def groups(commands: Iterable[click.Command], *above: str) -> Iterator[tuple[str, ...]]:
    """The words of every group among the commands and below them."""
    for one in commands:
        if isinstance(one, click.Group):
            yield (*above, one.name)
            yield from groups(one.commands.values(), *above, one.name)


def options(command: click.Command) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts}


class TestEveryCommand:
    def test_says_what_it_does(self):
        silent = [words for words, command in commands().items() if not command.help]
        silent += [group.name for group in COMMANDS if not group.help]

        assert silent == []

    def test_says_what_each_option_is_for(self):
        silent = [
            f"{words} {option.opts[0]}"
            for words, command in commands().items()
            for option in command.params
            if isinstance(option, click.Option) and not option.help
        ]

        assert silent == []

    @pytest.mark.parametrize(
        "words", [(), *groups(TOP)], ids=lambda words: " ".join(words) or "all"
    )
    def test_has_a_summary_that_is_not_cut(self, app, words):
        ended = app.test_cli_runner().invoke(args=[*words, "--help"], env={"COLUMNS": "80"})

        listed = ended.stdout.partition("Commands:")[2].splitlines()
        assert len(listed) > 1
        assert [line for line in listed if line.endswith("...")] == []

    @pytest.mark.parametrize("words", sorted(commands()))
    def test_has_a_help_page_that_fits_a_terminal(self, app, words):
        ended = app.test_cli_runner().invoke(args=[*words.split(), "--help"])

        assert ended.exit_code == 0
        assert max(len(line) for line in ended.stdout.splitlines()) <= 80

    def test_prints_json_for_scripts(self):
        without = {words for words, one in commands().items() if "--json" not in options(one)}

        assert without == WITHOUT_JSON

    def test_asks_before_it_does_harm(self):
        asking = {words for words, one in commands().items() if "--yes" in options(one)}

        assert asking == HARMFUL

    def test_refuses_what_it_does_not_understand_with_exit_code_2(self, app):
        ended = app.test_cli_runner().invoke(args=["users", "list", "--limit", "none"])

        assert (ended.exit_code, ended.stdout) == (2, "")

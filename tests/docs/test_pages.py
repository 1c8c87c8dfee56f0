"""What holds for every page: its length, its links, its blocks that are not run."""

import configparser
import json
import logging
import re
import shutil
import subprocess
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from urllib.parse import unquote

import click
import pytest
import yaml
from flask.cli import ScriptInfo

from app import create_app
from app.config import SETTINGS
from app.dev.reference.commands import named
from tests.docs.pages import (
    PAGES,
    PROJECT,
    README,
    Block,
    anchors,
    blocks,
    inline_code,
    links,
    name_of,
)

OPERATIONS = PROJECT / "docs" / "operations"
RUN = {"sh", "python", "ts"}
"""Languages whose blocks test_examples runs."""
CHECKED = {"json", "yaml", "ini", "sql", "text"}
REQUIRED = {
    "DATABASE_URL": "postgresql://127.0.0.1/controlplane",
    "REDIS_URL": "redis://127.0.0.1",
    "JWT_ISSUER": "https://id.example.com/",
    "JWT_AUDIENCE": "controlplane",
    "JWT_JWKS_URL": "https://id.example.com/jwks.json",
    "JWT_PUBLIC_KEY": "",
}
WEB_UNITS = {
    "controlplane-web.service": "[Service]\nExecStart=/usr/bin/env true\n",
    "controlplane-web.socket": "[Socket]\nListenStream=127.0.0.1:8000\n",
}
"""The two units that name each other, in short."""
ALL = [block for page in PAGES for block in blocks(page)]


def in_language(*languages: str) -> list[Block]:
    return [block for block in ALL if block.language in languages]


def place(block: Block) -> str:
    return block.place


class TestReadme:
    def test_has_at_most_1200_words(self):
        assert len(README.read_text().split()) <= 1200

    def test_its_command_runs_the_tests(self):
        assert "python -m pytest\n" in README.read_text()
        assert '"$python" -m pytest\n' in (PROJECT / ".ci" / "run").read_text()


class TestLinks:
    @pytest.mark.parametrize("page", PAGES, ids=name_of)
    def test_lead_to_a_file_and_a_heading_that_exist(self, page):
        broken = []
        for target in links(page):
            path, _, anchor = unquote(target).partition("#")
            file = (page.parent / path).resolve() if path else page
            if target.startswith("https://"):
                continue
            if not file.is_file() or (anchor and anchor not in anchors(file)):
                broken.append(target)

        assert broken == []

    def test_every_page_is_in_the_navigation(self):
        navigation = (PROJECT / "mkdocs.yml").read_text()

        missing = [
            page for page in PAGES[1:] if str(page.relative_to(PROJECT / "docs")) not in navigation
        ]

        assert missing == []


class TestInlineCommands:
    def test_name_commands_and_tests_that_exist(self, app):
        with click.Context(app.cli, obj=ScriptInfo(create_app=lambda: app)) as context:
            known = {tuple(words.split()[1:]) for words, _ in named(app.cli, "flask", context)}
        unknown = [
            (name_of(page), code)
            for page in PAGES
            for code in inline_code(page)
            if (code.startswith("flask ") and not is_command(known, code.split()[1:]))
            or not all((PROJECT / path).exists() for path in re.findall(r"tests/[\w/.-]+", code))
            or not all(find_spec(name) for name in re.findall(r"-m (tests[\w.]*)", code))
        ]

        assert unknown == []

    def test_have_only_options_and_arguments_that_their_commands_have(self, app):
        with click.Context(app.cli, obj=ScriptInfo(create_app=lambda: app)) as context:
            known = dict(named(app.cli, "flask", context))
        refused = [
            (name_of(page), code)
            for page in PAGES
            for code in inline_code(page)
            if code.startswith("flask ") and is_refused(known, code.split())
        ]

        assert refused == []


def is_refused(known: dict[str, click.Command], words: list[str]) -> bool:
    """Whether the command has not all these options, or takes fewer arguments."""
    words = list(takewhile(lambda word: word not in ("…", ">"), words))
    for end in range(len(words), 1, -1):
        command = known.get(" ".join(words[:end]))
        if command and not isinstance(command, click.Group):
            try:
                rest = command.make_parser(click.Context(command)).parse_args(words[end:])[1]
            except click.UsageError as fault:
                return not str(fault.message).endswith("requires an argument.")
            return bool(rest)
    return False


def is_command(known: set[tuple[str, ...]], words: list[str]) -> bool:
    """Whether the words begin a command; ``…`` and capitals stand for any, and ``a|b`` for both."""
    for word in words:
        if () in known or word.startswith(("…", "-")) or word.isupper():
            return True
        found = word.split("|")
        if not set(found) <= {one[0] for one in known}:
            return False
        known = {one[1:] for one in known if one[0] == found[0]}
    return True


class TestBlocks:
    def test_each_has_a_language_that_is_run_or_checked(self):
        assert [block.place for block in ALL if block.language not in RUN | CHECKED] == []

    @pytest.mark.parametrize("block", in_language("json"), ids=place)
    def test_json_can_be_parsed(self, block):
        try:
            json.loads(block.code)
        except ValueError:  # JSON Lines
            assert all(json.loads(line) for line in block.code.splitlines())

    @pytest.mark.parametrize("block", in_language("yaml"), ids=place)
    def test_yaml_can_be_parsed(self, block):
        assert yaml.safe_load(block.code)

    @pytest.mark.parametrize("block", in_language("ini"), ids=place)
    def test_settings_are_valid(self, block):
        check_settings(block.code)

    def test_sql_is_run_by_the_tests_of_running(self):
        sources = "".join(path.read_text() for path in (PROJECT / "tests/running").glob("*.py"))
        run_elsewhere = [
            block
            for block in in_language("sql")
            if Path(block.page).name in sources or "CREATE DATABASE" in block.code
        ]

        assert run_elsewhere == in_language("sql")


class TestFiles:
    @pytest.mark.parametrize("unit", sorted(OPERATIONS.glob("systemd/*")), ids=lambda one: one.name)
    def test_units_are_valid(self, unit, tmp_path):
        check_unit(unit.read_text(), tmp_path)

    def test_objects_of_kubernetes_run_what_exists(self):
        files = OPERATIONS.glob("kubernetes*.yml")
        found = [each for file in files for each in yaml.safe_load_all(file.read_text())]
        (names, kinds) = ({each[key] for each in found} for key in ("apiVersion", "kind"))
        commands = {
            container.get("command", ["gunicorn"])[0]
            for each in found
            for container in each["spec"]["template"]["spec"]["containers"]
        }

        assert (names, kinds) == ({"apps/v1", "batch/v1"}, {"Deployment", "Job"})
        assert len({each["metadata"]["name"] for each in found}) == len(found) == 5
        assert commands == {"gunicorn", "flask"}


def check_settings(text: str) -> None:
    """Each variable exists, and the service accepts its value."""
    given = dict(line.split("=", 1) for line in text.splitlines())
    assert given.keys() <= SETTINGS.keys()
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    create_app({**REQUIRED, **given}, with_commands=False, quiet=True)
    root.setLevel(level)
    root.handlers[:] = handlers  # later tests read the log


def check_unit(text: str, folder: Path) -> None:
    """systemd accepts the unit; without systemd, it has a known form."""
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read_string(text)
    for name, short in WEB_UNITS.items():
        (folder / name).write_text(short)
    if "Socket" in parser:
        unit = folder / "controlplane-web.socket"
    else:
        unit = folder / "unit@.service"
        command = parser["Service"]["ExecStart"].split()
        assert (Path(command[0]).parent, parser["Service"]["User"]) == (
            Path("/opt/controlplane/.venv/bin"),
            "controlplane",
        )
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("the unit was parsed, but systemd-analyze is not installed")
    unit.write_text(text.replace("/opt/controlplane/.venv/bin/", f"{shutil.which('env')} "))
    done = subprocess.run([analyze, "verify", str(unit)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

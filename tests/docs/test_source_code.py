"""docs/reference/source-code.md names only what exists."""

import re
from functools import cache
from pathlib import Path

import click
import pytest

from tests.docs.pages import PROJECT, inline_code

PAGE = PROJECT / "docs" / "reference" / "source-code.md"
ROWS = [
    line.split(" | ", 1)
    for line in PAGE.read_text().splitlines()
    if re.match(r"\| `[\w/.]+`", line)
]
PACKAGES = {"scim2-server"}
DEFINITIONS = r"^\s*(?:def|class) (\w+)|^(\w+)(?:: .+)? = |^    (\w+): "


def names(cell: str) -> list[str]:
    return re.findall("`(.+?)`", cell)


@cache
def defined() -> set[str]:
    """The names of functions, classes, values and settings, and of SQL functions and views."""
    found = {path.stem for path in PROJECT.glob("migrations/[fv]*/*.sql")}
    for path in (PROJECT / "app").rglob("*.py"):
        found |= {
            name
            for each in re.findall(DEFINITIONS, path.read_text(), re.MULTILINE)
            for name in each
        }
    return found


def folders(cell: str) -> list[Path]:
    """What a row is about; the names after the first may be those of its neighbours."""
    first, *others = names(cell)
    beside = (PROJECT / first).parent
    return [
        PROJECT / first,
        *(PROJECT / name if exists(PROJECT / name) else beside / name for name in others),
    ]


def exists(path: Path) -> bool:
    return path.exists() or path.with_name(f"{path.name}.py").exists()


def is_known(name: str, places: list[Path], commands: click.Group) -> bool:
    if name.startswith("flask "):
        return has_command(commands, name.split()[1:])
    places = [PROJECT, *places, *(place.parent for place in places)]
    word = re.sub(r"^@|\(.*", "", name)
    return (
        any(exists(place / name) for place in places)
        or not {word, word.lower()}.isdisjoint(defined())
        or name in PACKAGES
    )


def has_command(group: click.Group, words: list[str]) -> bool:
    found: click.Command | None = group
    for word in words:
        found = found.commands.get(word) if isinstance(found, click.Group) else None
    return found is not None


class TestMap:
    @pytest.mark.parametrize("row", ROWS, ids=lambda row: names(row[0])[0])
    def test_each_name_of_a_row_exists(self, app, row):
        places = folders(row[0])

        assert [place for place in places if not exists(place)] == []
        assert [name for name in names(row[1]) if not is_known(name, places, app.cli)] == []

    def test_each_path_of_the_page_exists(self):
        paths = [
            name
            for name in inline_code(PAGE)
            if re.match(r"(app|tests|migrations|benchmarks|docs)/", name)
        ]

        assert [path for path in paths if not exists(PROJECT / path)] == []

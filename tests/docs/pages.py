"""The pages of the documentation, with their code blocks, links and headings."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt

PROJECT = Path(__file__).parents[2]
README = PROJECT / "README.md"
PAGES = [README, *sorted((PROJECT / "docs").rglob("*.md"))]
MARKDOWN = MarkdownIt().enable("table")


class Block(NamedTuple):
    """A code block: the page's name, the line, the language and the code."""

    page: str
    line: int
    language: str
    code: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def name_of(page: Path) -> str:
    return str(page.relative_to(PROJECT))


def blocks(page: Path) -> list[Block]:
    """The code blocks of a page, in order."""
    return [
        Block(name_of(page), token.map[0] + 1, token.info.strip(), token.content)
        for token in MARKDOWN.parse(page.read_text())
        if token.type in {"fence", "code_block"}
    ]


def links(page: Path) -> Iterator[str]:
    """The targets of a page's links and images."""
    for token in MARKDOWN.parse(page.read_text()):
        for child in token.children or ():
            target = child.attrGet("href") or child.attrGet("src")
            if target:
                yield str(target)


def inline_code(page: Path) -> Iterator[str]:
    """The code within the sentences and tables of a page."""
    for token in MARKDOWN.parse(page.read_text()):
        for child in token.children or ():
            if child.type == "code_inline":
                yield child.content


def anchors(page: Path) -> set[str]:
    """The anchors that repository hosts give a page's headings."""
    tokens = MARKDOWN.parse(page.read_text())
    headings = [
        tokens[number + 1].content
        for number, token in enumerate(tokens)
        if token.type == "heading_open"
    ]
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    }

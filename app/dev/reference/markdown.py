"""The forms that the generated pages share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def page(title: str, *parts: str) -> str:
    """A whole page; an empty line stands between the parts."""
    return "\n\n".join([f"# {title}", *parts]) + "\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, with a row of ``header`` above ``rows``."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)

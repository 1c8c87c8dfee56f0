"""The form that the generated pages share."""

from __future__ import annotations


def page(title: str, *parts: str) -> str:
    """A whole page; an empty line stands between the parts."""
    return "\n\n".join([f"# {title}", *parts]) + "\n"

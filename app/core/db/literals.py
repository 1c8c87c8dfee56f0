"""Values as SQL literals, for the arguments of statements that PostgreSQL knows the types of.

psycopg2 asks for each value how it is spelt and has libpq escape it, which for a dozen values takes
as long as a view. What needs no escaping is put between quotes here; all else is left to psycopg2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

QUOTED: dict[type, Callable[[Any], str]] = {str: str, UUID: str, datetime: datetime.isoformat}
UNQUOTED: dict[type, Callable[[Any], str]] = {int: str, bool: str, type(None): lambda _: "NULL"}


def literals(values: Iterable[Any]) -> str | None:
    """The values with commas between; None where one of them is for psycopg2 to spell.

    A text that holds no quote and no backslash ends at the quote behind it, in UTF-8 whatever
    PostgreSQL's settings are.
    """
    spelt, quotes = [], 0
    for value in values:
        kind = type(value)
        if kind in QUOTED:
            spelt.append(f"'{QUOTED[kind](value)}'")
            quotes += 2
        elif kind in UNQUOTED:
            spelt.append(UNQUOTED[kind](value))
        else:
            return None
    text = ", ".join(spelt)
    is_plain = text.count("'") == quotes and "\\" not in text and "\0" not in text
    return text if is_plain else None

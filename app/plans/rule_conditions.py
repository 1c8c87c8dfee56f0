"""The conditions of rules: what they compare, and how.

A condition is JSON: ``{"attribute", "op", "value"}``, or ``{"all": [...]}``, ``{"any": [...]}``,
``{"not": {...}}``. A missing attribute is None, as is JSON's null; only ``ne``, ``not_in`` and
``exists`` can hold for it. Nothing is converted: text never equals a number, and true is not 1.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any

from semver import Version

from app.core.errors import Location
from app.core.json_text import Json

Condition = Mapping[str, Json]
Facts = Mapping[str, Json]
"""Attribute -> value. Every attribute can be read: a missing one is None."""
Test = Callable[[Facts], bool]
Comparison = Callable[[Any, Any], bool]

ATTRIBUTE_PATTERN = (
    r"^(tenant\.(plan|slug|region|country|age_days)|user\.(role|email_domain)"
    r"|(tenant\.meta_data|user\.meta_data|context)\.[A-Za-z0-9_-]{1,128})$"
)
MAX_VERSION = 256  # characters of a version that is compared


class Op(StrEnum):
    """How a condition compares; ``value`` is on the right, so ``lt`` is less than the value."""

    EQ = "eq"
    NE = "ne"
    IN = "in"
    NOT_IN = "not_in"
    LT = "lt"
    LE = "le"
    GT = "gt"
    GE = "ge"
    PREFIX = "prefix"
    SUFFIX = "suffix"
    SEMVER_GT = "semver_gt"
    SEMVER_LT = "semver_lt"
    BEFORE = "before"
    AFTER = "after"
    EXISTS = "exists"


NUMBERS = {Op.LT: operator.lt, Op.LE: operator.le, Op.GT: operator.gt, Op.GE: operator.ge}
VERSIONS = {Op.SEMVER_GT: operator.gt, Op.SEMVER_LT: operator.lt}
MOMENTS = {Op.BEFORE: operator.lt, Op.AFTER: operator.gt}


def compiled(condition: Condition) -> Test:
    """A function that returns whether a valid condition holds.

    The database function ``condition_holds`` gives the same results.
    """
    if "attribute" in condition:
        attribute, op, value = condition["attribute"], condition["op"], wanted_of(condition)
        compare = COMPARE[op]
        if op in PARSED:
            value = PARSED[op](value)
        return lambda facts: compare(facts[attribute], value)
    if "not" in condition:
        inner = compiled(condition["not"])
        return lambda facts: not inner(facts)
    decisive = "any" in condition
    parts = [compiled(each) for each in condition["any" if decisive else "all"]]

    def test(facts: Facts) -> bool:
        for part in parts:  # all() and any() with a generator take twice as long
            if part(facts) is decisive:
                return decisive
        return not decisive

    return test


def wanted_of(condition: Condition) -> Json:
    """The value that is compared with the attribute; domains are in lower case."""
    value = condition["value"]
    if condition["attribute"] != "user.email_domain" or isinstance(value, bool):
        return value
    return value.lower() if isinstance(value, str) else [each.lower() for each in value]


def comparisons(condition: Condition, loc: Location = ()) -> Iterator[tuple[Condition, Location]]:
    """The conditions with an attribute inside this condition, each with its place."""
    if "attribute" in condition:
        yield condition, loc
    for name in ("all", "any"):
        for index, each in enumerate(condition.get(name, ())):
            yield from comparisons(each, (*loc, name, index))
    if "not" in condition:
        yield from comparisons(condition["not"], (*loc, "not"))


@lru_cache(maxsize=1000)  # parsing takes 5 µs, and many rules compare the same version
def version_of(text: str) -> tuple[object, ...]:
    """The sort key of a semantic version; ``v1.2`` is 1.2.0. Raises ValueError."""
    if len(text) > MAX_VERSION:
        raise ValueError("The version is too long.")
    text = text[1:] if text[:1] in "vV" else text
    found = Version.parse(text, optional_minor_and_patch=True)
    parts = (found.prerelease or "").split(".")
    early = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts)
    return found.major, found.minor, found.patch, early if found.prerelease else ((2,),)


def moment_of(text: str) -> datetime:
    """A time of RFC 3339, or a date (its first moment), in UTC. Raises ValueError.

    It is UTC without an offset, and in the years 1 and 9999, where a conversion may overflow.
    """
    moment = datetime.fromisoformat(text)
    is_utc = moment.tzinfo is None or moment.year in (1, 9999)
    return moment.replace(tzinfo=UTC) if is_utc else moment.astimezone(UTC)


def is_equal(left: object, right: object) -> bool:
    return left == right and isinstance(left, bool) is isinstance(right, bool)


def _is_in(value: object, listed: list[object]) -> bool:
    return value in listed and any(is_equal(value, each) for each in listed)


def _numeric(compare: Comparison) -> Comparison:
    return lambda value, wanted: type(value) in (int, float) and compare(value, wanted)


def _parsed(op: Op, compare: Comparison) -> Comparison:
    parse = PARSED[op]

    def compare_parsed(value: Any, wanted: Any) -> bool:
        try:
            return isinstance(value, str) and compare(parse(value), wanted)
        except ValueError:
            return False

    return compare_parsed


PARSED: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(VERSIONS, version_of),
    **dict.fromkeys(MOMENTS, moment_of),
}
COMPARE: dict[str, Comparison] = {
    Op.EQ: is_equal,
    Op.NE: lambda value, wanted: not is_equal(value, wanted),
    Op.IN: _is_in,
    Op.NOT_IN: lambda value, wanted: not _is_in(value, wanted),
    Op.PREFIX: lambda value, wanted: isinstance(value, str) and value.startswith(wanted),
    Op.SUFFIX: lambda value, wanted: isinstance(value, str) and value.endswith(wanted),
    Op.EXISTS: lambda value, wanted: (value is not None) is wanted,
    **{op: _numeric(compare) for op, compare in NUMBERS.items()},
    **{op: _parsed(op, compare) for op, compare in (VERSIONS | MOMENTS).items()},
}

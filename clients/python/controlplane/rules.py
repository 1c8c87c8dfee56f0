"""The rules of flags, evaluated as the service does."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

VERSION = re.compile(
    r"[vV]?(0|[1-9]\d*)(?:\.(0|[1-9]\d*)(?:\.(0|[1-9]\d*))?)?"
    r"(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?"
    r"(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?"
)
MAX_VERSION = 256  # characters
BUCKETS = 100_000


def is_on(flag: Mapping[str, Any], facts: Mapping[str, Any]) -> bool:
    """A boolean flag's value: that of the first rule that matches, else the plan's."""
    for rule in flag["rules"]:
        if "when" in rule and not holds(rule["when"], facts):
            continue
        if (rollout := rule.get("rollout")) is not None:
            name = facts.get(rollout["attribute"])
            if not name or bucket(rollout["salt"] + name) >= rollout["weight"]:
                continue
        return bool(rule["value"])
    return bool(flag["value"])


def holds(condition: Mapping[str, Any], facts: Mapping[str, Any]) -> bool:
    """Whether a condition holds; an absent attribute is None."""
    if "all" in condition:
        return all(holds(one, facts) for one in condition["all"])
    if "any" in condition:
        return any(holds(one, facts) for one in condition["any"])
    if "not" in condition:
        return not holds(condition["not"], facts)
    attribute, wanted = condition["attribute"], condition["value"]
    if attribute == "user.email_domain" and not isinstance(wanted, bool):
        wanted = wanted.lower() if isinstance(wanted, str) else [one.lower() for one in wanted]
    return COMPARE[condition["op"]](facts.get(attribute), wanted)


def bucket(text: str) -> int:
    """flagd's bucket: MurmurHash3 (x86, 32 bits) of the text as CBOR."""
    encoded = text.encode()
    size = len(encoded)
    if size < 24:
        head = bytes([0x60 + size])
    else:
        head = bytes([0x78, size]) if size < 256 else b"\x79" + size.to_bytes(2, "big")
    data, h = head + encoded, 0
    for at in range(0, len(data), 4):
        part = data[at : at + 4]
        k = int.from_bytes(part, "little") * 0xCC9E2D51 & 0xFFFFFFFF
        h ^= (k << 15 | k >> 17) * 0x1B873593 & 0xFFFFFFFF
        if len(part) == 4:
            h = ((h << 13 | h >> 19) & 0xFFFFFFFF) * 5 + 0xE6546B64 & 0xFFFFFFFF
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    h = (h ^ h >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return (h ^ h >> 16) * BUCKETS >> 32


def version_of(text: str) -> tuple[Any, ...]:
    """The sort key of a semantic version; ``v1.2`` is 1.2.0. Raises ValueError."""
    found = VERSION.fullmatch(text) if len(text) <= MAX_VERSION else None
    if found is None:
        raise ValueError(text)
    numbers = [int(part or 0) for part in found.groups()[:3]]
    parts = (found[4] or "").split(".")
    early = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts)
    return *numbers, early if found[4] else ((2,),)


def moment_of(text: str) -> datetime:
    """A time of RFC 3339, or a date, in UTC. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    is_utc = moment.tzinfo is None or moment.year in (1, 9999)
    return moment.replace(tzinfo=UTC) if is_utc else moment.astimezone(UTC)


def is_equal(left: object, right: object) -> bool:
    """Whether two JSON values are equal; true is not 1."""
    return left == right and isinstance(left, bool) is isinstance(right, bool)


def is_in(value: object, wanted: list[object]) -> bool:
    return any(is_equal(value, one) for one in wanted)


def _numbers(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda value, wanted: type(value) in (int, float) and compare(value, wanted)


def _parsed(
    parse: Callable[[str], Any], compare: Callable[[Any, Any], bool]
) -> Callable[[Any, Any], bool]:
    def compare_parsed(value: Any, wanted: str) -> bool:
        try:
            return isinstance(value, str) and compare(parse(value), parse(wanted))
        except ValueError:
            return False

    return compare_parsed


COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "eq": is_equal,
    "ne": lambda value, wanted: not is_equal(value, wanted),
    "in": is_in,
    "not_in": lambda value, wanted: not is_in(value, wanted),
    "lt": _numbers(operator.lt),
    "le": _numbers(operator.le),
    "gt": _numbers(operator.gt),
    "ge": _numbers(operator.ge),
    "prefix": lambda value, wanted: isinstance(value, str) and value.startswith(wanted),
    "suffix": lambda value, wanted: isinstance(value, str) and value.endswith(wanted),
    "semver_gt": _parsed(version_of, operator.gt),
    "semver_lt": _parsed(version_of, operator.lt),
    "before": _parsed(moment_of, operator.lt),
    "after": _parsed(moment_of, operator.gt),
    "exists": lambda value, wanted: (value is not None) is wanted,
}

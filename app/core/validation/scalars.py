"""From JSON values to Python values, as leniently and as strictly as pydantic.

Each function returns the value or raises the refusal; none raises anything else. Dates have
:mod:`app.core.validation.moments`.
"""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from email_validator import EmailNotValidError, ValidatedEmail, validate_email
from email_validator.rfc_constants import EMAIL_MAX_LENGTH

from app.core.validation.messages import Refusal, refusal, refuse

BIGINT = range(-(2**63), 2**63)

_BOOLEANS = dict.fromkeys(("1", "on", "t", "true", "y", "yes"), True) | dict.fromkeys(
    ("0", "off", "f", "false", "n", "no"), False
)
_WHITE_SPACE = (  # Unicode's White_Space; str.strip() would take U+001C to U+001F too
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_INTEGER = re.compile(r"([+-]?)([0-9]+(?:_[0-9]+)*)(?:\.0+)?")
_MAX_DIGITS = 4300
_NAMED_ADDRESS = re.compile(r"(?:[\w\s.!#$%&'*+\-/=?^`{|}~]*|\s*\".+\"\s*)<(.+)>\s*")
_MAX_ADDRESS = 2048
# What stands before the @ of most addresses, in which nothing is refused or changed.
_PLAIN_LOCAL_PART = re.compile(r"[a-z0-9_+-]+(?:\.[a-z0-9_+-]+)*")
_DOMAINS = 4096
_UUID_GROUPS = (8, 4, 4, 4, 12)
_LONGEST_UUID = len("urn:uuid:") + 36


def to_bool(value: Any) -> bool:
    """JSON booleans, 0 and 1, and the usual words in any case, untrimmed."""
    if value is True or value is False:
        return value
    if isinstance(value, str):
        found = _BOOLEANS.get(value.lower())
        if found is None:
            raise refuse("bool_parsing", value)
        return found
    if not isinstance(value, int | float) or not _is_int64(value):
        raise refuse("bool_type", value)
    if value not in (0, 1):
        raise refuse("bool_parsing", value)
    return value == 1


def to_int(value: Any) -> int:
    """Integers, integral floats, booleans and decimal text; no bound is looked at here."""
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return _int_from_float(value)
    if isinstance(value, str):
        return _int_from_text(value)
    raise refuse("int_type", value)


def to_email(value: str) -> str:
    """The bare, normalized address of ``a@b.co`` or ``Name <a@b.co>``.

    No look-up is made; the words of a refusal are email-validator's.
    """
    if len(value) > _MAX_ADDRESS:
        raise _bad_email(value, f"Length must not exceed {_MAX_ADDRESS} characters")
    if "\r" in value or "\n" in value:
        raise _bad_email(value, "Carriage return and line feed characters are not allowed")
    named = _NAMED_ADDRESS.fullmatch(value)
    address = (named[1] if named else value).strip()
    try:
        return _at_known_domain(address) or _validated(address).normalized
    except EmailNotValidError as reason:
        raise _bad_email(value, str(reason)) from None


def _at_known_domain(address: str) -> str | None:
    """The same for a plain address, whose domain is looked at once for all; None for any other."""
    local_part, _, domain = address.partition("@")
    if not domain.isascii() or not _PLAIN_LOCAL_PART.fullmatch(local_part):
        return None
    try:
        normalized, longest = _domain(domain)
    except EmailNotValidError:
        return None
    return f"{local_part}@{normalized}" if len(local_part) <= longest else None


@lru_cache(maxsize=_DOMAINS)
def _domain(domain: str) -> tuple[str, int]:
    """A domain as email-validator, which needs 0.1 ms, writes it, and how much may stand before the @."""
    found = _validated(f"a@{domain}")
    spellings = (found.original, found.normalized, found.ascii_email or "")
    longest = max(len(one.encode()) for one in spellings)
    return found.domain, EMAIL_MAX_LENGTH - longest + 1


def _validated(address: str) -> ValidatedEmail:
    return validate_email(address, check_deliverability=False)


def to_uuid(value: Any) -> uuid.UUID:
    """A UUID in any of its four spellings: hyphenated, bare, braced, URN."""
    if not isinstance(value, str):
        raise refuse("uuid_type", value)
    fault = _uuid_fault(value)
    if fault is not None:
        raise refuse("uuid_parsing", value, error=fault)
    return uuid.UUID(hex=value)


def has_surrogate(text: str) -> bool:
    """Whether ``text`` holds half of a surrogate pair, so that it is no Unicode text at all."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def is_storable(text: str) -> bool:
    """Whether PostgreSQL can hold ``text``: no U+0000, no lone surrogate."""
    return "\x00" not in text and not has_surrogate(text)


def json_faults(value: Any) -> Iterator[Refusal]:
    """What PostgreSQL cannot hold in free JSON: such text, as value or key, NaN and Infinity."""
    if isinstance(value, str):
        if not is_storable(value):
            yield refusal("string_unicode", value)
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield refusal("finite_number", value)
    elif isinstance(value, dict):
        for key, item in value.items():
            if is_storable(key):
                yield from (fault.under(key) for fault in json_faults(item))
            else:
                yield refusal("string_unicode", key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from (fault.under(index) for fault in json_faults(item))


def _is_int64(value: float) -> bool:
    if isinstance(value, float) and not value.is_integer():
        return False
    return int(value) in BIGINT


def _int_from_float(value: float) -> int:
    if not math.isfinite(value):
        raise refuse("finite_number", value)
    if not value.is_integer():
        raise refuse("int_from_float", value)
    if abs(value) >= 2**63:
        raise refuse("int_parsing_size", value)
    return int(value)


def _int_from_text(value: str) -> int:
    match = _INTEGER.fullmatch(value.strip(_WHITE_SPACE))
    if match is None:
        raise refuse("int_parsing", value)
    sign, digits = match[1], match[2].replace("_", "").lstrip("0")
    if len(digits) > _MAX_DIGITS:
        raise refuse("int_parsing_size", value)
    return int(f"{sign}{digits or 0}")


def _bad_email(value: str, reason: str) -> Exception:
    return refuse("value_error", value, reason=reason)


def _uuid_fault(text: str) -> str | None:
    if len(text) > _LONGEST_UUID:
        return f"invalid length: found {len(text)}"
    start, digits = _unwrapped(text)
    for position, character in enumerate(digits, start):
        if character not in "0123456789abcdefABCDEF-":
            return f"invalid character: found `{character}` at {position}"
    groups = digits.split("-")
    if digits == text and len(groups) == 1:
        return None if len(text) == 32 else f"invalid length: found {len(text)}"
    if len(groups) != len(_UUID_GROUPS):
        return f"invalid group count: expected 5, found {len(groups)}"
    for index, (group, expected) in enumerate(zip(groups, _UUID_GROUPS, strict=True)):
        if len(group) != expected:
            return f"invalid group length in group {index}: expected {expected}, found {len(group)}"
    return None


def _unwrapped(text: str) -> tuple[int, str]:
    """Where the digits begin, and the digits."""
    if text.startswith("urn:uuid:"):
        return 9, text[9:]
    if text.startswith("{") and text.endswith("}") and len(text) > 1:
        return 1, text[1:-1]
    return 0, text

"""From the bytes of a file to lines with valid values, and to sets of lines.

The lines of one set are applied by one transaction, with a few statements. No two of them are
about the same row, so the order of their statements does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from app.core.errors import BadRequest, Entry, Invalid, error, value_error
from app.core.http.parser import parse_json
from app.core.validation.messages import refused, under
from app.core.validation.scalars import is_storable
from app.imports.line_schemas import KIND, SCHEMAS, Kind

MAX_LINE = 1024 * 1024  # bytes, as the body of a request
MAX_SET = 500  # lines
MAX_SET_BLANK = 10_000  # lines, blank ones included
MAX_SET_BYTES = 2 * 1024 * 1024
MAX_NAME = 255  # characters of an id that a fault shows
NAMES = {
    Kind.USER: ("idp_user_id",),
    Kind.MEMBERSHIP: ("idp_membership_id", "idp_user_id"),
    Kind.SUBSCRIPTION: ("bp_subscription_id",),
    Kind.OVERRIDE: ("flag_key",),
    Kind.ROLE: ("key",),
    Kind.ROLE_ASSIGNMENT: ("idp_user_id",),
}
COMES_AFTER = {
    Kind.SUBSCRIPTION: Kind.OVERRIDE,
    Kind.USER: Kind.ROLE_ASSIGNMENT,
    Kind.MEMBERSHIP: Kind.ROLE_ASSIGNMENT,
}
"""Kind -> the kind after which it comes into the next set, as a set applies it before that one."""
BLANK = b" \t\r\xef\xbb\xbf"  # white space, and the bytes of a byte order mark


class RawLine(NamedTuple):
    """A line as it lies in the file; ``text`` is None for one longer than MAX_LINE.

    ``end`` is the number of bytes up to its end.
    """

    number: int
    end: int
    text: bytes | None


@dataclass(frozen=True, slots=True)
class Line:
    """A line with the values of its schema, or with its ``errors``.

    ``idp_org_id`` and ``name`` are the line's own ids, ``""`` where it has none.
    """

    number: int
    kind: Kind | None = None
    idp_org_id: str = ""
    name: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    errors: tuple[Entry, ...] = ()


class LineSet(NamedTuple):
    """The next lines of a file, without blank lines.

    ``end`` and ``last`` are the bytes and the number of lines up to the set's end.
    """

    lines: list[Line]
    end: int
    last: int


def split(blocks: Iterable[bytes], *, end: int = 0, number: int = 0) -> Iterator[RawLine]:
    """The lines of a file whose next bytes are ``blocks``; ``end`` and ``number`` lie before them."""
    rest, skipped = b"", 0
    for block in blocks:
        *complete, rest = (rest + block).split(b"\n")
        for text in complete:
            size, skipped = skipped + len(text), 0
            number, end = number + 1, end + size + 1
            yield RawLine(number, end, text if size <= MAX_LINE else None)
        if len(rest) > MAX_LINE:
            skipped, rest = skipped + len(rest), b""
    if rest or skipped:
        size = skipped + len(rest)
        yield RawLine(number + 1, end + size, rest if size <= MAX_LINE else None)


def sets(lines: Iterable[RawLine], *, end: int = 0, number: int = 0) -> Iterator[LineSet]:
    """The lines in sets, in their order; a blank line is in no set but counts.

    An override's preset may be the tenant's plan, which follows the subscriptions, and an
    assignment can make the last owner but one. So lines come into the next set by COMES_AFTER.
    """
    start, first = end, number
    taken: list[Line] = []
    keys: set[tuple[str, ...]] = set()
    kinds: set[Kind] = set()
    for raw in lines:
        line = parse(raw)
        own = set() if line is None or line.errors else set(_keys_of(line))
        is_full = (
            len(taken) >= MAX_SET
            or raw.number - first > MAX_SET_BLANK
            or raw.end - start > MAX_SET_BYTES
        )
        must_wait = line is not None and line.kind and COMES_AFTER.get(line.kind) in kinds
        if number > first and (is_full or must_wait or keys & own):
            yield LineSet(taken, end, number)
            start, first, taken, keys, kinds = end, number, [], set(), set()
        end, number = raw.end, raw.number
        keys |= own
        if line is not None:
            taken.append(line)
            kinds |= {line.kind} if line.kind else set()
    if number > first:
        yield LineSet(taken, end, number)


def parse(raw: RawLine) -> Line | None:
    """The line's values or its errors; None for a blank line."""
    if raw.text is None:
        reason = f"a line can have at most {MAX_LINE} bytes"
        return Line(raw.number, errors=(value_error(["body"], reason),))
    if not raw.text.strip(BLANK):
        return None
    try:
        document = parse_json(raw.text)
    except Invalid as fault:
        return Line(raw.number, errors=tuple(fault.errors))
    except BadRequest as fault:
        entry = error(["body"], "json_invalid", "JSON decode error", {}, {"error": fault.detail})
        return Line(raw.number, errors=(entry,))
    try:
        kind = _kind_of(document)
    except Invalid as fault:
        return Line(raw.number, errors=tuple(under("body", fault.errors)))
    return _load(raw.number, kind, document)


def _load(number: int, kind: Kind, document: dict[str, Any]) -> Line:
    schema = SCHEMAS[kind]
    names = [_text(document.get(name)) for name in NAMES.get(kind, ())]
    org_id = _text(document.get("idp_org_id"))
    name = next((name for name in names if name), "")
    try:
        values = schema.load(document)
    except Invalid as fault:
        errors = tuple(under("body", fault.errors))
    else:
        del values["type"]
        errors = tuple(schema.rules(values))
    if errors:
        return Line(number, kind, org_id, name, errors=errors)
    return Line(number, kind, org_id, name, values)


def _kind_of(document: Any) -> Kind:
    if not isinstance(document, dict):
        raise Invalid(refused("model_attributes_type", (), document))
    if "type" not in document:
        raise Invalid(refused("missing", ("type",), document))
    try:
        return Kind(KIND.deserialize(document["type"]))
    except Invalid as fault:
        raise Invalid(*under("type", fault.errors)) from None


def _keys_of(line: Line) -> Iterator[tuple[str, ...]]:
    """The keys that no other line of the same set may have. Other kinds are applied one by one."""
    match line.kind:
        case Kind.TENANT:
            yield (Kind.TENANT, line.idp_org_id)
        case Kind.USER | Kind.MEMBERSHIP | Kind.SUBSCRIPTION:
            for name in NAMES[line.kind]:
                if line.values.get(name):
                    yield (line.kind, line.idp_org_id, name, line.values[name])


def _text(value: Any) -> str:
    return value[:MAX_NAME] if isinstance(value, str) and is_storable(value) else ""

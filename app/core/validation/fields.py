"""marshmallow fields that accept, refuse and report as FastAPI does.

A schema gets all of it by using these fields: lenient coercions, pydantic's types and words, the
bounds in the OpenAPI document. ``nullable=True`` accepts null; without it null is refused like any
other wrong type. ``load_default`` is what an absent field loads as; without it the key is absent.
Text that PostgreSQL cannot hold (U+0000, lone surrogates) is ``string_unicode`` and an integer
beyond bigint ``int_parsing_size``, both after the field's own constraints.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from itertools import islice
from typing import Any
from uuid import UUID

import marshmallow as ma
from marshmallow import ValidationError, missing

from app.core.clock import rfc3339
from app.core.validation.messages import MAX_REFUSALS, Refusal, refusals, refuse
from app.core.validation.moments import to_moment
from app.core.validation.scalars import (
    BIGINT,
    has_surrogate,
    json_faults,
    to_bool,
    to_email,
    to_int,
    to_uuid,
)


class Field(ma.fields.Field):
    """What all fields share: missing and null, what is documented, how a value is dumped."""

    keywords: Mapping[str, Any] = {}
    """JSON Schema keywords of every field of the class; ``example`` and ``metadata`` go before them."""

    def __init__(
        self,
        *,
        nullable: bool = False,
        example: Any = missing,
        keywords: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        shown = {} if example is missing else {"examples": [example]}
        documented = {**self.keywords, **(keywords or {}), **shown, **(metadata or {})}
        super().__init__(allow_none=nullable, metadata=documented, **options)

    def deserialize(
        self, value: Any, attr: str | None = None, data: Any = None, **kwargs: Any
    ) -> Any:
        """Load ``value``; the input shown for a missing one is the object that lacks it."""
        if value is missing:
            if self.required:
                raise refuse("missing", data)
            return self.load_default() if callable(self.load_default) else self.load_default
        if value is None and self.allow_none:
            return None
        if isinstance(value, str) and has_surrogate(value):
            raise refuse("string_unicode", value)
        loaded = self._deserialize(value, attr, data, **kwargs)
        if self.validators:
            self._validate_further(loaded, value)
        return loaded

    def _validate_further(self, loaded: Any, value: Any) -> None:
        try:
            self._validate(loaded)
        except ValidationError as fault:
            raise ValidationError(list(refusals(fault, value))) from None

    def to_json(self, value: Any) -> Any:
        """``value`` as it is written; override where that is not the value itself."""
        return value

    def _serialize(self, value: Any, attr: str | None, obj: Any, **kwargs: Any) -> Any:
        return self.to_json(value)


class Str(Field, ma.fields.String):
    """Text, neither trimmed nor converted; lengths count code points.

    ``pattern`` is searched in the text; its ``$`` is the very end, never before a last newline.
    """

    def __init__(
        self,
        *,
        min_length: int | None = None,
        max_length: int | None = None,
        pattern: str | None = None,
        **options: Any,
    ) -> None:
        bounds = {"minLength": min_length, "maxLength": max_length, "pattern": pattern}
        super().__init__(keywords=_given(bounds), **options)
        self.min_length = min_length
        self.max_length = max_length
        self.pattern = pattern
        self._regex = re.compile(re.sub(r"\$$", r"\\Z", pattern)) if pattern is not None else None

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> str:
        if not isinstance(value, str):
            raise refuse("string_type", value)
        if self.min_length is not None and len(value) < self.min_length:
            raise refuse("string_too_short", value, min_length=self.min_length)
        if self.max_length is not None and len(value) > self.max_length:
            raise refuse("string_too_long", value, max_length=self.max_length)
        if self._regex is not None and self._regex.search(value) is None:
            raise refuse("string_pattern_mismatch", value, pattern=self.pattern)
        if "\x00" in value:
            raise refuse("string_unicode", value)
        return value

    def to_json(self, value: Any) -> Any:
        """Never null unless the field is nullable: what is unknown is ``""``."""
        return "" if value is None and not self.allow_none else value


class Email(Str, ma.fields.Email):
    """An address, loaded bare and normalized; ``Name <a@b.co>`` is accepted."""

    keywords = {"examples": ["ada@example.com"]}

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.validators = self.validators[1:]  # the first is marshmallow's own

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> str:
        if not isinstance(value, str):
            raise refuse("string_type", value)
        return to_email(value)


class Bool(Field, ma.fields.Boolean):
    """A boolean, also as 0, 1, ``"yes"``, ``"off"`` and the like."""

    keywords = {"examples": [True]}

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> bool:
        return to_bool(value)


class Int(Field, ma.fields.Integer):
    """An integer between ``ge`` and ``le``, and within bigint; also integral floats and text."""

    keywords = {"format": "int64", "examples": [1]}

    def __init__(self, *, ge: int | None = None, le: int | None = None, **options: Any) -> None:
        super().__init__(keywords=_given({"minimum": ge, "maximum": le}), **options)
        self.ge = ge
        self.le = le

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> int:
        number = to_int(value)
        if self.ge is not None and number < self.ge:
            raise refuse("greater_than_equal", value, ge=self.ge)
        if self.le is not None and number > self.le:
            raise refuse("less_than_equal", value, le=self.le)
        if number not in BIGINT:
            raise refuse("int_parsing_size", value)
        return number


class AwareDateTime(Field, ma.fields.AwareDateTime):
    """A moment with an offset, or Unix time; loaded in UTC, written as RFC 3339 with ``Z``."""

    keywords = {"examples": ["2026-01-31T12:00:00Z"]}

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> datetime:
        return to_moment(value)

    def to_json(self, value: Any) -> Any:
        """RFC 3339, UTC, ``Z``."""
        return None if value is None else rfc3339(value)


class Uuid(Field, ma.fields.UUID):
    """A UUID in a body; in a path an id that is none is simply unknown."""

    keywords = {"examples": ["01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f"]}

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> UUID:
        return to_uuid(value)

    def to_json(self, value: Any) -> Any:
        """The hyphenated text."""
        return None if value is None else str(value)


class Literal(Field, ma.fields.String):
    """One of the given texts, exactly."""

    refused_as = "literal_error"

    def __init__(self, *choices: str, **options: Any) -> None:
        self._loaded: dict[str, Any] = dict(zip(choices, choices, strict=True))
        self.expected = _listed(choices)
        offered = [*choices, None] if options.get("nullable") else [*choices]
        super().__init__(keywords={"enum": offered, "examples": [choices[0]]}, **options)

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(value, str) and value in self._loaded:
            return self._loaded[value]
        raise refuse(self.refused_as, value, expected=self.expected)


class Choice(Literal):
    """One of the values of an enumeration, loaded as its member."""

    refused_as = "enum"

    def __init__(self, enumeration: type[Enum], **options: Any) -> None:
        super().__init__(*(member.value for member in enumeration), **options)
        self.enumeration = enumeration
        self._loaded = {member.value: member for member in enumeration}

    def to_json(self, value: Any) -> Any:
        """The member's value; a plain value stays."""
        return value.value if isinstance(value, Enum) else value


class LiteralTrue(Field, ma.fields.Boolean):
    """JSON true, or the numbers equal to it; nothing that merely means yes."""

    keywords = {"enum": [True], "examples": [True]}

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> bool:
        if isinstance(value, int | float) and value == 1:
            return True
        raise refuse("literal_error", value, expected="True")


class JsonObject(Field, ma.fields.Dict):
    """An object with any keys and any JSON values that PostgreSQL can hold."""

    keywords = {"additionalProperties": True}

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise refuse("dict_type", value)
        _refuse_unstorable(value)
        return value


class AnyJson(Field, ma.fields.Raw):
    """Any JSON value that PostgreSQL can hold; null is a value like any other."""

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        _refuse_unstorable(value)
        return value


class ListOf(Field, ma.fields.List):
    """A JSON array whose items the given field loads; refusals carry the item's index."""

    def __init__(self, item: Field, **options: Any) -> None:
        super().__init__(cls_or_instance=item, **options)

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> list[Any]:
        if not isinstance(value, list):
            raise refuse("list_type", value)
        loaded: list[Any] = []
        found: list[Refusal] = []
        for index, item in enumerate(value):
            try:
                loaded.append(self.inner.deserialize(item))
            except ValidationError as fault:
                found += [one.under(index) for one in refusals(fault, item)]
                if len(found) >= MAX_REFUSALS:
                    break
        if found:
            raise ValidationError(found)
        return loaded

    def to_json(self, value: Any) -> Any:
        """A list of what the item's field writes."""
        if value is None:
            return None
        return [self.inner._serialize(item, None, None) for item in value]


class Nested(Field, ma.fields.Nested):  # type: ignore[misc]  # names its first argument otherwise
    """An object that another schema loads and dumps."""

    def __init__(self, schema: type[ma.Schema], **options: Any) -> None:
        super().__init__(nested=schema, **options)

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        return self.schema.load(value)

    def to_json(self, value: Any) -> Any:
        """What the schema dumps."""
        return None if value is None else self.schema.dump(value)


def _refuse_unstorable(value: Any) -> None:
    found = list(islice(json_faults(value), MAX_REFUSALS))
    if found:
        raise ValidationError(found)


def _given(keywords: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in keywords.items() if value is not None}


def _listed(choices: tuple[str, ...]) -> str:
    *others, last = map(repr, choices)
    return f"{', '.join(others)} or {last}" if others else last

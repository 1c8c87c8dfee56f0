"""marshmallow fields that accept and refuse the same values as FastAPI.

Each scalar field has a validator of pydantic-core. Fields add their bounds to the OpenAPI document.
A field with ``nullable=True`` accepts null, and so does :class:`AnyJson`. Any other field refuses
null as a wrong type. An absent field loads as ``load_default``; without that its key is absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeAlias, TypedDict, TypeVar, Unpack

import marshmallow as ma
from pydantic_core import CoreSchema, SchemaValidator, ValidationError, core_schema

from app.core.errors import Entry, Invalid
from app.core.validation import scalars
from app.core.validation.messages import MAX_ENTRIES, entries, refused, under

T = TypeVar("T")
Keywords: TypeAlias = Mapping[str, Any]  # of JSON Schema

MAX_ITEMS = 5_000  # of a ListOf


class Options(TypedDict, total=False):
    """The options of every field; all but the last two are marshmallow's."""

    required: bool
    load_default: object
    attribute: str
    data_key: str
    metadata: Keywords
    description: str
    nullable: bool


class Field(ma.fields.Field):
    """The base of all fields: their common parameters, loading from JSON and writing as JSON."""

    keywords: Keywords = {}  # of every field of the class

    def __init__(
        self, *args: object, keywords: Keywords | None = None, **options: Unpack[Options]
    ) -> None:
        """``metadata`` takes precedence over ``keywords``; ``args`` are marshmallow's."""
        metadata = {**self.keywords, **(keywords or {}), **options.get("metadata", {})}
        given: dict[str, Any] = {**options, "metadata": metadata}
        if "description" in given:
            metadata["description"] = given.pop("description")
        super().__init__(*args, allow_none=given.pop("nullable", False), **given)

    def deserialize(self, value: object, *_: object, **__: object) -> Any:
        """Load a present value; raises Invalid with each ``loc`` relative to this field."""
        if value is None and self.allow_none:
            return None
        return self.from_json(value)

    def from_json(self, value: object) -> Any:
        """The Python value; raises Invalid."""
        raise NotImplementedError

    def to_json(self, value: Any) -> Any:
        """The value that :mod:`app.core.json_text` writes; datetimes and UUIDs stay objects."""
        return value


class Scalar(Field):
    """A field whose values are loaded by pydantic-core."""

    accepts: CoreSchema  # unless the constructor is given another schema

    def __init__(
        self,
        schema: CoreSchema | None = None,
        keywords: Keywords | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(keywords=keywords, **options)
        self.validator = SchemaValidator(schema or self.accepts)

    def from_json(self, value: object) -> Any:
        try:
            return self.validator.validate_python(value)
        except ValidationError as fault:
            raise Invalid(*entries(fault)) from None


class Str(Scalar, ma.fields.String):
    """Text, neither trimmed nor converted; lengths count code points."""

    def __init__(
        self,
        *,
        min_length: int | None = None,
        max_length: int | None = None,
        pattern: str | None = None,
        **options: Unpack[Options],
    ) -> None:
        bounds = {"minLength": min_length, "maxLength": max_length, "pattern": pattern}
        schema = scalars.text(min_length=min_length, max_length=max_length, pattern=pattern)
        super().__init__(schema, _given(bounds), **options)

    def to_json(self, value: Any) -> Any:
        """The text; ``""`` for None unless the field is nullable."""
        return "" if value is None and not self.allow_none else value


class Name(Str):
    """The name of a person or a thing, without control characters."""

    def __init__(self, *, min_length: int | None = None, **options: Unpack[Options]) -> None:
        super().__init__(
            min_length=min_length,
            max_length=scalars.MAX_NAME,
            pattern=scalars.NO_CONTROLS,
            **options,
        )


class Email(Scalar, ma.fields.Email):
    """An e-mail address, loaded normalized; ``Name <a@b.co>`` loads as ``a@b.co``."""

    accepts = scalars.email()
    keywords = {"examples": ["ada@example.com"]}


class Bool(Scalar, ma.fields.Boolean):
    """A boolean, also as 0, 1, ``"yes"``, ``"off"`` and the like."""

    accepts = core_schema.bool_schema()
    keywords = {"examples": [True]}


class Int(Scalar, ma.fields.Integer):
    """An integer from ``ge`` to ``le``, within bigint; also as an integral float or as text."""

    keywords = {"format": "int64", "examples": [1]}

    def __init__(
        self, *, ge: int | None = None, le: int | None = None, **options: Unpack[Options]
    ) -> None:
        bounds = {"minimum": ge, "maximum": le}
        super().__init__(scalars.integer(ge=ge, le=le), _given(bounds), **options)


class AwareDateTime(Scalar, ma.fields.AwareDateTime):
    """RFC 3339 with an offset, or Unix time; loaded in UTC."""

    accepts = scalars.aware_datetime()
    keywords = {"examples": ["2026-01-31T12:00:00Z"]}


class Uuid(Scalar, ma.fields.UUID):
    """A UUID in a body or a query; a bad id in a path is 404 instead."""

    accepts = core_schema.uuid_schema()
    keywords = {"examples": ["01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f"]}


class Literal(Scalar, ma.fields.String):
    """One of the given texts, exactly."""

    def __init__(
        self, *choices: str, schema: CoreSchema | None = None, **options: Unpack[Options]
    ) -> None:
        offered = [*choices, None] if options.get("nullable") else [*choices]
        keywords = {"enum": offered, "examples": [choices[0]]}
        schema = schema or core_schema.literal_schema([*choices])
        super().__init__(schema, keywords, **options)


class Choice(Literal):
    """The value of a member of an enumeration; loaded as the member."""

    def __init__(self, enumeration: type[Enum], **options: Unpack[Options]) -> None:
        members = list(enumeration)
        schema = core_schema.enum_schema(enumeration, members)
        super().__init__(*(member.value for member in members), schema=schema, **options)
        self.enumeration = enumeration

    def to_json(self, value: Any) -> Any:
        """The member's value; a plain value is written as it is."""
        return value.value if isinstance(value, Enum) else value


class LiteralTrue(Scalar, ma.fields.Boolean):
    """JSON true, or a number equal to it; ``"true"`` and the like are refused."""

    accepts = core_schema.literal_schema([True])
    keywords = {"enum": [True], "examples": [True]}


class AnyJson(Field, ma.fields.Raw):
    """Any JSON value that PostgreSQL can hold, null included."""

    def from_json(self, value: object) -> object:
        return _storable(value)


class JsonObject(Field, ma.fields.Dict):
    """An object with any keys and any JSON values that PostgreSQL can hold."""

    keywords = {"additionalProperties": True}

    def from_json(self, value: object) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Invalid(refused("dict_type", (), value))
        return _storable(value)


class ListOf(Field, ma.fields.List):
    """A JSON array of items of one field; ``loc`` has the item's index.

    A subclass may have other ``minItems`` and ``maxItems`` among its keywords.
    """

    keywords = {"maxItems": MAX_ITEMS}
    inner: Field

    def from_json(self, value: object) -> list[object]:
        if not isinstance(value, list):
            raise Invalid(refused("list_type", (), value))
        least, most = self.keywords.get("minItems", 0), self.keywords["maxItems"]
        counted = {"field_type": "List", "actual_length": len(value)}
        if len(value) < least:
            raise Invalid(refused("too_short", (), value, min_length=least, **counted))
        loaded: list[object] = []
        found: list[Entry] = []
        for index, item in enumerate(value[:most]):
            try:
                loaded.append(self.inner.deserialize(item))
            except Invalid as fault:
                found += under(index, fault.errors)
                if len(found) >= MAX_ENTRIES:
                    break
        if len(value) > most and not found:
            raise Invalid(refused("too_long", (), value, max_length=most, **counted))
        if found:
            raise Invalid(*found[:MAX_ENTRIES])
        return loaded

    def to_json(self, value: Any) -> Any:
        return None if value is None else [self.inner.to_json(item) for item in value]


class Nested(Field, ma.fields.Nested):
    """An object of another schema."""

    def from_json(self, value: Any) -> Any:
        return self.schema.load(value)

    def to_json(self, value: Any) -> Any:
        return None if value is None else self.schema.dump(value)


def _storable(value: T) -> T:
    if found := scalars.unstorable(value):
        raise Invalid(*found)
    return value


def _given(keywords: Keywords) -> Keywords:
    return {name: value for name, value in keywords.items() if value is not None}

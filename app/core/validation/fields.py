"""marshmallow fields that accept and refuse the same values as FastAPI.

Each scalar field has a validator of pydantic-core. Fields add their bounds to the OpenAPI document.
:class:`AnyJson` and fields with ``nullable=True`` accept null; others refuse it as a wrong type. A
field that the client omits loads as its ``load_default``; without one it is not among the values.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeAlias, TypedDict, Unpack

import marshmallow as ma
from pydantic_core import CoreSchema, SchemaValidator, ValidationError, core_schema

from app.core.errors import Entry, Invalid
from app.core.validation import scalars
from app.core.validation.messages import MAX_ENTRIES, entries, refused, under

Keywords: TypeAlias = Mapping[str, Any]  # keywords of JSON Schema

MAX_ITEMS = 5_000  # in a ListOf


class Options(TypedDict, total=False):
    """The options of every field. ``description`` and ``nullable`` are not marshmallow's."""

    required: bool
    load_default: object
    attribute: str
    data_key: str
    dump_only: bool
    metadata: Keywords
    description: str
    nullable: bool


class Field(ma.fields.Field):
    """The base of all fields: common options, loading from JSON, writing as JSON."""

    keywords: Keywords = {}  # for the OpenAPI schema of every field of the class

    def __init__(
        self, *args: object, keywords: Keywords | None = None, **options: Unpack[Options]
    ) -> None:
        """``metadata`` overrides ``keywords`` of the same name; ``args`` are marshmallow's."""
        metadata = {**self.keywords, **(keywords or {}), **options.get("metadata", {})}
        given: dict[str, Any] = {**options, "metadata": metadata}
        if "description" in given:
            metadata["description"] = given.pop("description")
        super().__init__(*args, allow_none=given.pop("nullable", False), **given)

    def deserialize(self, value: object, *_: object, **__: object) -> Any:
        """Load a value that the client sent. In Invalid, ``loc`` is relative to the field."""
        if value is None and self.allow_none:
            return None
        return self.from_json(value)

    def from_json(self, value: object) -> Any:
        """Convert a JSON value to the Python value; raises Invalid."""
        raise NotImplementedError

    def to_json(self, value: Any) -> Any:
        """The value for :mod:`app.core.json_text`, which itself writes datetimes and UUIDs."""
        return value


class Scalar(Field):
    """A field whose values pydantic-core loads."""

    accepts: CoreSchema  # the schema, unless the constructor gets another schema

    def __init__(
        self,
        schema: CoreSchema | None = None,
        keywords: Keywords | None = None,
        **options: Unpack[Options],
    ) -> None:
        given = {name: value for name, value in (keywords or {}).items() if value is not None}
        super().__init__(keywords=given, **options)
        self.validator = SchemaValidator(schema or self.accepts)

    def from_json(self, value: object) -> Any:
        try:
            return self.validator.validate_python(value)
        except ValidationError as fault:
            raise Invalid(*entries(fault)) from None


class Str(Scalar, ma.fields.String):
    """Text, neither trimmed nor converted. Lengths are in code points."""

    longest: int | None = None  # where the constructor gets no ``max_length``
    allowed: str | None = None  # the pattern, likewise

    def __init__(
        self,
        *,
        min_length: int | None = None,
        max_length: int | None = None,
        pattern: str | None = None,
        **options: Unpack[Options],
    ) -> None:
        most, form = max_length or self.longest, pattern or self.allowed
        bounds = {"minLength": min_length, "maxLength": most, "pattern": form}
        schema = scalars.text(min_length=min_length, max_length=most, pattern=form)
        super().__init__(schema, bounds, **options)

    def to_json(self, value: Any) -> Any:
        """The text; ``""`` for None if the field is not nullable."""
        return "" if value is None and not self.allow_none else value


class Name(Str):
    """A name, or an id of the identity provider, without control characters."""

    longest = scalars.MAX_NAME
    allowed = scalars.NO_CONTROLS


class Email(Scalar, ma.fields.Email):
    """An e-mail address, which is normalized; ``Name <a@b.co>`` loads as ``a@b.co``."""

    accepts = scalars.email()
    keywords = {"examples": ["ada@example.com"]}


class Bool(Scalar, ma.fields.Boolean):
    """A boolean. 0, 1, ``"yes"``, ``"off"`` and similar values are converted."""

    accepts = core_schema.bool_schema()
    keywords = {"examples": [True]}


class Int(Scalar, ma.fields.Integer):
    """An integer from ``ge`` to ``le``, within bigint. Integral floats and text are converted."""

    keywords = {"format": "int64", "examples": [1]}

    def __init__(
        self, *, ge: int | None = None, le: int | None = None, **options: Unpack[Options]
    ) -> None:
        bounds = {"minimum": ge, "maximum": le}
        super().__init__(scalars.integer(ge=ge, le=le), bounds, **options)


class AwareDateTime(Scalar, ma.fields.AwareDateTime):
    """A time: RFC 3339 with an offset, or Unix time. It is converted to UTC."""

    accepts = scalars.aware_datetime()
    keywords = {"examples": ["2026-01-31T12:00:00Z"]}


class Uuid(Scalar, ma.fields.UUID):
    """A UUID in a body or a query."""

    accepts = core_schema.uuid_schema()
    keywords = {"examples": ["01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f"]}


class Literal(Scalar, ma.fields.String):
    """One of the given texts, exactly."""

    def __init__(
        self, *choices: str, schema: CoreSchema | None = None, **options: Unpack[Options]
    ) -> None:
        offered = [*choices, None] if options.get("nullable") else [*choices]
        keywords = {"enum": offered, "examples": [choices[0]]}
        super().__init__(schema or core_schema.literal_schema([*choices]), keywords, **options)


class Choice(Literal):
    """The value of a member of an enumeration. It loads as the member."""

    def __init__(self, enumeration: type[Enum], **options: Unpack[Options]) -> None:
        schema = core_schema.enum_schema(enumeration, list(enumeration))
        super().__init__(*(member.value for member in enumeration), schema=schema, **options)
        self.enumeration = enumeration

    def to_json(self, value: Any) -> Any:
        """The member's value. A value that is not a member is written as it is."""
        return value.value if isinstance(value, Enum) else value


class LiteralTrue(Scalar, ma.fields.Boolean):
    """JSON true, 1 or 1.0, which load as True; ``"true"`` and the like are refused."""

    accepts = core_schema.literal_schema([True])
    keywords = {"enum": [True], "examples": [True]}


class AnyJson(Field, ma.fields.Raw):
    """Any JSON value that PostgreSQL can store, including null."""

    def from_json(self, value: object) -> object:
        return scalars.storable(value)


class JsonObject(Field, ma.fields.Dict):
    """An object with any keys and any JSON values that PostgreSQL can store."""

    keywords = {"additionalProperties": True}

    def from_json(self, value: object) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Invalid(refused("dict_type", (), value))
        return scalars.storable(value)


class ListOf(Field, ma.fields.List):
    """A JSON array, whose items ``inner`` loads. ``metadata`` may set ``minItems``, ``maxItems``."""

    inner: Field
    keywords = {"maxItems": MAX_ITEMS}

    def from_json(self, value: object) -> list[object]:
        if not isinstance(value, list):
            raise Invalid(refused("list_type", (), value))
        least, most = self.metadata.get("minItems", 0), self.metadata["maxItems"]
        counted = {"field_type": "List", "actual_length": len(value)}
        if len(value) < least:
            raise Invalid(refused("too_short", (), value, min_length=least, **counted))
        loaded, found = list[object](), list[Entry]()
        for index, item in enumerate(value[:most]):
            try:
                loaded.append(self.inner.deserialize(item))
            except Invalid as fault:
                found += under(index, fault.errors)
                if len(found) >= MAX_ENTRIES:
                    break
        if found:
            raise Invalid(*found[:MAX_ENTRIES])
        if len(value) > most:
            raise Invalid(refused("too_long", (), value, max_length=most, **counted))
        return loaded

    def to_json(self, value: Any) -> Any:
        return None if value is None else [self.inner.to_json(item) for item in value]


class Nested(Field, ma.fields.Nested):
    """An object of another schema."""

    def from_json(self, value: Any) -> Any:
        return self.schema.load(value)

    def to_json(self, value: Any) -> Any:
        return None if value is None else self.schema.dump(value)

"""The Schema base: refusals in FastAPI's order, rules across fields, fast dumps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Any, ClassVar

import marshmallow as ma

from app.core.validation.fields import AwareDateTime, Field, Str, Uuid
from app.core.validation.messages import MAX_REFUSALS, Refusal, refusal, refusals
from app.core.validation.scalars import has_surrogate

_LOAD_HOOKS = ("pre_load", "post_load", "validates", "validates_schema")
_DUMP_HOOKS = ("pre_dump", "post_dump")


class Schema(ma.Schema):
    """Base of all schemas: unknown fields are refused, order is kept.

    ``load`` raises :class:`marshmallow.ValidationError` whose ``messages`` are
    :class:`app.core.validation.messages.Refusal`: declared fields first, in their order, then unknown ones in
    the order of the input. ``dump`` takes rows and mappings that have every field.
    """

    examples: ClassVar[Mapping[str, Any]] = {}
    """For the OpenAPI document: field name -> a value that it could have."""

    class Meta:
        unknown = ma.RAISE

    def rules(self, values: dict[str, Any]) -> Iterable[dict[str, Any]]:
        """Rules across fields: the errors of a request whose every field is right by itself.

        Override it; build the errors with :func:`app.core.errors.error`, each with its full ``loc``.
        """
        return ()

    def load(self, data: Any, **options: Any) -> Any:
        """The Python values of a JSON object; marshmallow's own way where hooks or options ask for it."""
        unknown = options.pop("unknown", None) or self.unknown
        if options or self._read is None or not isinstance(data, dict):
            return super().load(data, unknown=unknown, **options)
        return self._read(data, unknown)

    def handle_error(
        self, error: ma.ValidationError, data: Any, *, many: bool, **kwargs: Any
    ) -> None:
        """Put marshmallow's tree of messages into the order of the answer."""
        found = list(islice(self._in_order(error, data), MAX_REFUSALS))
        raise ma.ValidationError(found, data=data)

    def dump(self, obj: Any, *, many: bool | None = None) -> Any:
        """The JSON of a row, or of rows."""
        return self._dump(self._write, obj, many)

    def dump_native(self, obj: Any, *, many: bool | None = None) -> Any:
        """The same, with moments and ids as they are: :func:`app.core.json_text.dumps` writes them faster."""
        return self._dump(self._write_native, obj, many)

    def _dump(self, write: _RowWriter | None, obj: Any, many: bool | None) -> Any:
        if write is None:
            return super().dump(obj, many=many)
        if self.many if many is None else many:
            return [write(row) for row in obj]
        return write(obj)

    def _in_order(self, error: ma.ValidationError, data: Any) -> Iterator[Refusal]:
        if not isinstance(data, Mapping):
            yield refusal("model_attributes_type", data)
            return
        messages: Any = error.messages
        declared = {field.data_key or name: field for name, field in self.load_fields.items()}
        for key in declared:
            if key in messages:
                value = data.get(key)
                for one in refusals(ma.ValidationError(messages[key]), value):
                    yield one.under(key)
        for key, value in data.items():
            if key in messages and key not in declared:
                yield _unknown(key, value)
        if "_schema" in messages and "_schema" not in data:  # from a hook of marshmallow's
            yield from refusals(ma.ValidationError(messages["_schema"]), data)

    @cached_property
    def _read(self) -> _ObjectReader | None:
        fields = self.load_fields
        plain = not self.many and not self.partial and _are_ours(fields)
        return _ObjectReader(fields) if plain and not self._has_hooks(_LOAD_HOOKS) else None

    @cached_property
    def _write(self) -> _RowWriter | None:
        return self._writer()

    @cached_property
    def _write_native(self) -> _RowWriter | None:
        return self._writer(native=(AwareDateTime.to_json, Uuid.to_json))

    def _writer(self, native: Collection[Any] = ()) -> _RowWriter | None:
        plain = _are_ours(self.dump_fields) and not self._has_hooks(_DUMP_HOOKS)
        return _RowWriter(self.dump_fields, native) if plain else None

    def _has_hooks(self, names: tuple[str, ...]) -> bool:
        return any(self._hooks[name] for name in names)


class _ObjectReader:
    """Loads one object in a single pass, in the order of the answer."""

    def __init__(self, fields: Mapping[str, ma.fields.Field]) -> None:
        self._fields = [
            (field.data_key or name, field.attribute or name, field, _may_be_absent(field))
            for name, field in fields.items()
        ]
        self._known = {key for key, *_ in self._fields}

    def __call__(self, data: dict[str, Any], unknown: str) -> dict[str, Any]:
        values: dict[str, Any] = {}
        found: list[Refusal] = []
        for key, name, field, may_be_absent in self._fields:
            value = data.get(key, ma.missing)
            if value is ma.missing and may_be_absent:
                continue
            try:
                values[name] = field.deserialize(value, key, data)
            except ma.ValidationError as error:
                found += [one.under(key) for one in refusals(error, value)]
        if unknown != ma.EXCLUDE and not data.keys() <= self._known:
            others = [key for key in data if key not in self._known]
            if unknown == ma.RAISE:
                found += [_unknown(key, data[key]) for key in others[:MAX_REFUSALS]]
            values.update((key, data[key]) for key in others)
        if found:
            raise ma.ValidationError(found[:MAX_REFUSALS], data=data)
        return values


class _RowWriter:
    """Dumps one row: reads its values in one go, converts only what JSON spells otherwise."""

    def __init__(self, fields: Mapping[str, ma.fields.Field], native: Collection[Any]) -> None:
        as_it_is = (Field.to_json, Str.to_json, *native)
        names = [field.attribute or name for name, field in fields.items()]
        self._keys = [field.data_key or name for name, field in fields.items()]
        self._attributes = _getter(attrgetter, names)
        self._items = _getter(itemgetter, names)
        writers = [
            (key, field, type(field).to_json)
            for key, field in zip(self._keys, fields.values(), strict=True)
            if isinstance(field, Field)
        ]
        # Most values are texts, which differ only where they are None.
        self._texts = [(key, field.to_json) for key, field, how in writers if how is Str.to_json]
        self._read_texts = _getter(itemgetter, [key for key, _ in self._texts])
        self._conversions = [
            (key, field.to_json) for key, field, how in writers if how not in as_it_is
        ]

    def __call__(self, row: Any) -> dict[str, Any]:
        values = self._values(row)
        written = dict(zip(self._keys, values, strict=True))
        for key, convert in self._conversions:
            written[key] = convert(written[key])
        if None in self._read_texts(written):
            for key, convert in self._texts:
                written[key] = convert(written[key])
        return written

    def _values(self, row: Any) -> tuple[Any, ...]:
        if isinstance(row, dict):
            return self._items(row)
        try:
            return self._items(vars(row))  # past SQLAlchemy's attributes, which cost more
        except (KeyError, TypeError):
            return self._attributes(row)


def _are_ours(fields: Mapping[str, ma.fields.Field]) -> bool:
    return all(isinstance(field, Field) for field in fields.values())


def _may_be_absent(field: ma.fields.Field) -> bool:
    return not field.required and field.load_default is ma.missing


def _getter(kind: Any, names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) < 2:
        only = [kind(name) for name in names]
        return lambda row: tuple(get(row) for get in only)
    getter: Callable[[Any], tuple[Any, ...]] = kind(*names)
    return getter


def _unknown(key: str, value: Any) -> Refusal:
    if has_surrogate(key):
        return refusal("string_unicode", key)
    return refusal("extra_forbidden", value).under(key)

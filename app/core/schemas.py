"""The Schema base: refusals in FastAPI's order, rules across fields, fast dumps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Any

import marshmallow as ma

from app.core.coercions import has_surrogate
from app.core.fields import Field
from app.core.refusals import MAX_REFUSALS, Refusal, refusal, refusals


class Schema(ma.Schema):
    """Base of all schemas: unknown fields are refused, order is kept.

    ``load`` raises :class:`marshmallow.ValidationError` whose ``messages`` are
    :class:`app.core.refusals.Refusal`: declared fields first, in their order, then unknown ones in
    the order of the input. ``dump`` takes rows and mappings that have every field.
    """

    class Meta:
        unknown = ma.RAISE

    def rules(self, values: dict[str, Any]) -> Iterable[dict[str, Any]]:
        """Rules across fields: the errors of a request whose every field is right by itself.

        Override it; build the errors with :func:`app.core.errors.error`, each with its full ``loc``.
        """
        return ()

    def handle_error(
        self, error: ma.ValidationError, data: Any, *, many: bool, **kwargs: Any
    ) -> None:
        """Put marshmallow's tree of messages into the order of the answer."""
        found = list(islice(self._in_order(error, data), MAX_REFUSALS))
        raise ma.ValidationError(found, data=data)

    def dump(self, obj: Any, *, many: bool | None = None) -> Any:
        """The JSON of a row, or of rows."""
        if self._write is None:
            return super().dump(obj, many=many)
        if self.many if many is None else many:
            return [self._write(row) for row in obj]
        return self._write(obj)

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

    @cached_property
    def _write(self) -> Callable[[Any], dict[str, Any]] | None:
        """The compiled dump, or None where something is left to marshmallow."""
        fields = self.dump_fields
        if not all(isinstance(field, Field) for field in fields.values()) or any(
            self._hooks[hook] for hook in ("pre_dump", "post_dump")
        ):
            return None
        return _RowWriter(fields)


class _RowWriter:
    """Dumps one row: reads its attributes in one go, converts only what JSON spells otherwise."""

    def __init__(self, fields: Mapping[str, ma.fields.Field]) -> None:
        names = [field.attribute or name for name, field in fields.items()]
        self._keys = [field.data_key or name for name, field in fields.items()]
        self._attributes = _getter(attrgetter, names)
        self._items = _getter(itemgetter, names)
        self._conversions = [
            (key, field.to_json)
            for key, field in zip(self._keys, fields.values(), strict=True)
            if isinstance(field, Field) and type(field).to_json is not Field.to_json
        ]

    def __call__(self, row: Any) -> dict[str, Any]:
        read = self._items if isinstance(row, Mapping) else self._attributes
        written = dict(zip(self._keys, read(row), strict=True))
        for key, convert in self._conversions:
            written[key] = convert(written[key])
        return written


def _getter(kind: Any, names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) == 1:
        only = kind(names[0])
        return lambda row: (only(row),)
    getter: Callable[[Any], tuple[Any, ...]] = kind(*names)
    return getter


def _unknown(key: str, value: Any) -> Refusal:
    if has_surrogate(key):
        return refusal("string_unicode", key)
    return refusal("extra_forbidden", value).under(key)

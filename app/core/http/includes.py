"""``?include=a,b`` adds the keys ``a`` and ``b`` to each item of an answer.

A view offers keys by ``@blp.response(…, includes=(…))``. Each key needs at most one statement for
all items together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlalchemy import ARRAY, Uuid, any_, bindparam, select

from app.core.db.statements import Statement
from app.core.errors import Invalid
from app.core.json_text import Json
from app.core.validation.fields import Field
from app.core.validation.messages import refused
from app.core.validation.schemas import Schema

if TYPE_CHECKING:
    from app.core.http.endpoint import Endpoint

PARAMETER = "include"

Rows: TypeAlias = Sequence[Any]
KeyOf: TypeAlias = Callable[[Any], object]
"""A function that returns a row's key: the value by which the statement finds related rows."""


@dataclass(frozen=True)
class Include:
    """A key that ``?include=<name>`` adds at the end of each item.

    ``read`` takes all rows and returns one value for each, in the same order. ``field`` documents
    and serializes a value. The caller needs ``permission`` in addition to the view's own.
    """

    name: str
    field: Field
    read: Callable[[Rows], Rows]
    permission: str | None = None

    def add_to(self, items: Sequence[dict[str, object]], rows: Rows) -> None:
        """Add the key to each of ``items``, which are the serialized ``rows``."""
        for item, value in zip(items, self.read(rows), strict=True):
            item[self.name] = self.field.to_json(value)


def by_key(statement: Statement, keys: Sequence[object], **values: object) -> Rows:
    """For each key, the row of ``statement`` whose first column is that key, or None.

    A key is an id, the text of an id, or None. The statement has the parameter ``keys``, an array.
    """
    wanted = sorted({str(key) for key in keys if key is not None})
    rows = statement.all(keys=wanted, **values) if wanted else []
    found = {str(row[0]): row for row in rows}
    return [found.get(str(key)) for key in keys]


def choose(endpoint: Endpoint, asked: str) -> tuple[Include, ...]:
    """The includes named in ``?include=<asked>``, in that order.

    Raises Invalid at ``["query", "include"]`` for a name that the endpoint does not offer, and
    PermissionDenied if the caller lacks the permission of an include.
    """
    offered = {include.name: include for include in endpoint.includes}
    names = dict.fromkeys(asked.split(","))
    if names.keys() - offered.keys():
        expected = f"any of {', '.join(map(repr, offered))}"
        raise Invalid(refused("enum", ("query", PARAMETER), asked, expected=expected))
    chosen = tuple(offered[name] for name in names)
    for include in chosen:
        if include.permission is not None:
            endpoint.access.require(include.permission)
    return chosen


@cache
def documented(schema: type[Schema], includes: tuple[Include, ...]) -> type[Schema]:
    """A schema that has the keys of ``includes`` too, for the OpenAPI document."""
    name = schema.__name__.removesuffix("Schema")
    fields = {include.name: include.field for include in includes}
    described = {
        "__doc__": f"{schema.__doc__} With the keys that `include` asks for.",
        "optional": (*getattr(schema, "optional", ()), *fields),
    }
    return type(f"{name}WithIncludesSchema", (schema,), {**described, **fields})


def parameter(includes: Sequence[Include], names: Json) -> dict[str, object]:
    """The parameter in the OpenAPI document; ``names`` is the JSON Schema of one include's name."""
    needed = [f"`{one.name}` needs `{one.permission}`" for one in includes if one.permission]
    return {
        "name": PARAMETER,
        "in": "query",
        "required": False,
        "style": "form",
        "explode": False,
        "schema": {"type": "array", "minItems": 1, "items": names},
        "example": [include.name for include in includes[:2]],
        "description": "Keys to add to each item, separated by commas. "
        f"{'; '.join(needed)}{'. ' if needed else ''}"
        "With it, the ETag is a digest of the answer.",
    }


def own_column(name: str, field: Field) -> Include:
    """An include whose value is the row's own column ``name``."""
    return Include(name, field, lambda rows: [getattr(row, name) for row in rows])


def related(
    name: str,
    field: Field,
    statement: Statement,
    key: KeyOf,
    permission: str | None = None,
    *,
    column: str = "",
) -> Include:
    """An include with the one row that ``statement`` finds for ``key(row)``, or its ``column``."""

    def read(rows: Rows) -> Rows:
        found = by_key(statement, [key(row) for row in rows])
        return [getattr(one, column, None) for one in found] if column else found

    return Include(name, field, read, permission)


def related_lists(
    name: str, field: Field, statement: Statement, key: KeyOf, permission: str
) -> Include:
    """An include with the list of all rows that ``statement`` finds for ``key(row)``, in order."""

    def read(rows: Rows) -> Rows:
        found: dict[str, list[object]] = defaultdict(list)
        keys = [str(key(row)) for row in rows]
        for one in statement.all(keys=keys):
            found[str(one[0])].append(one)
        return [found[each] for each in keys]

    return Include(name, field, read, permission)


def columns_of(model: Any, schema: type[Schema]) -> list[Any]:
    """The columns of ``model`` that ``schema`` has as fields, in its order."""
    return [getattr(model, name) for name in schema().fields]


def by_id(name: str, *columns: Any) -> Statement:
    """A statement that reads ``columns`` where the first of them, an id, is in ``keys``."""
    keys = bindparam("keys", type_=ARRAY(Uuid))
    return Statement(name, select(*columns).where(columns[0] == any_(keys)))

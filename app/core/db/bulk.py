"""Parameters for an INSERT or UPDATE of many rows.

Each column is sent as one array. So the text of the statement does not depend on the number of
rows, and it can be prepared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ARRAY, Select, bindparam, cast, column, func, select


def rows_from_arrays(model: Any, names: Sequence[str]) -> Select[Any]:
    """A SELECT of one row per array element, for ``insert(model).from_select(names, …)``.

    Each column has a parameter of its name. :func:`as_arrays` makes the parameters' values.
    """
    columns = [column(name, model.__table__.c[name].type) for name in names]
    arrays = []
    for each in columns:
        type_ = ARRAY(each.type, dimensions=1)
        arrays.append(cast(bindparam(each.name, type_=type_), type_))
    rows = func.unnest(*arrays).table_valued(*columns, name="new").render_derived()
    return select(*(rows.c[name] for name in names))


def as_arrays(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The columns of rows that all have the same keys; at least one row."""
    return {name: [row[name] for row in rows] for name in rows[0]}

"""What a view reads first, read in the message that finds out who asks.

That a request for one user will read that user, its path tells before anybody has said who asks. So
a view names the statement (``@requires(…, first=…)``), and PostgreSQL runs it behind the one that
authenticates, for the tenant that that one finds and in its scope: one message instead of two. The
answer waits for the view to send the same statement with the same values as its first; whatever
it sends instead, the answer is dropped, so nobody reads what is no longer so.

A row that somebody else has locked is left to the view: who is refused before it never waits.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Select,
    TableValuedAlias,
    literal_column,
    select,
    true,
)
from sqlalchemy.sql.visitors import replacement_traverse

from app.core.db import statements, transactions


@dataclass(frozen=True)
class Ahead:
    """A prepared statement; its parameter ``tenant_id`` is left to who asks, the rest is given.

    One that locks rows has an ``attempt``, the same with SKIP LOCKED.
    """

    statement: Select[Any]
    values: Mapping[str, Any]
    attempt: Select[Any] | None = None

    @property
    def locks(self) -> bool:
        """Whether it locks rows, so that a transaction begins with it."""
        return self.attempt is not None


First = Callable[..., Ahead | None]
"""Called in a request with the values of its path; None where there is nothing to read ahead."""


def find_asker(
    asker: TableValuedAlias,
    values: Mapping[str, Any],
    ahead: Ahead | None,
    *,
    may: ColumnElement[bool],
) -> Any:
    """The row of the function ``asker``, or None; what is ``ahead`` is read for the asker's tenant.

    Only where the condition ``may`` holds of the asker. Where it locks, a transaction begins, in
    which the scope that the function set goes on.
    """
    if ahead is None:
        return statements.first(_alone(asker), values, whole=True)
    both = _both(asker, ahead.statement if ahead.attempt is None else ahead.attempt, may)
    description, found = statements.ask(both, {**values, **ahead.values}, whole=not ahead.locks)
    if not found:
        return None
    width = len(asker.c)
    row = _named(asker)._make(found[0][:width])
    *_, is_there, may_read = found[0]
    if is_there or (may_read and not ahead.locks):
        transactions.flushed().known = statements.Known(
            ahead.statement,
            {**ahead.values, "tenant_id": row.tenant_id},
            description[width:-2],
            [one[width:-2] for one in found] if is_there else [],
        )
    return row


@cache
def _named(asker: TableValuedAlias) -> Any:
    return namedtuple("Asker", asker.c.keys())


@cache
def _alone(asker: TableValuedAlias) -> Select[Any]:
    return statements.prepare(select(asker))


@cache
def _both(asker: TableValuedAlias, asked: Select[Any], may: ColumnElement[bool]) -> Select[Any]:
    """Both in one statement; the last columns tell whether there is a row of ``asked``, and ``may``.

    OFFSET 0 keeps PostgreSQL from joining them in another order: first the asker's function sets the
    scope, then there are rows to be seen.
    """

    def of_asker(element: Any, **_: Any) -> Any:
        is_tenant = isinstance(element, BindParameter) and element.key == "tenant_id"
        return asker.c.tenant_id if is_tenant else None

    template: Any = asked
    rows = (
        replacement_traverse(template, {}, of_asker)
        .add_columns(true().label("is_there"))
        .where(may)
        .offset(literal_column("0"))
        .lateral("asked")
    )
    joined = asker.outerjoin(rows, true())
    return statements.prepare(select(asker, rows, may).select_from(joined))

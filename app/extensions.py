"""Flask extensions, created unbound; :func:`app.create_app` binds them."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from flask_sqlalchemy import SQLAlchemy
from flask_sqlalchemy.session import Session as FlaskSession
from sqlalchemy import Connection, Engine, MetaData
from sqlalchemy.orm import DeclarativeBase

NAMING_CONVENTION = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


class Base(DeclarativeBase):
    """Declarative base of every model; constraints get predictable names."""

    metadata = MetaData(naming_convention=NAMING_CONVENTION)


current_unit: ContextVar[Any] = ContextVar("current_unit", default=None)
"""The transaction that runs, an :class:`app.core.db.transactions.Unit`."""


class Session(FlaskSession):
    """The ORM's session, on the connection of the current transaction where there is one.

    :mod:`app.core.db.transactions` commits it; the session joins in.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        unit = current_unit.get()
        if unit is not None:
            unit.session = self

    def get_bind(
        self, mapper: Any = None, clause: Any = None, bind: Any = None, **options: Any
    ) -> Engine | Connection:
        """Where a statement of the session goes."""
        unit = current_unit.get()
        if unit is None:
            return super().get_bind(mapper, clause, bind, **options)
        return unit.connection()  # type: ignore[no-any-return]


db = SQLAlchemy(model_class=Base, session_options={"class_": Session, "expire_on_commit": False})

"""Flask extensions. :func:`app.create_app` initialises them."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable
from types import new_class
from typing import TYPE_CHECKING, Any, ClassVar, Self

from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import MetaData, Table
from sqlalchemy.orm import DeclarativeBase

NAMING_CONVENTION = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


class Record:
    """The base of rows, which are named tuples and instances of their models.

    Each model gets one class for its rows when it is defined, ``row_class``: a subclass of the model
    and of a ``namedtuple`` of the table's columns. A model itself is never instantiated.
    """

    row_class: ClassVar[Any]
    if TYPE_CHECKING:  # namedtuple has these
        _fields: tuple[str, ...]

        def _asdict(self) -> dict[str, Any]: ...
        def _replace(self, **values: Any) -> Self: ...

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        table = vars(cls).get("__table__")
        if table is not None:  # otherwise it is a base of models
            columns: Any = namedtuple(cls.__name__, table.columns.keys())  # type: ignore[misc]
            body = {
                "__abstract__": True,  # SQLAlchemy: it has no table of its own
                "__module__": cls.__module__,
                "__slots__": (),
                "__reduce__": lambda row: (cls._make, (tuple(row),)),
            }
            cls.row_class = new_class(
                cls.__name__, (columns, cls), exec_body=lambda names: names.update(body)
            )

    @classmethod
    def _make(cls, values: Iterable[Any]) -> Self:
        """A row with the values of all columns, in the order of the table."""
        row: Self = cls.row_class._make(values)
        return row


class Base(Record, DeclarativeBase):
    """Declarative base of all models; constraints get names by :data:`NAMING_CONVENTION`."""

    __table__: ClassVar[Table]
    metadata = MetaData(naming_convention=NAMING_CONVENTION)


db = SQLAlchemy(model_class=Base)
"""The models' registry and the engine. Its session is not used; see ``app/core/db``."""

if TYPE_CHECKING:
    Model = Base  # Flask-SQLAlchemy makes its Model of it; mypy cannot derive from an attribute
else:
    Model = db.Model

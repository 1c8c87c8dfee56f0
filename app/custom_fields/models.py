"""Custom fields, the state of their search indexes, and the index's rows."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from uuid import UUID

from sqlalchemy import (
    JSON,
    BigInteger,
    Double,
    ForeignKeyConstraint,
    Index,
    Numeric,
    SmallInteger,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from app.core.clock import utcnow
from app.core.db.models import Moment, OrganizationRow, updated_index
from app.extensions import Model


class FieldType(StrEnum):
    """What a field's values are.

    The rules are in :mod:`app.custom_fields.values.types`.
    """

    TEXT = "text"
    LONG_TEXT = "long_text"
    INTEGER = "integer"
    DECIMAL = "decimal"
    BOOLEAN = "boolean"
    DATE = "date"
    DATETIME = "datetime"
    EMAIL = "email"
    URL = "url"
    PHONE = "phone"
    SELECT = "select"
    MULTI_SELECT = "multi_select"


class IndexState(StrEnum):
    """The state of a field's search index; filters are answered in ``ready`` only."""

    NONE = "none"
    BUILDING = "building"
    READY = "ready"
    FAILED = "failed"


class CustomField(OrganizationRow):
    """A field that a tenant has defined for one kind of its entities.

    ``is_active`` false means archived: values are not checked or searched, but remain stored.
    ``entity_type``, ``field_key`` and ``field_type`` never change.
    """

    __tablename__ = "custom_fields"

    entity_type: Mapped[str] = mapped_column(Text)
    field_key: Mapped[str] = mapped_column(Text)
    label: Mapped[str] = mapped_column(Text)
    field_type: Mapped[str] = mapped_column(Text)
    options: Mapped[list[str] | None] = mapped_column(JSON(none_as_null=True))
    is_required: Mapped[bool] = mapped_column(default=False)
    is_searchable: Mapped[bool] = mapped_column(default=False)
    is_active: Mapped[bool] = mapped_column(default=True)
    sort_order: Mapped[int] = mapped_column(BigInteger, default=0)

    constraints = (
        UniqueConstraint("tenant_id", "entity_type", "field_key"),
        Index(None, "tenant_id", "created_at", "id"),
        Index(None, "created_at", "id"),
        updated_index(),
        Index(None, "field_type", "created_at", "id"),
        Index(
            "ix_custom_fields_searched_tenants",
            "field_key",
            "field_type",
            "id",
            postgresql_where=text("entity_type = 'tenant' AND is_searchable AND is_active"),
        ),
    )


class FieldIndex(Model):
    """The state of the search index of one field; a field that never had an index has no such row.

    ``position`` is the last entity that the build has visited. ``is_settled`` false means that
    work is left: rows to build, or rows to delete because the field is not searched any more.
    """

    __tablename__ = "custom_field_indexes"
    __table_args__ = (
        ForeignKeyConstraint(["tenant_id", "field_id"], [CustomField.tenant_id, CustomField.id]),
        Index(
            "ix_custom_field_indexes_unsettled",
            "updated_at",
            postgresql_where=text("is_settled IS false"),
        ),
        Index(
            "ix_custom_field_indexes_unready",
            "tenant_id",
            "field_id",
            postgresql_where=text("state IN ('building', 'failed')"),
        ),
    )

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    field_id: Mapped[UUID] = mapped_column(primary_key=True)
    state: Mapped[str] = mapped_column(Text, default=IndexState.NONE)
    is_settled: Mapped[bool] = mapped_column(default=True)
    position: Mapped[UUID | None]
    done: Mapped[int] = mapped_column(BigInteger, default=0)
    total: Mapped[int] = mapped_column(BigInteger, default=0)
    error: Mapped[str | None] = mapped_column(Text)
    built_version: Mapped[int | None] = mapped_column(BigInteger)
    updated_at: Mapped[datetime] = mapped_column(Moment, default=utcnow)


def _value_index(column: str) -> Index:
    return Index(
        f"ix_custom_field_index_rows_{column}",
        "tenant_id",
        "field_id",
        column,
        "entity_id",
        postgresql_where=text(f"{column} IS NOT NULL"),
    )


def _tenants_value_index(column: str) -> Index:
    """The index for look-ups of the tenants' own values, across all tenants."""
    return Index(
        f"ix_custom_field_index_rows_tenants_{column}",
        column,
        "field_id",
        postgresql_where=text(f"entity_id = tenant_id AND {column} IS NOT NULL"),
    )


class IndexRow(Model):
    """One searchable value of one entity; a multi_select has one row per option.

    Exactly one of ``text_key``, ``number_value`` and ``date_value`` is set. ``text_key`` is the
    text's first 255 characters, ``text_rest`` the others; ``exact_value`` is set where
    ``number_value`` is not the exact number. Only types with leakproof operators are indexed,
    because row-level security lets no other operator use an index.
    There are no foreign keys: entities are never deleted, and writers would wait for their locks.
    """

    __tablename__ = "custom_field_index_rows"
    __table_args__ = tuple(
        index(column)
        for index in (_value_index, _tenants_value_index)
        for column in ("text_key", "number_value", "date_value")
    )

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    field_id: Mapped[UUID] = mapped_column(primary_key=True)
    entity_id: Mapped[UUID] = mapped_column(primary_key=True)
    ordinal: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    text_key: Mapped[str | None] = mapped_column(Text(collation="C"))
    text_rest: Mapped[str | None] = mapped_column(Text(collation="C"))
    number_value: Mapped[float | None] = mapped_column(Double)
    exact_value: Mapped[Decimal | None] = mapped_column(Numeric)
    date_value: Mapped[datetime | None] = mapped_column(Moment)

"""The active fields of one kind of entity, as those who write such entities see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import JSON, ColumnElement, bindparam, func, select

from app.core.db import statements, transactions
from app.custom_fields.models import CustomField, FieldType


@dataclass(frozen=True, slots=True)
class Rule:
    """What a field demands of the values under its key."""

    field_id: UUID
    key: str
    field_type: FieldType
    options: Sequence[str] | None
    is_required: bool
    is_searchable: bool

    @classmethod
    def of(cls, field: CustomField) -> Rule:
        """The rule of a field."""
        return cls(
            field.id,
            field.field_key,
            FieldType(field.field_type),
            field.options,
            field.is_required,
            field.is_searchable,
        )


def rules_column(tenant_id: Any, entity_type: str) -> ColumnElement[Any]:
    """The rules as a column, for :func:`remember`: in the statement that locks the entity, say.

    Reading them holds them until the transaction ends: nobody changes what is indexed meanwhile.
    """
    return func.custom_field_rules(tenant_id, entity_type, type_=JSON)


READ = statements.prepare(
    select(func.custom_field_rules(bindparam("tenant_id"), bindparam("entity_type"), type_=JSON))
)


def rules_of(tenant_id: UUID, entity_type: str) -> tuple[Rule, ...]:
    """The rules in the fields' order; read once in a transaction, and held until it ends."""
    known: tuple[Rule, ...] | None = transactions.context().get(_place(tenant_id, entity_type))
    if known is None:
        place = {"tenant_id": tenant_id, "entity_type": entity_type}
        known = remember(tenant_id, entity_type, statements.scalar(READ, place))
    return known


def remember(tenant_id: UUID, entity_type: str, found: list[Any] | None) -> tuple[Rule, ...]:
    """Take what :func:`rules_column` gave, so that nobody in this transaction asks again."""
    rules = tuple(
        Rule(UUID(field_id), key, FieldType(type_), options, required, searchable)
        for field_id, key, type_, options, required, searchable in found or ()
    )
    transactions.context()[_place(tenant_id, entity_type)] = rules
    return rules


def _place(tenant_id: UUID, entity_type: str) -> str:
    return f"custom_field_rules {tenant_id} {entity_type}"

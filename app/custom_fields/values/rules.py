"""Rules: the active custom fields of one entity type, as writers of such entities need them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import JSON, ColumnElement, bindparam, func, select

from app.core.db.statements import Statement
from app.core.db.transactions import current_transaction
from app.custom_fields.models import CustomField, FieldType


@dataclass(frozen=True, slots=True)
class Rule:
    """The requirements of a field for the values under its key."""

    field_id: UUID
    key: str
    field_type: FieldType
    options: Sequence[str] | None
    is_required: bool
    is_searchable: bool

    @classmethod
    def of(cls, field: CustomField) -> Rule:
        return cls(
            field.id,
            field.field_key,
            FieldType(field.field_type),
            field.options,
            field.is_required,
            field.is_searchable,
        )


def rules_column(tenant_id: Any, entity_type: Any) -> ColumnElement[Any]:
    """The rules as a column of a SELECT; :func:`remember` takes its value.

    Reading it locks the rules in shared mode until the transaction ends: no other transaction can
    change meanwhile which fields are indexed.
    """
    return func.custom_field_rules(tenant_id, entity_type, type_=JSON)


READ = Statement(
    "custom_fields.read_rules",
    select(rules_column(bindparam("tenant_id"), bindparam("entity_type"))),
)


def rules_of(tenant_id: UUID, entity_type: str) -> tuple[Rule, ...]:
    """The rules, in the fields' order; read once per transaction and locked until it ends."""
    known: tuple[Rule, ...] | None = current_transaction().known.get((READ, tenant_id, entity_type))
    if known is None:
        found = READ.scalar(tenant_id=tenant_id, entity_type=entity_type)
        known = remember(tenant_id, entity_type, found)
    return known


def remember(tenant_id: UUID, entity_type: str, found: list[Any] | None) -> tuple[Rule, ...]:
    """Store the value of :func:`rules_column` for the rest of the transaction."""
    rules = tuple(
        Rule(UUID(field_id), key, FieldType(type_), options, required, searchable)
        for field_id, key, type_, options, required, searchable in found or ()
    )
    current_transaction().known[READ, tenant_id, entity_type] = rules
    return rules

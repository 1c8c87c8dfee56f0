"""The kinds of rows whose metadata this service stores, and custom fields describe."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar
from uuid import UUID

from sqlalchemy import ColumnElement
from sqlalchemy.orm import InstrumentedAttribute

from app.custom_fields.values.rules import rules_column
from app.tenants.models import Tenant
from app.users.models import User

R = TypeVar("R", User, Tenant)


@dataclass(frozen=True, eq=False)
class Entity(Generic[R]):
    """Rows with a column ``meta_data``; ``entity_type`` is that of their fields.

    ``tenant_id`` is the column with the tenant whose fields describe the row. ``derived`` names
    columns that are computed of others, and are not recorded.
    """

    entity_type: str
    model: type[R]
    tenant_id: InstrumentedAttribute[UUID]
    derived: frozenset[str] = frozenset()

    @cached_property
    def rules(self) -> ColumnElement[Any]:
        """The rules of a row's fields, as a column of a SELECT of the model."""
        return rules_column(self.tenant_id, self.entity_type)

    def tenant_of(self, row: R) -> UUID:
        """The tenant whose fields describe ``row``."""
        tenant_id: UUID = getattr(row, self.tenant_id.key)
        return tenant_id


USER = Entity("user", User, User.tenant_id, derived=frozenset({"email_key"}))
TENANT = Entity("tenant", Tenant, Tenant.id)
ENTITIES: dict[str, Entity[Any]] = {entity.entity_type: entity for entity in (USER, TENANT)}

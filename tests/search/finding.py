"""Rows that can be found, and searching for them."""

from typing import Any

from app.core.db.writes import writes
from app.search import writer
from app.search.models import EntityType, SearchTerm
from tests import database, factories
from tests.database import platform_transaction


def create_tenant(**values: Any) -> Any:
    return _with_terms(EntityType.TENANT, factories.create_tenant(**values))


def create_user(tenant: Any, **values: Any) -> Any:
    return _with_terms(EntityType.USER, factories.create_user(tenant, **values))


def create_subscription(tenant: Any, **values: Any) -> Any:
    return _with_terms(EntityType.SUBSCRIPTION, factories.create_subscription(tenant, **values))


def terms_of(row: Any) -> set[str]:
    """The stored terms of a row."""
    return {found.term for found in database.rows(SearchTerm, entity_id=row.id)}


def expected_terms(entity_type: EntityType, row: Any) -> set[str]:
    """The terms that a row should have."""
    return {term for _, _, term, _ in writer.keys(entity_type, row)}


def _with_terms(entity_type: EntityType, row: Any) -> Any:
    with platform_transaction(), writes() as w:
        writer.add(entity_type, row, into=w)
    return row

"""Custom fields for tests, and the worker that builds their indexes."""

from collections.abc import Iterable
from itertools import count
from typing import Any
from uuid import UUID

from flask import Flask
from sqlalchemy import create_engine, text

from app.core.actors import SYSTEM_CLI
from app.core.jobs.queues import Queue
from app.core.jobs.worker import make_worker
from app.custom_fields import service
from app.custom_fields.models import CustomField, FieldType
from app.custom_fields.search_index import builder
from app.custom_fields.search_index.entries import entries_of
from app.tenants.models import Tenant
from app.users.models import User
from tests import database
from tests.database import platform_transaction, rows

_numbers = count(1)

CREATE_USERS = """
INSERT INTO users (
    tenant_id, idp_org_id, id, idp_user_id, email, email_key, first_name, last_name, is_active,
    meta_data, created_by_user_id, updated_by_user_id, created_at, updated_at, version
)
SELECT :tenant_id, :idp_org_id, gen_random_uuid(), 'u' || n, 'u' || n || '@example.com',
    'u' || n || '@example.com', '', '', true,
    json_build_object('note', 'n' || n, 'amount', n, 'colors', json_build_array('red')),
    'cli:tester', 'cli:tester', now(), now(), 1
FROM generate_series(1, :users) AS n
RETURNING id
"""


def create_users(tenant: Tenant, number: int) -> list[UUID]:
    """Many users at once, with values of ``note`` (text), ``amount`` (a number) and ``colors``."""
    values = {"tenant_id": tenant.id, "idp_org_id": tenant.idp_org_id, "users": number}
    return [row.id for row in database.query(CREATE_USERS, **values)]


def analyze(app: Flask) -> None:
    """Have PostgreSQL gather its statistics now."""
    engine = create_engine(app.extensions["config"].migration_database_url)
    with engine.begin() as owner:
        owner.execute(text("ANALYZE"))
    engine.dispose()


def create_field(tenant: Tenant, **values: Any) -> CustomField:
    """A field of users, ``text`` unless said otherwise; its index's build is queued, not run."""
    defaults = {
        "entity_type": "user",
        "field_key": f"field_{next(_numbers)}",
        "label": "A field",
        "field_type": "text",
    }
    with platform_transaction():
        return service.create(tenant.id, defaults | values, actor=SYSTEM_CLI)


def create_fields(tenant: Tenant, keys: Iterable[str], **values: Any) -> list[CustomField]:
    return [create_field(tenant, field_key=key, **values) for key in keys]


def run_jobs(app: Flask) -> None:
    """Run the queued jobs of the index worker."""
    make_worker(app, [Queue.INDEXES]).work(burst=True, logging_level="WARNING")


def build_index(app: Flask, field: CustomField) -> None:
    """Do all work on a field's index in this process."""
    with app.app_context():
        for _ in builder.work(field.tenant_id, field.id):
            pass


def index_rows(field: CustomField) -> list[tuple[Any, ...]]:
    """The rows of a field's index: entity, ordinal and values."""
    return database.query(
        "SELECT entity_id, ordinal, text_key, text_rest, number_value, exact_value, date_value"
        " FROM custom_field_index_rows WHERE field_id = :id ORDER BY entity_id, ordinal",
        id=field.id,
    )


def wrong_rows(field: CustomField) -> set[tuple[Any, ...]]:
    """The rows that an index lacks, and those that it should not have."""
    model, key = (User, "tenant_id") if field.entity_type == "user" else (Tenant, "id")
    field_type = FieldType(field.field_type)
    right = {
        (entity.id, ordinal, *entry)
        for entity in rows(model, **{key: field.tenant_id})
        for ordinal, entry in enumerate(
            entries_of(field_type, entity.meta_data.get(field.field_key))
        )
    }
    return right ^ set(map(tuple, index_rows(field)))

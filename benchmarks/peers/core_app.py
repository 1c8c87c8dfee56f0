"""FastAPI with SQLAlchemy Core on asyncpg: ``uvicorn benchmarks.peers.core_app:app``.

Each statement is built once, at import or at the first change of the same columns; SQLAlchemy
keeps what it compiles, and its dialect prepares each statement on a connection.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import orjson
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from benchmarks.peers import sql
from benchmarks.peers.application import create_app

POOL_SIZE = int(os.environ["PEER_POOL_SIZE"])
TYPES = {
    "id": sa.Uuid(),
    "tenant_id": sa.Uuid(),
    "user_id": sa.Uuid(),
    "field_id": sa.Uuid(),
    "entity_id": sa.Uuid(),
    "plan_preset_id": sa.Uuid(),
    "created_at": sa.DateTime(timezone=True),
    "updated_at": sa.DateTime(timezone=True),
    "start_date": sa.DateTime(timezone=True),
    "expires_at": sa.DateTime(timezone=True),
    "next_attempt_at": sa.DateTime(timezone=True),
    "is_active": sa.Boolean(),
    "is_searchable": sa.Boolean(),
    "is_free_trial": sa.Boolean(),
    "auto_renew": sa.Boolean(),
    "send_email_receipts": sa.Boolean(),
    "send_paper_receipts": sa.Boolean(),
    "tenant_is_active": sa.Boolean(),
    "version": sa.BigInteger(),
    "per_cycle_billing_amount": sa.BigInteger(),
    "send_invoice_days_before_due": sa.BigInteger(),
    "attempts": sa.BigInteger(),
    "replays": sa.BigInteger(),
    "meta_data": sa.JSON(),
    "flags": sa.JSON(),
    "flag_value": sa.JSON(),
    "options": sa.JSON(),
    "headers": sa.JSON(),
    "before": sa.JSON(),
    "after": sa.JSON(),
    "body": sa.LargeBinary(),
}
"""The types of columns; those that are not named here are text."""


def columns(names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, TYPES.get(name, sa.Text())) for name in names.replace(",", " ").split()]


metadata = sa.MetaData()
users = sa.Table("users", metadata, *columns(f"{sql.USER} version"))
memberships = sa.Table("memberships", metadata, *columns(f"{sql.MEMBERSHIP} version"))
subscriptions = sa.Table(
    "subscriptions", metadata, *columns(f"tenant_id {sql.SUBSCRIPTION} version")
)
tenants = sa.Table("tenants", metadata, *columns("id plan_name is_active"))
presets = sa.Table("plan_presets", metadata, *columns("id name flags"))
overrides = sa.Table(
    "feature_overrides",
    metadata,
    *columns("tenant_id plan_preset_id flag_key flag_value expires_at"),
)
fields = sa.Table(
    "custom_fields",
    metadata,
    *columns("tenant_id id entity_type field_key field_type options is_searchable is_active"),
)
indexes = sa.Table("custom_field_indexes", metadata, *columns("tenant_id field_id state"))
entries = sa.Table(
    "custom_field_index_rows", metadata, *columns("tenant_id field_id entity_id text_key")
)
events = sa.Table(
    "webhook_events",
    metadata,
    *columns("id created_at updated_at version source external_id event_type status detail"),
    *columns("attempts replays next_attempt_at headers body digest request_id"),
)
audit_events = sa.Table(
    "audit_events",
    metadata,
    *columns("tenant_id id created_at actor action target_type target_id before after request_id"),
)


def value(name: str) -> sa.BindParameter[Any]:
    """A value of the statement, of its column's type."""
    return sa.bindparam(name, type_=TYPES.get(name, sa.Text()))


def by_id(table: sa.Table, *selected: Any) -> sa.Select[Any]:
    return sa.select(*selected).where(
        table.c.tenant_id == value("tenant_id"), table.c.id == value("id")
    )


def shown(table: sa.Table) -> list[Any]:
    """A table's columns in the order of its Read shape."""
    names = sql.TABLES[table.name][0]
    return [table.c[name] for name in names.replace(",", " ").split()]


principal = sa.func.authenticate_user(value("subject"), value("org_id")).table_valued(
    *columns("user_id tenant_id role tenant_is_active")
)
rules = (
    sa.select(
        sa.func.json_object_agg(
            fields.c.field_key,
            sa.func.json_build_array(fields.c.field_type, fields.c.options),
            type_=sa.JSON(),
        )
    )
    .where(
        fields.c.tenant_id == users.c.tenant_id,
        fields.c.entity_type == "user",
        fields.c.is_active,
    )
    .scalar_subquery()
)
own_flags = (
    sa.select(
        sa.func.json_object_agg(overrides.c.flag_key, overrides.c.flag_value, type_=sa.JSON())
    )
    .where(
        overrides.c.tenant_id == tenants.c.id,
        overrides.c.plan_preset_id == presets.c.id,
        sa.or_(overrides.c.expires_at.is_(None), overrides.c.expires_at > sa.func.now()),
    )
    .scalar_subquery()
)
list_users = (
    sa.select(*shown(users))
    .where(users.c.tenant_id == value("tenant_id"))
    .order_by(users.c.created_at, users.c.id)
    .limit(sa.bindparam("count", type_=sa.BigInteger()))
)
SELECTS: dict[str, Any] = {
    "authenticate": sa.select(principal),
    "get_user": by_id(users, *shown(users), users.c.version),
    "list_users": list_users,
    "find_field": sa.select(fields.c.id, indexes.c.state).where(
        indexes.c.tenant_id == fields.c.tenant_id,
        indexes.c.field_id == fields.c.id,
        fields.c.tenant_id == value("tenant_id"),
        fields.c.entity_type == "user",
        fields.c.field_key == value("key"),
        fields.c.is_searchable,
        fields.c.is_active,
    ),
    "search_users": list_users.where(
        users.c.id.in_(
            sa.select(entries.c.entity_id).where(
                entries.c.tenant_id == value("tenant_id"),
                entries.c.field_id == value("field_id"),
                entries.c.text_key == value("value"),
            )
        )
    ),
    "lock_user": by_id(
        users, users.c.id, users.c.version, users.c.meta_data, rules.label("rules")
    ).with_for_update(of=users),
    "lock_membership": by_id(
        memberships, memberships.c.id, memberships.c.version, memberships.c.role
    ).with_for_update(),
    "lock_subscription": by_id(
        subscriptions, *shown(subscriptions), subscriptions.c.version
    ).with_for_update(),
    "flags": sa.select(
        tenants.c.is_active, tenants.c.plan_name, presets.c.flags, own_flags.label("overrides")
    )
    .select_from(tenants.outerjoin(presets, presets.c.name == tenants.c.plan_name))
    .where(tenants.c.id == value("tenant_id")),
}
store_event = (
    insert(events)
    .values(
        {
            **{
                name: value(name)
                for name in [
                    "id",
                    "source",
                    "external_id",
                    "event_type",
                    "headers",
                    "body",
                    "digest",
                    "request_id",
                ]
            },
            **dict.fromkeys(("created_at", "updated_at", "next_attempt_at"), sa.func.now()),
            "version": 1,
            "status": "pending",
            "detail": "",
            "attempts": 0,
            "replays": 0,
        }
    )
    .on_conflict_do_nothing()
    .returning(events.c.id)
)


class Query:
    """A statement, and the names of its columns as plain strings, which orjson needs."""

    def __init__(self, statement: Any) -> None:
        self.statement = statement
        self.names = [str(name) for name in statement.exported_columns.keys()]  # noqa: SIM118


STATEMENTS = {name: Query(one) for name, one in {**SELECTS, "store_event": store_event}.items()}


@cache
def updating(table_name: str, names: tuple[str, ...]) -> Query:
    """Sets the columns ``names`` of one version of a row, adds the audit row, returns the row.

    No parameter has a column's name, which SQLAlchemy would take for an assignment.
    """
    table = metadata.tables[table_name]
    _, has_author, action, target = sql.TABLES[table_name]
    assignments: dict[str, Any] = {name: given(name, table.c[name].type) for name in names}
    if has_author:
        assignments["updated_by_user_id"] = given("actor")
    changed = (
        sa.update(table)
        .where(
            table.c.tenant_id == given("tenant_id"),
            table.c.id == given("id"),
            table.c.version == given("version"),
        )
        .values({**assignments, "updated_at": sa.func.now(), "version": table.c.version + 1})
        .returning(*table.c)
        .cte("changed")
    )
    audited = sa.insert(audit_events).from_select(
        [column.name for column in audit_events.c],
        sa.select(
            changed.c.tenant_id,
            given("audit_id", sa.Uuid()),
            changed.c.updated_at,
            given("actor"),
            sa.literal_column(f"'{action}'"),
            sa.literal_column(f"'{target}'"),
            sa.cast(changed.c.id, sa.Text()),
            given("before"),
            given("after"),
            given("request_id"),
        ),
    )
    selected = [changed.c[column.name] for column in shown(table)]
    return Query(sa.select(*selected, changed.c.version).add_cte(audited.cte("audited")))


def given(name: str, type_: Any = None) -> sa.BindParameter[Any]:
    """A value of a change, of its column's type unless another is named."""
    return sa.bindparam(f"given_{name}", type_=type_ or TYPES.get(name, sa.Text()))


class Transaction:
    """Runs the statements on one connection of the engine."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def one(self, name: str, values: dict[str, Any]) -> Any:
        return await self._row(STATEMENTS[name], values)

    async def all(self, name: str, values: dict[str, Any]) -> list[Any]:
        query = STATEMENTS[name]
        rows = await self._connection.execute(query.statement, values)
        return [dict(zip(query.names, row, strict=True)) for row in rows]

    async def update(self, table: str, values: dict[str, Any], after: dict[str, Any]) -> Any:
        parameters = {f"given_{name}": one for name, one in {**values, **after}.items()}
        return await self._row(updating(table, tuple(after)), parameters)

    async def _row(self, query: Query, values: dict[str, Any]) -> Any:
        row = (await self._connection.execute(query.statement, values)).first()
        return None if row is None else dict(zip(query.names, row, strict=True))


class Database:
    """SQLAlchemy's engine and pool."""

    async def open(self) -> None:
        self._engine = create_async_engine(
            os.environ["DATABASE_URL"].replace("psycopg2", "asyncpg"),
            pool_size=POOL_SIZE,
            max_overflow=0,
            json_serializer=lambda given: orjson.dumps(given).decode(),
            json_deserializer=orjson.loads,
            connect_args={"server_settings": {"timezone": "UTC", "statement_timeout": "15s"}},
        )

    async def close(self) -> None:
        await self._engine.dispose()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        async with self._engine.begin() as connection:
            yield Transaction(connection)


app = create_app("core", Database())

"""Alembic's environment. It connects as the owner of the tables; each migration is a transaction."""

import click
from alembic import context
from flask import current_app
from sqlalchemy import create_engine, pool, text
from sqlalchemy.exc import DBAPIError

from app.core.db.engine import limit_connecting
from app.core.errors import first_line
from app.extensions import db

context.config.set_main_option("version_locations", "migrations/versions")


def include_object(item, name, kind, reflected, compare_to):
    """Exclude Alembic's own table from the comparison."""
    return not (kind == "table" and name == "alembic_version")


OPTIONS = {
    "target_metadata": db.metadata,
    "transaction_per_migration": True,
    "compare_type": True,
    "include_object": include_object,
}


LIMITS = ("SET lock_timeout = '5s'", "SET statement_timeout = '15min'")


def run_offline():
    """Print the SQL (``flask db upgrade --sql``)."""
    context.configure(dialect_name="postgresql", literal_binds=True, **OPTIONS)
    for limit in LIMITS:
        context.static_output(f"{limit};")
    with context.begin_transaction():
        context.run_migrations()


def run_online():
    """Migrate the database. A migration that exceeds one of the limits has no effect."""
    config = current_app.extensions["config"]
    engine = create_engine(config.migration_database_url, poolclass=pool.NullPool)
    limit_connecting(engine, config)
    try:
        with engine.connect() as connection:
            for limit in LIMITS:
                connection.execute(text(limit))
            connection.commit()
            context.configure(connection=connection, **OPTIONS)
            with context.begin_transaction():
                context.run_migrations()
    except DBAPIError as fault:
        raise click.ClickException(f"PostgreSQL: {first_line(fault)}") from fault


if context.is_offline_mode():
    run_offline()
else:
    run_online()

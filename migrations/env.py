"""Alembic's environment: connects as the owner of the tables, one transaction per migration."""

from alembic import context
from flask import current_app
from sqlalchemy import create_engine, pool, text

from app.extensions import db

context.config.set_main_option("version_locations", "migrations/versions")


def include_object(item, name, kind, reflected, compare_to):
    """Only the application's own tables are compared."""
    return not (kind == "table" and name == "alembic_version")


OPTIONS = {
    "target_metadata": db.metadata,
    "transaction_per_migration": True,
    "compare_type": True,
    "include_object": include_object,
}


def run_offline():
    """Print the SQL (``flask db upgrade --sql``)."""
    context.configure(dialect_name="postgresql", literal_binds=True, **OPTIONS)
    with context.begin_transaction():
        context.run_migrations()


def run_online():
    """Migrate the database; a lock that is not had within five seconds ends the attempt."""
    config = current_app.extensions["config"]
    engine = create_engine(config.migration_database_url, poolclass=pool.NullPool)
    with engine.connect() as connection:
        connection.execute(text("SET lock_timeout = '5s'"))
        connection.commit()
        context.configure(connection=connection, **OPTIONS)
        with context.begin_transaction():
            context.run_migrations()


if context.is_offline_mode():
    run_offline()
else:
    run_online()

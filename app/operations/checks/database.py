"""The checks of PostgreSQL, and those of the domains on what is stored there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import psycopg2
from flask import current_app
from psycopg2.errors import QueryCanceled
from sqlalchemy import create_engine, pool, text
from sqlalchemy.exc import SQLAlchemyError

from app.config import Config
from app.core.db import tenancy
from app.core.db.engine import limit_connecting
from app.core.db.statements import Statement
from app.core.db.transactions import savepoint, transaction
from app.core.errors import first_line
from app.core.health import Finding
from app.operations.service import FIND_MIGRATION, is_migrated

LARGEST_CLOCK_DIFFERENCE = 2.0  # seconds
OLDEST_POSTGRESQL = 16
MIGRATE = "Run flask db upgrade."
SEE_POOLING = "see docs/operations/running.md on PgBouncer."
SEE_LOG = "see docs/operations/running.md on PostgreSQL's log."

ROLE = Statement(
    "doctor.role",
    "SELECT current_user AS name,"
    " (SELECT string_agg(DISTINCT power, ' and ') FROM ("
    "   SELECT CASE WHEN rolsuper THEN 'a superuser' ELSE 'exempt by BYPASSRLS' END AS power"
    "   FROM pg_roles WHERE (rolsuper OR rolbypassrls) AND pg_has_role(oid, 'MEMBER')"
    "   UNION ALL SELECT 'the owner of the database' FROM pg_database"
    "   WHERE datname = current_database() AND pg_has_role(datdba, 'MEMBER')"
    "   UNION ALL SELECT 'the owner of tables' FROM pg_class"
    "   WHERE relnamespace = 'public'::regnamespace AND pg_has_role(relowner, 'MEMBER')"
    " ) AS powers) AS powers",
)
TENANT_TABLES = Statement(  # those whose primary key contains tenant_id
    "doctor.tenant_tables",
    "SELECT relname AS name, relrowsecurity AND relforcerowsecurity AS is_forced"
    " FROM pg_class JOIN pg_index ON indrelid = pg_class.oid AND indisprimary"
    " JOIN pg_attribute ON attrelid = pg_class.oid AND attnum = ANY(indkey)"
    " WHERE relnamespace = 'public'::regnamespace AND attname = 'tenant_id' ORDER BY relname",
)
SERVER = Statement(
    "doctor.server",
    "SELECT current_setting('server_version') AS version,"
    " current_setting('server_version_num')::int / 10000 AS major,"
    " current_setting('statement_timeout') AS statement_timeout,"
    " to_regclass('alembic_version') IS NOT NULL AS has_migrations",
)
STATEMENT_LOG = {  # PostgreSQL's settings, with the values that keep statements out of its log
    "log_min_error_statement": {"panic"},
    "log_error_verbosity": {"terse"},
    "log_statement": {"none", "ddl"},
    "log_min_duration_statement": {"-1"},
    "log_min_duration_sample": {"-1"},
    "log_transaction_sample_rate": {"0"},
    "auto_explain.log_min_duration": {"-1"},
}
STATEMENT_LOG_SETTINGS = Statement(
    "doctor.statement_log_settings",
    "SELECT name, setting FROM pg_settings WHERE name = ANY(CAST(:names AS text[]))"
    # The CSV and JSON logs hold the row of an error, whatever log_error_verbosity is.
    " OR name = 'log_destination' AND setting ~ 'csvlog|jsonlog'"
    " AND current_setting('log_min_messages') NOT IN ('fatal', 'panic')",
)
CLOCK = Statement("doctor.clock", "SELECT extract(epoch FROM clock_timestamp())::float")
LIMIT_TIME = Statement(
    "operations.limit_time", "SELECT set_config('statement_timeout', :limit, true)"
)
LAST = ("stored secrets", "limits", "trials")  # these findings follow those of all other domains
QUICKLY = "500ms"  # the most that one check of the stored rows may take within a request
MAY_CREATE_TABLES = text("SELECT current_user, has_schema_privilege('public', 'CREATE')")


def check_database() -> Iterator[Finding]:
    """The findings on PostgreSQL, and on the stored rows where the migrations are applied."""
    try:
        with transaction():
            yield from _check_server()
            if _migration_state(SERVER.one().has_migrations).ok:
                tenancy.enter(tenancy.PLATFORM)
                yield from (check() for check in _row_checks().values())
    except psycopg2.Error as fault:
        fix = "Check that PostgreSQL runs and that DATABASE_URL is right."
        yield Finding("database", False, first_line(fault), fix)


def check_database_quickly(without: str = "") -> Iterator[Finding]:
    """As :func:`check_database`, in the current transaction, which has the platform's scope.

    A check of the stored rows that takes longer than :data:`QUICKLY` is a hint to run the doctor.
    """
    yield from _check_server()
    LIMIT_TIME.first(limit=QUICKLY)
    for name, check in _row_checks().items():
        if name == without:
            continue
        try:
            with savepoint():
                finding = check()
        except QueryCanceled:
            finding = Finding(name, True, f"not checked within {QUICKLY}", "Run flask doctor.")
        yield finding


def _check_server() -> Iterator[Finding]:
    server = SERVER.one()
    yield check_version(server.version, server.major)
    yield check_role()
    yield _row_level_security()
    yield _migration_state(server.has_migrations)
    yield _time_outs(server.statement_timeout)
    yield _statement_log()
    yield _clock()


def check_version(shown: str, major: int) -> Finding:
    good = major >= OLDEST_POSTGRESQL
    fix = "" if good else f"Upgrade PostgreSQL to {OLDEST_POSTGRESQL} or later."
    return Finding("database", good, shown, fix)


def check_role(check: str = "role", setting: str = "DATABASE_URL") -> Finding:
    """The finding on the role of the transaction's connection; row-level security must bind it."""
    role = ROLE.one()
    if role.powers is None:
        return Finding(check, True, f"{role.name} is a plain role")
    fix = (
        f"{setting} must name a role that is not a superuser, has no BYPASSRLS, and owns neither"
        " tables nor the database, not even as a member. MIGRATION_DATABASE_URL names the owner."
    )
    return Finding(check, False, f"{role.name} is {role.powers}", fix)


def _row_level_security() -> Finding:
    tables = TENANT_TABLES.all()
    if not tables:
        return Finding("row-level security", False, "not migrated", MIGRATE)
    unprotected = [table.name for table in tables if not table.is_forced]
    if not unprotected:
        return Finding("row-level security", True, f"forced on {len(tables)} tables")
    fix = "ALTER TABLE … ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY on each of them."
    return Finding("row-level security", False, f"not forced on {', '.join(unprotected)}", fix)


def _migration_state(has_migrations: bool) -> Finding:
    if not has_migrations:
        return Finding("migrations", False, "none applied", MIGRATE)
    version = FIND_MIGRATION.scalar()
    current = is_migrated(version)
    return Finding("migrations", current, f"at {version}", "" if current else MIGRATE)


def _time_outs(limit: str) -> Finding:
    """Check that time-outs are set. PgBouncer ignores the start-up options that set them."""
    good = limit != "0"
    fix = "" if good else f"ALTER ROLE … SET statement_timeout = '15s'; {SEE_POOLING}"
    return Finding("time-outs", good, f"statement_timeout is {limit if good else 'not set'}", fix)


def _statement_log() -> Finding:
    """Check that PostgreSQL's log holds no statements and rows, and so no personal data."""
    found = STATEMENT_LOG_SETTINGS.all(names=list(STATEMENT_LOG))
    wrong = [row for row in found if row.setting not in STATEMENT_LOG.get(row.name, ())]
    if not wrong:
        return Finding("statement log", True, "PostgreSQL's log holds no statements")
    fix = f"Personal data is in PostgreSQL's log; {SEE_LOG}"
    return Finding(
        "statement log", False, " ".join(f"{one.name}={one.setting}" for one in wrong), fix
    )


def _clock() -> Finding:
    before = time.time()
    theirs = CLOCK.scalar()
    difference = abs(theirs - (before + time.time()) / 2)
    good = difference <= LARGEST_CLOCK_DIFFERENCE
    fix = "" if good else "Synchronise the clocks of this machine and the database's (NTP)."
    return Finding("clock", good, f"{difference:.3f} s from the database's", fix)


def _row_checks() -> dict[str, Callable[[], Finding]]:
    """The checks of the domains, by the names of their findings, in the order of the doctor."""
    found: dict[str, Callable[[], Finding]] = {}
    for domain in current_app.extensions["health"]:
        found |= getattr(domain, "CHECKS", {})
    for name in LAST:
        found[name] = found.pop(name)
    return found


def check_migration_role(config: Config) -> Iterator[Finding]:
    if config.migration_database_url == config.database_url:
        found = "not set apart; only the release and flask users erase need it"
        yield Finding("migration role", True, found)
        return
    engine = create_engine(config.migration_database_url, poolclass=pool.NullPool)
    limit_connecting(engine, config)
    try:
        with engine.connect() as session:
            name, may = session.execute(MAY_CREATE_TABLES).one()
    except SQLAlchemyError as fault:
        fix = "Check that MIGRATION_DATABASE_URL is right."
        yield Finding("migration role", False, first_line(fault), fix)
        return
    found = f"{name} can create tables" if may else f"{name} cannot create tables"
    fix = "" if may else "MIGRATION_DATABASE_URL must name the owner of the tables."
    yield Finding("migration role", bool(may), found, fix)

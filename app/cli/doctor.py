"""``flask doctor``: check the installation and say how to correct each fault."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import click
import psycopg2
import rq
from flask import current_app
from flask.cli import with_appcontext
from redis.exceptions import RedisError
from rq.serializers import JSONSerializer
from sqlalchemy import ARRAY, Text, bindparam, create_engine, pool, text
from sqlalchemy.exc import SQLAlchemyError

from app.auth.tokens import KeySet
from app.cli.base import first_line, json_option, print_json, print_rows
from app.config import Config
from app.core.clock import utcnow
from app.core.db.statements import Statement
from app.core.db.transactions import transaction
from app.core.errors import Unavailable
from app.core.jobs.queues import Queue, connection, queue_named
from app.extensions import db
from app.operations.service import FIND_MIGRATION, newest_migration

LARGEST_CLOCK_DIFFERENCE = 2.0  # seconds
LONGEST_WAIT = 60.0  # seconds; a job that waits longer in its queue is a fault
SEE_POOLING = "see docs/running.md on PgBouncer."
SEE_LOG = "see docs/running.md on PostgreSQL's log."

ROLE = Statement(
    "doctor.role",
    text(
        "SELECT current_user AS name, rolsuper, rolbypassrls,"
        " EXISTS (SELECT FROM pg_tables WHERE schemaname = 'public' AND tableowner = current_user)"
        " AS owns_tables FROM pg_roles WHERE rolname = current_user"
    ),
)
UNPROTECTED = Statement(
    "doctor.unprotected_tables",
    text(
        "SELECT coalesce(string_agg(relname, ', ' ORDER BY relname), '') FROM pg_class"
        " WHERE relnamespace = 'public'::regnamespace AND relname = ANY(:tables)"
        " AND NOT (relrowsecurity AND relforcerowsecurity)"
    ).bindparams(bindparam("tables", type_=ARRAY(Text))),
)
SERVER_VERSION = Statement("doctor.server_version", text("SHOW server_version"))
HAS_MIGRATIONS = Statement(
    "doctor.has_migrations", text("SELECT to_regclass('alembic_version') IS NOT NULL")
)
STATEMENT_TIMEOUT = Statement("doctor.statement_timeout", text("SHOW statement_timeout"))
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
    text(
        "SELECT name, setting FROM pg_settings WHERE name = ANY(:names)"
        # The CSV and JSON logs hold the row of an error, whatever log_error_verbosity is.
        " OR name = 'log_destination' AND setting ~ 'csvlog|jsonlog'"
        " AND current_setting('log_min_messages') NOT IN ('fatal', 'panic')"
    ).bindparams(bindparam("names", type_=ARRAY(Text))),
)
CLOCK = Statement("doctor.clock", text("SELECT extract(epoch FROM clock_timestamp())::float"))
MAY_CREATE_TABLES = text("SELECT current_user, has_schema_privilege('public', 'CREATE')")


@dataclass(frozen=True)
class Finding:
    """The result of one check; ``fix`` says how to correct a fault."""

    check: str
    ok: bool
    found: str
    fix: str = ""


@click.command("doctor")
@json_option
@with_appcontext
def doctor(as_json: bool) -> None:
    """Check everything that the service needs; exit 1 if there is a fault."""
    config: Config = current_app.extensions["config"]
    findings = [
        *_configuration(config),
        _token_keys(config),
        *_database(),
        *_migrations(config),
        *_redis(),
    ]
    faults = [finding for finding in findings if not finding.ok]
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        rows = [{**asdict(one), "ok": "ok" if one.ok else "FAULT"} for one in findings]
        print_rows(rows, ["check", "ok", "found"], as_json=False)
        for finding in faults:
            click.echo(f"{finding.check}: {finding.fix}")
    if faults:
        raise SystemExit(1)


def _configuration(config: Config) -> Iterator[Finding]:
    yield Finding("configuration", True, "complete")
    for receiver, secrets in (
        ("IDP_WEBHOOK_SECRETS", config.idp_webhook_secrets),
        ("EMAIL_WEBHOOK_SECRETS", config.email_webhook_secrets),
    ):
        fix = "" if secrets else f"Set {receiver}. Until then the receiver answers 503."
        yield Finding(f"secret {receiver}", bool(secrets), "set" if secrets else "not set", fix)
    is_private = "engines" in current_app.extensions
    if config.jwt_signing_key and not is_private:
        fix = "Unset JWT_SIGNING_KEY: everybody who can read the environment can issue tokens."
        yield Finding("development key", False, "set", fix)


def _token_keys(config: Config) -> Finding:
    if config.jwt_public_key:
        return Finding("token keys", True, "a public key is set")
    try:
        KeySet(config.jwt_jwks_url, config.jwt_algorithms).get(None)
    except Unavailable:
        fix = (
            "Check that JWT_JWKS_URL is right and that this machine can reach it."
            " Until then no token is valid."
        )
        return Finding("token keys", False, f"none at {config.jwt_jwks_url}", fix)
    except LookupError:  # there are keys, but none without an id
        pass
    return Finding("token keys", True, f"published at {config.jwt_jwks_url}")


def _database() -> Iterator[Finding]:
    try:
        with transaction():
            yield Finding("database", True, SERVER_VERSION.scalar())
            for check in (
                _role,
                _row_level_security,
                _migration_state,
                _time_outs,
                _statement_log,
                _clock,
            ):
                yield check()
    except psycopg2.Error as fault:
        fix = "Check that PostgreSQL runs and that DATABASE_URL is right."
        yield Finding("database", False, first_line(fault), fix)


def _role() -> Finding:
    role = ROLE.first()
    if not (role.rolsuper or role.rolbypassrls or role.owns_tables):
        return Finding("role", True, f"{role.name} is a plain role")
    fix = (
        "DATABASE_URL must name a role that is not a superuser, does not bypass row-level security"
        " and owns no table. MIGRATION_DATABASE_URL names the owner."
    )
    return Finding("role", False, f"{role.name} bypasses row-level security", fix)


def _row_level_security() -> Finding:
    owned = [
        name
        for name, table in db.metadata.tables.items()
        if "tenant_id" in table.primary_key.columns
    ]
    unprotected = UNPROTECTED.scalar(tables=owned)
    if not unprotected:
        return Finding("row-level security", True, f"forced on {len(owned)} tables")
    fix = "ALTER TABLE … ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY on each of them."
    return Finding("row-level security", False, f"not forced on {unprotected}", fix)


def _migration_state() -> Finding:
    fix = "Run flask db upgrade."
    if not HAS_MIGRATIONS.scalar():
        return Finding("migrations", False, "none applied", fix)
    version = FIND_MIGRATION.scalar()
    current = version == newest_migration()
    return Finding("migrations", current, f"at {version}", "" if current else fix)


def _time_outs() -> Finding:
    """Check that time-outs are set. PgBouncer ignores the start-up options that set them."""
    found = STATEMENT_TIMEOUT.scalar()
    good = found != "0"
    fix = "" if good else f"ALTER ROLE … SET statement_timeout = '15s'; {SEE_POOLING}"
    return Finding("time-outs", good, f"statement_timeout is {found if good else 'not set'}", fix)


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


def _migrations(config: Config) -> Iterator[Finding]:
    engine = create_engine(
        config.migration_database_url,
        poolclass=pool.NullPool,
        connect_args={"connect_timeout": config.db_connect_timeout},
    )
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


def _redis() -> Iterator[Finding]:
    redis = connection()
    try:
        redis.ping()
        yield Finding("redis", True, "answers")
        workers = rq.Worker.all(connection=redis, serializer=JSONSerializer)
        served = {name for worker in workers for name in worker.queue_names()}
        for name in Queue:
            yield _queue(name, is_served=name.value in served)
    except RedisError as fault:
        fix = "Check that Redis runs and that REDIS_URL is right."
        yield Finding("redis", False, first_line(fault), fix)


def _queue(name: Queue, *, is_served: bool) -> Finding:
    queue = queue_named(name, connection())
    found = f"{queue.count} waiting"
    if not is_served:
        return Finding(f"queue {name}", False, f"{found}, no worker", "Run flask jobs worker.")
    waits = _seconds_waited(queue)
    if waits > LONGEST_WAIT:
        fix = "Run more workers; flask jobs stats shows the queues."
        return Finding(f"queue {name}", False, f"{found}, the first for {waits:.0f} s", fix)
    return Finding(f"queue {name}", True, f"{found}, served")


def _seconds_waited(queue: rq.Queue) -> float:
    first = next(iter(queue.get_jobs(0, 1)), None)
    if first is None or first.enqueued_at is None:
        return 0.0
    return (utcnow() - first.enqueued_at).total_seconds()

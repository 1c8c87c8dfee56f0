"""`flask doctor` on installations with one thing wrong each."""

import json
from collections.abc import Iterator
from contextlib import closing

import psycopg2
import pytest

from app import create_app
from app.dev.engines.instance import APPLICATION_ROLE, DATABASE, OWNER_ROLE, Instance
from app.dev.engines.postgres import SUPERUSER, connect
from app.extensions import db


def examine(environment: dict[str, str], **settings: str) -> tuple[dict[str, dict], int]:
    """The findings by check, and the exit code."""
    app = create_app({**environment, **settings})
    ended = app.test_cli_runner().invoke(args=["doctor", "--json"])
    with app.app_context():
        db.engine.dispose()
    return {found["check"]: found for found in json.loads(ended.stdout)}, ended.exit_code


@pytest.fixture
def unprotected_table(app, instance: Instance) -> Iterator[str]:
    url = instance.database_url(OWNER_ROLE).replace("+psycopg2", "")
    with closing(psycopg2.connect(url)) as session, session.cursor() as cursor:
        session.autocommit = True
        cursor.execute("ALTER TABLE users NO FORCE ROW LEVEL SECURITY")
        yield "users"
        cursor.execute("ALTER TABLE users FORCE ROW LEVEL SECURITY")


@pytest.fixture
def empty_database(instance: Instance) -> Iterator[str]:
    url = instance.database_url(SUPERUSER, "postgres").replace("+psycopg2", "")
    with closing(psycopg2.connect(url)) as session, session.cursor() as cursor:
        session.autocommit = True
        cursor.execute("CREATE DATABASE empty")
        yield "empty"
        cursor.execute("DROP DATABASE empty WITH (FORCE)")


class TestDoctor:
    def test_finds_nothing_wrong_with_what_is_right(self, app, environment):
        findings, _ = examine(environment)

        right = {
            "configuration",
            "database",
            "role",
            "row-level security",
            "migrations",
            "time-outs",
            "statement log",
            "token keys",
            "clock",
            "migration role",
            "redis",
        }
        assert {name for name in right if not findings[name]["ok"]} == set()

    def test_names_a_fix_for_each_fault_and_for_nothing_else(self, app, environment):
        findings, code = examine(environment)

        assert code == 1
        assert all(bool(found["fix"]) != found["ok"] for found in findings.values())

    def test_finds_queues_without_a_worker(self, app, environment):
        findings, _ = examine(environment)

        assert findings["queue webhooks"]["found"] == "0 waiting, no worker"

    def test_finds_a_development_key_outside_a_private_instance(self, app, environment):
        findings, _ = examine(environment)

        assert "JWT_SIGNING_KEY" in findings["development key"]["fix"]

    def test_finds_missing_webhook_secrets(self, app, environment):
        findings, _ = examine(environment, IDP_WEBHOOK_SECRETS="")

        assert findings["secret IDP_WEBHOOK_SECRETS"]["found"] == "not set"
        assert findings["secret EMAIL_WEBHOOK_SECRETS"]["ok"]

    def test_finds_a_role_that_passes_by_row_level_security(self, app, environment, instance):
        findings, _ = examine(environment, DATABASE_URL=instance.database_url(SUPERUSER))

        assert findings["role"]["found"] == f"{SUPERUSER} bypasses row-level security"

    def test_finds_a_table_without_row_level_security(self, environment, unprotected_table):
        findings, _ = examine(environment)

        assert findings["row-level security"]["found"] == f"not forced on {unprotected_table}"

    @pytest.mark.parametrize(
        "setting",
        [
            "log_min_error_statement=error",
            "log_error_verbosity=default",
            "log_statement=mod",
            "log_min_duration_statement=250",
            "log_min_duration_sample=250",
            "log_transaction_sample_rate=0.5",
        ],
    )
    def test_finds_settings_that_put_statements_into_postgresqls_log(
        self, app, environment, instance, setting
    ):
        name, value = setting.split("=")
        with closing(connect(instance)) as session, session.cursor() as cursor:
            cursor.execute(f"ALTER ROLE {APPLICATION_ROLE} SET {name} = '{value}'")
            findings, code = examine(environment)
            cursor.execute(f"ALTER ROLE {APPLICATION_ROLE} RESET {name}")

        assert (findings["statement log"]["found"], code) == (setting, 1)
        assert "docs/running.md" in findings["statement log"]["fix"]

    def test_finds_missing_migrations(self, app, environment, instance, empty_database):
        url = instance.database_url(database=empty_database)

        findings, _ = examine(environment, DATABASE_URL=url)

        assert findings["migrations"]["found"] == "none applied"
        assert findings["migrations"]["fix"] == "Run flask db upgrade."

    def test_finds_a_migration_role_that_may_not_migrate(self, app, environment, instance):
        findings, _ = examine(environment, MIGRATION_DATABASE_URL=instance.database_url())

        assert not findings["migration role"]["ok"]

    def test_finds_an_identity_provider_that_does_not_answer(self, app, environment):
        url = "http://127.0.0.1:1/keys"

        findings, code = examine(environment, JWT_PUBLIC_KEY="", JWT_JWKS_URL=url)

        assert (findings["token keys"]["ok"], code) == (False, 1)
        assert "JWT_JWKS_URL" in findings["token keys"]["fix"]

    def test_tells_people_the_fixes_below_the_table(self, app, environment):
        broken = create_app({**environment, "IDP_WEBHOOK_SECRETS": ""})

        ended = broken.test_cli_runner().invoke(args=["doctor"])
        with broken.app_context():
            db.engine.dispose()

        assert ended.exit_code == 1
        assert "\nsecret IDP_WEBHOOK_SECRETS: Set IDP_WEBHOOK_SECRETS" in ended.stdout
        assert max(len(line) for line in ended.stdout.splitlines() if "│" in line) < 120

    @pytest.mark.parametrize(
        ("check", "settings"),
        [
            ("database", {"DATABASE_URL": f"postgresql:///{DATABASE}?host=/nowhere"}),
            ("migration role", {"MIGRATION_DATABASE_URL": "postgresql:///x?host=/nowhere"}),
            ("redis", {"REDIS_URL": "unix:///nowhere/redis.sock"}),
        ],
    )
    def test_finds_an_engine_that_is_away(self, app, environment, check, settings):
        findings, code = examine(environment, **settings)

        assert code == 1
        assert not findings[check]["ok"]
        assert "URL is right" in findings[check]["fix"]

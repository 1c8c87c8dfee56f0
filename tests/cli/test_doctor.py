"""`flask doctor` on installations with one thing wrong each."""

import json
import time
from collections.abc import Iterator
from contextlib import closing

import psycopg2
import pytest

from app import create_app
from app.config import SETTINGS
from app.core.jobs.queues import Queue
from app.core.jobs.worker import make_worker
from app.dev.engines.instance import APPLICATION_ROLE, DATABASE, OWNER_ROLE, Instance
from app.dev.engines.postgres import SUPERUSER, connect
from app.extensions import db
from app.operations.background import LAST_SEEN, PARTS
from app.operations.checks.database import check_version


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
def powerful_roles(app, instance: Instance) -> Iterator[None]:
    """Roles that row-level security does not bind, or that can become such a role."""
    url = instance.database_url(SUPERUSER).replace("+psycopg2", "")
    with closing(psycopg2.connect(url)) as session, session.cursor() as cursor:
        session.autocommit = True
        cursor.execute("CREATE ROLE exempt_role LOGIN BYPASSRLS IN ROLE controlplane_app")
        cursor.execute("CREATE ROLE owners_member LOGIN IN ROLE controlplane_owner")
        yield
        cursor.execute("DROP ROLE exempt_role, owners_member")


@pytest.fixture
def empty_database(instance: Instance) -> Iterator[str]:
    url = instance.database_url(SUPERUSER, "postgres").replace("+psycopg2", "")
    with closing(psycopg2.connect(url)) as session, session.cursor() as cursor:
        session.autocommit = True
        cursor.execute("CREATE DATABASE empty")
        yield "empty"
        cursor.execute("DROP DATABASE empty WITH (FORCE)")


class TestDoctor:
    def test_finds_nothing_wrong_with_what_is_right_and_a_fix_for_each_fault(
        self, app, environment
    ):
        findings, code = examine(environment)

        right = {
            "configuration", "database", "role", "row-level security", "migrations", "time-outs",
            "statement log", "token keys", "clock", "migration role", "redis",
        }  # fmt: skip
        assert {name for name in right if not findings[name]["ok"]} == set()
        assert code == 1
        assert all(found["fix"] for found in findings.values() if not found["ok"])
        assert findings["queue webhooks"]["found"] == "0 waiting, no worker"
        assert "development key" not in findings
        assert findings["configuration"]["found"] == "a private instance, for development"

    def test_finds_no_fault_in_the_deployment_that_is_documented(
        self, app, environment, monkeypatch
    ):
        """Without the owner's URL, a receiver or a development key; all processes run."""
        prescribed = {name: environment[name] for name in environment if name in SETTINGS}
        prescribed |= {"MIGRATION_DATABASE_URL": "", "JWT_SIGNING_KEY": ""}
        prescribed |= {"IDP_WEBHOOK_SECRETS": "", "EMAIL_WEBHOOK_SECRETS": ""}
        worker = make_worker(app, list(Queue))
        worker.register_birth()
        with app.app_context():
            LAST_SEEN.put(dict.fromkeys(PARTS, time.time()))

        findings, code = examine(prescribed)
        worker.register_death()

        assert {name: found for name, found in findings.items() if not found["ok"]} == {}
        assert code == 0
        assert findings["secret IDP_WEBHOOK_SECRETS"]["found"] == "receiver not used"

    def test_lists_what_the_domains_find_in_one_order(self, app, environment):
        findings = list(examine(environment)[0])

        first, last = findings.index("clock") + 1, findings.index("migration role")
        assert findings[first:last] == [
            "plans", "select fields", "billing events", "drift", "search", "sequencer", "sender",
            "webhook endpoints", "log streams", "stored secrets", "limits", "trials",
        ]  # fmt: skip

    @pytest.mark.parametrize(("seconds", "told"), [(None, "never seen"), (300, "seen 3")])
    def test_finds_that_a_process_does_not_run(self, app, environment, seconds, told):
        if seconds is not None:
            with app.app_context():
                LAST_SEEN.put(dict.fromkeys(PARTS, time.time() - seconds))

        findings, _ = examine(environment)

        for process in PARTS:
            finding = findings[f"process {process}"]
            assert not finding["ok"]
            assert finding["found"].startswith(told)
            assert f"flask jobs {process}" in finding["fix"]

    def test_finds_a_development_key_outside_a_private_instance(self, app, environment):
        findings, _ = examine(environment, PRIVATE_INSTANCE="0")

        assert "JWT_SIGNING_KEY" in findings["development key"]["fix"]
        assert findings["configuration"]["found"] == "complete"

    @pytest.mark.parametrize(
        ("role", "power"),
        [
            (SUPERUSER, "a superuser"),
            (OWNER_ROLE, "the owner of tables and the owner of the database"),
            ("exempt_role", "exempt by BYPASSRLS"),
            ("owners_member", "the owner of tables and the owner of the database"),
        ],
    )
    def test_finds_a_role_that_passes_by_row_level_security(
        self, app, environment, instance, powerful_roles, role, power
    ):
        findings, _ = examine(environment, DATABASE_URL=instance.database_url(role))

        assert not findings["role"]["ok"]
        assert power in findings["role"]["found"]

    @pytest.mark.parametrize(("major", "good"), [(15, False), (16, True), (18, True)])
    def test_finds_a_postgresql_below_16(self, major, good):
        finding = check_version(f"{major}.4", major)

        assert finding.ok == good
        assert bool(finding.fix) != good

    def test_finds_a_table_without_row_level_security(self, environment, unprotected_table):
        findings, _ = examine(environment)

        assert findings["row-level security"]["found"] == f"not forced on {unprotected_table}"

    def test_finds_settings_that_put_statements_into_postgresqls_log(
        self, app, environment, instance
    ):
        settings = {
            "log_min_error_statement=error", "log_error_verbosity=default", "log_statement=mod",
            "log_min_duration_statement=250", "log_min_duration_sample=250",
            "log_transaction_sample_rate=0.5",
        }  # fmt: skip
        with closing(connect(instance)) as session, session.cursor() as cursor:
            for name, _, value in (one.partition("=") for one in settings):
                cursor.execute(f"ALTER ROLE {APPLICATION_ROLE} SET {name} = '{value}'")
            findings, code = examine(environment)
            cursor.execute(f"ALTER ROLE {APPLICATION_ROLE} RESET ALL")

        assert (set(findings["statement log"]["found"].split()), code) == (settings, 1)
        assert "docs/operations/running.md" in findings["statement log"]["fix"]

    def test_finds_missing_migrations(self, app, environment, instance, empty_database):
        url = instance.database_url(database=empty_database)

        findings, _ = examine(environment, DATABASE_URL=url)

        assert findings["row-level security"]["found"] == "not migrated"
        assert not findings["row-level security"]["ok"]
        assert findings["migrations"]["found"] == "none applied"
        assert findings["migrations"]["fix"] == "Run flask db upgrade."

    def test_finds_a_migration_role_that_may_not_migrate(
        self, app, environment, instance, powerful_roles
    ):
        url = instance.database_url("exempt_role")

        findings, _ = examine(environment, MIGRATION_DATABASE_URL=url)

        assert not findings["migration role"]["ok"]

    def test_finds_an_identity_provider_that_does_not_answer(self, app, environment):
        url = "http://127.0.0.1:1/keys"

        findings, code = examine(environment, JWT_PUBLIC_KEY="", JWT_JWKS_URL=url)

        assert (findings["token keys"]["ok"], code) == (False, 1)
        assert "JWT_JWKS_URL" in findings["token keys"]["fix"]

    def test_tells_people_the_fixes_below_the_table(self, without_redis):
        ended = without_redis.test_cli_runner().invoke(args=["doctor"])

        assert ended.exit_code == 1
        assert "\nredis: Check that Redis runs" in ended.stdout
        assert max(len(line) for line in ended.stdout.splitlines() if "\t" in line) < 120

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


class TestHints:
    """What deserves attention and is no fault."""

    @pytest.mark.parametrize(("is_private", "hint"), [("1", ""), ("0", "METRICS_TOKEN")])
    def test_metrics_without_a_token_outside_a_private_instance(
        self, app, environment, is_private, hint
    ):
        metrics = examine(environment, PRIVATE_INSTANCE=is_private)[0]["metrics"]

        assert (metrics["ok"], metrics["found"]) == (True, "no token")
        assert hint in metrics["fix"]
        assert bool(hint) == bool(metrics["fix"])

    def test_metrics_with_a_token_are_none(self, app, environment):
        metrics = examine(environment, METRICS_TOKEN="collector-1")[0]["metrics"]

        assert (metrics["found"], metrics["fix"]) == ("token set", "")

"""Behind PgBouncer in transaction mode, as docs/operations/running.md sets it up."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psycopg2
import pytest

from app import create_app
from app.core.db.prepared import THRESHOLD
from app.core.db.statements import Statement
from app.core.db.tenancy import platform_transaction
from app.dev.engines.instance import APPLICATION_ROLE, Instance
from app.extensions import db
from tests.factories import create_member, create_tenant
from tests.running import documented
from tests.running.proxies import pgbouncer
from tests.running.serving import HOST, web_server

SERVER_CONNECTIONS = 3
PREPARED = Statement("tests.prepared", "SELECT name FROM pg_prepared_statements")


@pytest.fixture
def pooled(app, instance: Instance, environment, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The service's environment, with PgBouncer before the database."""
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    with pgbouncer(instance, tmp_path, connections=SERVER_CONNECTIONS) as url:
        yield {**environment, "DATABASE_URL": url}


class TestPgBouncer:
    def test_sixteen_clients_on_three_connections_see_their_own_rows_only(
        self, app, pooled, instance, tmp_path
    ):
        tenants = [create_tenant() for _ in range(4)]
        tokens = [create_member(tenant)[2] for tenant in tenants]
        before = connections(instance)  # straight to the database

        with web_server(pooled, tmp_path) as (port, _), ThreadPoolExecutor(16) as clients:
            jobs = [
                clients.submit(traffic, port, tenants[n % 4], tokens[n % 4], n) for n in range(16)
            ]
            answered = sum(job.result() for job in jobs)
            used = len(connections(instance) - before)

        assert answered == 16 * 20 * 2
        assert 1 <= used <= SERVER_CONNECTIONS

    def test_no_statement_is_prepared(self, app, pooled):
        with create_app(pooled).app_context():
            for _ in range(THRESHOLD + 2):
                with platform_transaction():
                    found = PREPARED.scalars()
            db.engine.dispose()

        assert found == []

    def test_time_outs_hold_by_the_roles_settings(self, app, pooled):
        with psycopg2.connect(pooled["DATABASE_URL"]) as session, session.cursor() as cursor:
            cursor.execute("SELECT name, setting FROM pg_settings WHERE name LIKE '%\\_timeout'")
            found = dict(cursor.fetchall())

        assert found["statement_timeout"] == found["lock_timeout"] == "15000"
        assert found["idle_in_transaction_session_timeout"] == "30000"

    @pytest.mark.parametrize("is_set", [True, False])
    def test_the_doctor_sees_whether_the_role_has_time_outs(self, app, pooled, instance, is_set):
        if not is_set:
            documented.execute(instance, f"ALTER ROLE {APPLICATION_ROLE} RESET ALL")
        behind = create_app(pooled)

        ended = behind.test_cli_runner().invoke(args=["doctor", "--json"])
        with behind.app_context():
            db.engine.dispose()

        findings = {found["check"]: found for found in json.loads(ended.stdout)}
        assert findings["role"]["ok"]
        assert findings["time-outs"]["ok"] is is_set


def traffic(port: int, tenant, token: str, number: int) -> int:
    """Writes and reads of one client; how many were answered as they have to be."""
    good = 0
    with httpx.Client(base_url=f"http://{HOST}:{port}", timeout=30) as client:
        client.headers["Authorization"] = f"Bearer {token}"
        for turn in range(20):
            body = {"idp_user_id": f"u-{number}-{turn}", "email": f"u{number}.{turn}@example.com"}
            created = client.post("/v1/users", json=body)
            assert created.status_code == 201, created.text
            listed = client.get("/v1/users?limit=100").json()["data"]
            assert {row["tenant_id"] for row in listed} == {str(tenant.id)}
            good += 2
    return good


def connections(instance: Instance) -> set[int]:
    """The processes of PostgreSQL that serve connections of the application's role."""
    session = documented.superuser(instance)
    with session.cursor() as cursor:
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE usename = %s", [APPLICATION_ROLE])
        found = {pid for (pid,) in cursor}
    session.close()
    return found

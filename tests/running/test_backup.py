"""Backup and restore, by the commands of docs/operations/backup.md."""

from __future__ import annotations

import os
import subprocess
import sys
from urllib.parse import quote

from app.dev.engines.instance import OWNER_ROLE
from app.dev.engines.postgres import program
from tests.factories import create_member, create_tenant
from tests.running import documented
from tests.running.serving import PROJECT


class TestBackup:
    def test_a_restored_database_has_every_tenants_rows_and_its_rules(
        self, app, instance, environment, tmp_path
    ):
        for _ in range(3):
            create_member(create_tenant(), role="owner")
        before = counts(instance, "controlplane")
        documented.execute(instance, f"CREATE DATABASE restored OWNER {OWNER_ROLE}")
        backup, restore = documented.blocks("sh", "backup.md")
        environ = {
            **os.environ,
            "PATH": f"{program('pg_dump').parent}:{os.environ['PATH']}",
            "OWNER_URL": url(instance, "controlplane"),
            "NEW_OWNER_URL": url(instance, "restored"),
        }

        try:
            for command in (backup, restore):
                subprocess.run(command, shell=True, cwd=tmp_path, env=environ, check=True)
            restored = {
                "DATABASE_URL": instance.database_url(database="restored"),
                "MIGRATION_DATABASE_URL": instance.database_url(OWNER_ROLE, "restored"),
            }
            found = subprocess.run(
                [sys.executable, "-m", "flask", "--app", "wsgi", "doctor", "--json"],
                cwd=PROJECT,
                env={**os.environ, **environment, **restored},
                capture_output=True,
                text=True,
                check=False,
            )
            after = counts(instance, "restored")
        finally:
            documented.execute(instance, "DROP DATABASE restored WITH (FORCE)")

        assert after == before
        assert after["users"] == 3
        assert '"check": "row-level security",\n    "ok": true' in found.stdout
        assert '"check": "migrations",\n    "ok": true' in found.stdout
        assert '"check": "role",\n    "ok": true' in found.stdout


def url(instance, database: str) -> str:
    host = quote(str(instance.sockets), safe="")
    return f"postgresql://{OWNER_ROLE}@/{database}?host={host}"


def counts(instance, database: str) -> dict[str, int]:
    """How many rows each table has."""
    session = documented.superuser(instance, database)
    with session.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        tables = [name for (name,) in cursor.fetchall()]
        found = {}
        for table in tables:
            cursor.execute(f'SELECT count(*) FROM "{table}"')
            (found[table],) = cursor.fetchone()
    session.close()
    return found

"""Backup and restore, by the commands of docs/operations/backup.md."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from app.dev.engines.instance import OWNER_ROLE
from app.dev.engines.postgres import SUPERUSER, program
from tests.cluster import Node, cluster
from tests.factories import create_member, create_tenant
from tests.running import documented
from tests.running.serving import PROJECT, wait_until


class TestBackup:
    def test_a_restored_database_has_every_tenants_rows_and_its_rules(
        self, app, instance, environment, tmp_path
    ):
        for _ in range(3):
            create_member(create_tenant(), role="owner")
        before = counts(instance, "controlplane")
        documented.execute(instance, f"CREATE DATABASE restored OWNER {OWNER_ROLE}")
        backup, restore = documented.blocks("sh", "backup.md", "Dump")
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


class TestPointInTime:
    @pytest.fixture
    def folder(self) -> Iterator[Path]:
        """In the place of /var/backups; the server's account archives there."""
        found = Path(tempfile.mkdtemp(prefix="controlplane-backup-"))
        for each in (found, found / "wal"):
            each.mkdir(exist_ok=True)
            each.chmod(0o777)
        yield found
        shutil.rmtree(found)

    def test_brings_back_the_moment_before_a_mistake(self, folder):
        section = documented.section("backup.md", "Point in time")
        section = section.replace("/var/backups", str(folder))
        settings, backup, restore = (
            textwrap.dedent(block)
            for block in re.findall(r"```(?:sh|sql)\n(.*?)```", section, re.S)
        )
        with cluster(standbys=0) as found:
            server = found.primary
            for statement in settings.splitlines():
                server.execute(statement)
            server.stop()
            server.start()
            server.execute("CREATE TABLE changes (name text)")
            run(server, backup)
            server.execute("INSERT INTO changes VALUES ('wanted')")
            ((moment,),) = server.execute("SELECT clock_timestamp()::text")
            server.execute("INSERT INTO changes VALUES ('a mistake')")
            ((last,),) = server.execute("SELECT pg_walfile_name(pg_switch_wal())")
            archived = "SELECT last_archived_wal >= %s FROM pg_stat_archiver"
            wait_until(lambda: server.execute(archived, last) == [(True,)])
            server.kill()

            base = next(folder.glob("base-*"))
            restore = restore.replace("/var/lib/postgresql/restored", f"{folder}/restored")
            restore = restore.replace("base-2030-01-05", base.name)
            run(server, restore.replace("2030-01-05 09:45:00+00", moment))
            shutil.rmtree(server.data)
            (folder / "restored").rename(server.data)
            server.start()
            wait_until(server.is_primary)
            restored = server.execute("SELECT name FROM changes")

        assert restored == [("wanted",)]


def run(server: Node, commands: str) -> None:
    """Run commands as the server's account."""
    environ = {
        "PATH": f"{program('pg_basebackup').parent}:{os.environ['PATH']}",
        "BACKUP_URL": server.url(SUPERUSER),
    }
    process = server.account.launch(["sh", "-ec", commands], env=environ, cwd="/")
    assert process.wait() == 0


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

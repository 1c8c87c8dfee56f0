"""``flask events``."""

import json
import sys
import time
from itertools import count

import pytest

from app.core.actors import SYSTEM_CLI
from app.tenants import service as tenants
from tests.database import platform_transaction, query
from tests.factories import create_tenant, create_user, platform_token
from tests.running.serving import running, wait_until


@pytest.fixture
def tenant(app):
    return create_tenant(slug="acme")


@pytest.fixture
def rename(api, tenant):
    user, token = create_user(tenant), platform_token()

    def rename(name):
        path = f"/v1/users/{user.id}"
        assert api.patch(path, token=token, json={"first_name": name}).status_code == 200
        api.sequence()

    return rename


def run(app, *words):
    result = app.test_cli_runner().invoke(args=["events", *words])
    return result.exit_code, result.stdout, result.stderr


class TestTail:
    def test_prints_what_comes(self, environment, rename, tmp_path):
        rename("earlier")
        command = [sys.executable, "-m", "flask", "--app", "wsgi", "events", "tail", "--json"]
        log, numbers = tmp_path / "tail.log", count()
        with running([*command, "--tenant", "acme"], environ=environment, log=log) as process:

            def is_shown():
                rename(f"name {next(numbers)}")
                return log.read_text().count("\n") >= 2

            wait_until(is_shown)
            assert process.poll() is None

        lines = [json.loads(line) for line in log.read_text().splitlines()]
        assert [one["position"] for one in lines] == list(
            range(lines[0]["position"], lines[0]["position"] + len(lines))
        )
        assert "earlier" not in log.read_text()

    def test_ends_by_ctrl_c_without_an_error(self, app, monkeypatch):
        def interrupted(seconds):
            raise KeyboardInterrupt

        monkeypatch.setattr(time, "sleep", interrupted)

        ended = app.test_cli_runner().invoke(args=["events", "tail"])

        assert (ended.exit_code, ended.output) == (0, "")


class TestSequencer:
    def test_gives_positions_and_ends_by_sigterm(self, environment, tenant, tmp_path):
        command = [sys.executable, "-m", "flask", "--app", "wsgi", "jobs", "sequencer"]
        with running(command, environ=environment, log=tmp_path / "log") as process:
            with platform_transaction():
                tenants.update(tenant.id, {"name": "New"}, actor=SYSTEM_CLI)
            wait_until(lambda: query("SELECT FROM events"))

            process.terminate()

            assert process.wait(20) == 0

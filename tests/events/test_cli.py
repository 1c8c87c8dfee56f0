"""``flask events``."""

import json
import sys
import threading
import time

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
    @pytest.mark.parametrize("words", [[], ["--tenant", "acme"]])
    def test_prints_what_comes_until_ctrl_c(self, app, rename, monkeypatch, words):
        rename("earlier")
        coming, sleep = iter(("first", "second")), time.sleep

        def wait(seconds):
            if threading.current_thread() is not threading.main_thread():
                return sleep(seconds)
            name = next(coming, None)
            if name is None:
                raise KeyboardInterrupt
            return rename(name)

        monkeypatch.setattr(time, "sleep", wait)

        ended = app.test_cli_runner().invoke(args=["events", "tail", "--json", *words])

        assert (ended.exit_code, ended.stderr) == (0, "")
        found = [json.loads(line) for line in ended.stdout.splitlines()]
        assert [one["data"]["first_name"] for one in found] == ["first", "second"]
        assert found[1]["position"] == found[0]["position"] + 1


class TestSequencer:
    def test_gives_positions_and_ends_by_sigterm(self, environment, tenant, tmp_path):
        command = [sys.executable, "-m", "flask", "--app", "wsgi", "jobs", "sequencer"]
        with running(command, environ=environment, log=tmp_path / "log") as process:
            with platform_transaction():
                tenants.update(tenant.id, {"name": "New"}, actor=SYSTEM_CLI)
            wait_until(lambda: query("SELECT FROM events"))

            process.terminate()

            assert process.wait(20) == 0

"""The Procfile's processes, several of each, as a platform runs them."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from app.inbox.signatures.sending import sign
from tests.factories import create_member, create_tenant, platform_token
from tests.ports import free_port
from tests.running.serving import HOST, PROJECT, answers, running, wait_until

PROGRAMS = Path(sys.executable).parent


def lines() -> dict[str, str]:
    """The Procfile's commands by name."""
    pairs = [line.partition(": ") for line in (PROJECT / "Procfile").read_text().splitlines()]
    return {name: command for name, _, command in pairs}


@pytest.fixture
def environ(app, environment) -> dict[str, str]:
    path = f"{PROGRAMS}:{os.environ['PATH']}"
    return {**os.environ, **environment, "PATH": path, "WEB_PROCESSES": "1"}


@pytest.fixture
def processes(environ, tmp_path: Path) -> Iterator[tuple[list[int], psutil.Process]]:
    """Two of each run by honcho; the web processes' ports, and honcho itself."""
    commands = {name: command for name, command in lines().items() if name != "release"}
    for name in ("web", "stream"):  # or everybody on the network could reach the test
        commands[name] += f" --bind={HOST}:$PORT"
    procfile = tmp_path / "Procfile"
    procfile.write_text("".join(f"{name}: {command}\n" for name, command in commands.items()))
    port = free_port(in_a_row=2)
    ports = [port, port + 1]
    counts = ",".join(f"{name}=2" for name in commands)
    honcho = [str(PROGRAMS / "honcho"), "start", "-f", str(procfile), "-d", str(PROJECT)]
    log = tmp_path / "honcho.log"
    command = [*honcho, "-p", str(port), "-c", counts, "web"]
    with running([*command, "worker", "background", "stream"], environ=environ, log=log) as process:
        wait_until(
            lambda: (
                all(answers(one, "/readyz") == 200 for one in ports) or process.poll() is not None
            )
        )
        assert process.poll() is None, log.read_text()
        yield ports, psutil.Process(process.pid)


class TestProcfile:
    def test_the_release_line_can_be_run_again(self, environ):
        done = subprocess.run(
            lines()["release"], shell=True, cwd=PROJECT, env=environ, capture_output=True, text=True
        )

        assert done.returncode == 0, done.stderr

    def test_serves_applies_webhooks_and_ends_by_sigterm(self, environment, processes):
        ports, honcho = processes
        started = honcho.children(recursive=True)
        user, _, token = create_member(create_tenant())
        first, second = (f"http://{HOST}:{port}" for port in ports)

        path = f"/v1/users/{user.id}/meta_data"
        bearer = {"Authorization": f"Bearer {token}"}
        patched = httpx.patch(first + path, headers=bearer, json={"patches": {"a": 1}})
        posted = post_event(first, environment)
        tenants = seen_by(second)
        honcho.terminate()
        _, alive = psutil.wait_procs([honcho, *started], timeout=30)

        assert patched.json()["data"]["meta_data"] == {"a": 1}
        assert posted.json()["status"] == "accepted"
        assert [tenant["name"] for tenant in tenants] == ["Procfile Inc"]
        assert alive == []
        assert (
            len(started) >= 12
        )  # eight, and a worker of gunicorn's in each web and stream process


def post_event(base: str, environment: dict[str, str]) -> httpx.Response:
    """A signed event of an organization that nobody knows yet."""
    secrets = dict(pair.split(":", 1) for pair in environment["IDP_WEBHOOK_SECRETS"].split())
    body = {
        "type": "organization.created",
        "timestamp": "2026-01-05T09:45:05.123Z",
        "data": {"id": "org_procfile", "name": "Procfile Inc"},
    }
    raw = json.dumps(body).encode()
    secret = secrets["standard_webhooks"]
    signed = sign("standard_webhooks", secret, raw, time.time(), message_id="msg_procfile")
    headers = {"Content-Type": "application/json", **signed.headers}
    return httpx.post(f"{base}/webhooks/idp", content=signed.body, headers=headers)


def seen_by(base: str) -> list[dict]:
    """The event's tenant, once a worker has made it."""
    headers = {"Authorization": f"Bearer {platform_token()}"}
    found: list[dict] = []

    def look() -> list[dict]:
        answer = httpx.get(f"{base}/v1/tenants?limit=100", headers=headers, timeout=10)
        found[:] = [row for row in answer.json()["data"] if row["idp_org_id"] == "org_procfile"]
        return found

    wait_until(look)
    return found

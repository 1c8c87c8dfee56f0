"""Other people's checks of SCIM servers, against a running service, and its memory after them."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import psutil
import pytest

from tests.factories import create_member, create_tenant
from tests.running.serving import HOST, answers, web_server
from tests.scim.directory import BASE, create_connection

SCRIPTS = Path(sys.executable).parent
MAX_MEMORY = 165 * 1024 * 1024  # bytes of a process after its first request below /scim
# Lifecycles of resource types of draft-abbey-scim-agent-extension, which the service does not have.
DRAFTS = {
    "Agent CRUD Lifecycle", "AgenticApplication CRUD Lifecycle", "Agent Rapid Lifecycle",
}  # fmt: skip


@pytest.fixture(scope="module")
def server(app, environment, tmp_path_factory):
    with web_server(environment, tmp_path_factory.mktemp("web"), workers=1) as running:
        yield running


@pytest.fixture
def token(server):
    """A connection's, with which the process has loaded SCIM's models: these clients wait only 5 s."""
    tenant = create_tenant()
    create_member(tenant, role="owner")
    _, token = create_connection(tenant)
    assert answers(server[0], f"{BASE}/Users", {"Authorization": f"Bearer {token}"}) == 200
    return token


def run(program, *words):
    command = [str(SCRIPTS / program), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_scim2_finds_no_error(server, token):
    url = f"http://{HOST}:{server[0]}{BASE}"

    result = run("scim2", "--url", url, "--header", f"Authorization: Bearer {token}", "test")

    lines = [line for line in result.stdout.splitlines() if line and not line.startswith(" ")]
    verdicts = Counter(line.split()[0] for line in lines[1:])
    assert verdicts.keys() == {"SUCCESS"}, result.stdout + result.stderr
    assert verdicts["SUCCESS"] > 100
    assert result.returncode == 0
    (worker,) = psutil.Process(server[1].pid).children()
    assert worker.memory_info().rss < MAX_MEMORY


def test_scim_sanity_finds_no_error(server, token):
    url = f"http://{HOST}:{server[0]}{BASE}"
    options = ("--token", token, "--i-accept-side-effects", "--json-output")

    result = run("scim-sanity", "probe", url, *options)

    assert result.returncode == 0, result.stdout
    report = json.loads(result.stdout)
    skipped = {one["name"] for one in report["results"] if one["status"] == "skip"}
    assert skipped == DRAFTS
    assert report["summary"] == {
        "total": 31,
        "passed": 28,
        "failed": 0,
        "warnings": 0,
        "skipped": len(DRAFTS),
        "errors": 0,
    }

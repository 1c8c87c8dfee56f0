"""`flask dev` as a newcomer starts it, the examples of the documentation against it, page by page,
and its end.
"""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from tests.dev.engines.test_sharing import eventually, processes_of, temporary_folder
from tests.dev.running import READY_SECONDS, Dev, environment, flask, is_alive, running_dev
from tests.docs.pages import PAGES, PROJECT, Block, blocks, name_of
from tests.npm import install_packages
from tests.ports import free_port
from tests.running.serving import program

RUN_ELSEWHERE = {
    "python3 -m venv": "this test runs `flask dev`",
    ".venv/bin/python -m pytest": "runs this test",
    "PGOPTIONS=": "tests/running/test_backup.py",
    "pg_restore": "tests/running/test_backup.py",
    "pg_basebackup": "tests/running/test_backup.py",
    "PGDATA=": "tests/running/test_backup.py",
    "flagd start": "tests/flags/test_flagd.py",
}
"""Beginnings of blocks, and what runs them instead."""
CLIENTS = PROJECT / "docs" / "guides" / "clients.md"  # tests/clients runs it


def examples(page: Path) -> list[Block]:
    """The blocks of a page that are run."""
    return [
        block
        for block in blocks(page)
        if block.language in {"sh", "python", "ts"}
        and not block.code.startswith(tuple(RUN_ELSEWHERE))
    ]


@pytest.fixture(scope="module")
def dev() -> Iterator[Dev]:
    for name in ("bash", "curl", "openssl"):
        program(name)
    with temporary_folder() as folder, running_dev(folder, free_port()) as dev:
        yield dev


@pytest.fixture(scope="module")
def checkout(dev) -> tuple[Path, dict[str, str]]:
    """A folder like one in which `flask dev` runs, and the environment of a second terminal."""
    work = dev.folder.parent / "checkout"
    work.mkdir()
    work.joinpath("instance").symlink_to(dev.folder)
    work.joinpath(".curlrc").write_text("fail-with-body\n")
    return (
        work,
        {
            **environment(dev.folder),
            **dev.variables,
            "API_KEY": dev.variables["PLATFORM_TOKEN"],
            "CURL_HOME": str(work),
            "FLASK_APP": str(PROJECT / "wsgi.py"),
            "FLASK_SEED_PORT": str(urlsplit(dev.url).port),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        },
    )


def workers(dev: Dev) -> list[psutil.Process]:
    """The worker, and then its child: RQ's scheduler."""
    found = []
    for process in dev.service():
        with suppress(psutil.NoSuchProcess):
            if process.cmdline()[-2:] == ["jobs", "worker"]:
                found.append(process)
    return found


def shown(dev: Dev, name: str) -> str:
    """What a line of the start says."""
    return re.search(rf"^{name} +(.+)$", dev.printed, re.MULTILINE)[1]


class TestRunning:
    def test_prints_eight_lines_with_addresses_that_answer(self, dev):
        link = shown(dev, "Console").split()[0]
        answers = [
            httpx.get(address, follow_redirects=True).status_code
            for address in (shown(dev, "Documentation"), link)
        ]

        assert len(dev.printed.splitlines()) == 8
        assert shown(dev, "API") == f"{dev.url}/v1"
        assert link.startswith(f"{dev.url}/console/sign-in/link?token=")
        assert "another link: flask console link --superadmin" in dev.printed
        assert str(dev.folder) in shown(dev, "Ready")
        assert answers == [200, 200]

    def test_the_printed_commands_work_as_pasted(self, dev):
        tokens, request = shown(dev, "Tokens").partition(" in ")[0], shown(dev, "First request")
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

        done = subprocess.run(
            ["bash", "-c", f"{tokens}\n{request}"],
            cwd=PROJECT,
            env={**environment(dev.folder), "PATH": path},
            capture_output=True,
            text=True,
        )

        assert len(json.loads(done.stdout)["data"]) == 5
        assert done.stderr == ""

    def test_the_doctor_finds_it_healthy(self, dev):
        """Once the processes run that start after the web process."""
        examined = []

        def is_healthy() -> bool:
            examined.append(flask(dev.folder, "doctor", "--json"))
            return examined[-1].returncode == 0

        assert eventually(is_healthy, seconds=60), examined[-1].stdout
        assert [one for one in json.loads(examined[-1].stdout) if not one["ok"]] == []

    def test_a_test_event_is_sent_to_this_port(self, dev):
        sent = flask(dev.folder, "webhooks", "send-test", "workos", "--json")

        assert json.loads(sent.stdout)["status"] == 200


def script(page: Path, work: Path, packages: Path | None) -> str:
    """One script of all blocks of a page, which say their place on standard error."""
    parts = []
    for number, block in enumerate(examples(page)):
        parts.append(f"echo '# {block.place}' >&2")
        if block.language == "sh":
            parts.append(block.code)
            continue
        suffix, folder = ("py", work) if block.language == "python" else ("mjs", packages)
        file = Path(folder, f"{page.stem}-{number}.{suffix}")
        file.write_text(block.code)
        parts.append(f"{'python' if suffix == 'py' else 'node'} {file}")
    return "\n".join(parts)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if examples(page) and page != CLIENTS], ids=name_of
)
def test_the_examples_of_a_page_run(checkout, page, tmp_path, request):
    work, environ = checkout
    packages = None
    if any(block.language == "ts" for block in examples(page)):
        _, installed = install_packages(PROJECT / "tests", request.config.cache)
        packages = tmp_path / "packages"
        packages.mkdir()
        packages.joinpath("node_modules").symlink_to(installed / "node_modules")
    command = ["bash", "-euo", "pipefail", "-c", script(page, work, packages)]

    done = subprocess.run(
        command, cwd=work, env=environ, capture_output=True, text=True, timeout=READY_SECONDS
    )

    assert done.returncode == 0, done.stdout[-2000:] + done.stderr


class TestEnding:
    def test_all_end_with_a_killed_one_and_start_again_with_their_data(self, dev):
        """The last test that uses ``dev``."""
        owner = {"Authorization": f"Bearer {dev.variables['OWNER_TOKEN']}"}
        user = f"{dev.url}/v1/users/{dev.variables['USER_ID']}"
        httpx.patch(f"{user}/meta_data", headers=owner, json={"patches": {"nickname": "Ada"}})
        killed = dev.service()

        dev.end(signal.SIGKILL)

        assert eventually(lambda: not any(map(is_alive, killed)), seconds=60)
        with running_dev(dev.folder, urlsplit(dev.url).port, "--quiet") as again:
            stored = httpx.get(user, headers=owner).json()["data"]
            printed = again.log.read_text()
            stopped = again.service()
            # Also while a child of the worker lives, RQ's scheduler.
            assert eventually(lambda: len(workers(again)) > 1, seconds=60)
            workers(again)[0].kill()
            code = again.process.wait(60)

        assert stored["meta_data"]["nickname"] == "Ada"
        assert (code, printed) == (1, "")
        assert "A process did not start or has ended" in again.log.read_text()
        assert len(killed) > 6
        assert not any(map(is_alive, stopped))
        assert processes_of(dev.folder) == []

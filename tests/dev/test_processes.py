"""`flask dev` as a newcomer starts it, in a folder of its own."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from app.dev import processes
from app.dev.engines.instance import DevError
from app.dev.processes import PROJECT
from tests.dev.engines.test_sharing import eventually, processes_of, temporary_folder
from tests.dev.running import FLASK, Dev, environment, flask, running_dev
from tests.ports import free_port


def commands_of(parent: psutil.Process) -> list[list[str]]:
    """The command lines of a process's children."""
    found = []
    for child in parent.children():
        with suppress(psutil.Error):
            found.append(child.cmdline())
    return found


def is_alive(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


@pytest.fixture(scope="module")
def dev() -> Iterator[Dev]:
    with temporary_folder() as folder, running_dev(folder, free_port()) as dev:
        yield dev


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


class TestEnding:
    def test_all_end_with_a_killed_one_and_start_again_with_their_data(self, dev):
        """No test after this one uses ``dev``."""
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

    @pytest.mark.parametrize(
        ("moment", "how", "code"),
        [("initdb", signal.SIGTERM, 143), ("honcho", signal.SIGINT, 0)],
    )
    def test_while_it_starts_leaves_nothing(self, moment, how, code):
        with temporary_folder() as folder:
            dev = subprocess.Popen(
                [*FLASK, "dev", "--port", str(free_port())],
                cwd=PROJECT,
                env=environment(folder),
                stderr=subprocess.DEVNULL,
            )
            process = psutil.Process(dev.pid)
            assert eventually(lambda: any(moment in " ".join(c) for c in commands_of(process)), 60)
            started = process.children(recursive=True)

            dev.send_signal(how)

            assert dev.wait(60) == code
            assert eventually(lambda: not any(map(is_alive, started)))
            assert processes_of(folder) == []


class TestFaults:
    def test_a_taken_port_is_one_sentence(self, monkeypatch):
        monkeypatch.setattr(processes, "PORT_SECONDS", 0.5)

        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(DevError, match=f"Port {port} cannot be used"):
                processes.check_port(port)

    def test_a_broken_instance_folder_is_one_sentence(self, tmp_path):
        broken = tmp_path / "instance"
        broken.write_text("")

        ended = flask(broken, "db", "upgrade")

        assert ended.returncode == 1
        assert re.search(r"^Error: The instance folder .* cannot be used", ended.stderr, re.M)
        assert "Traceback" not in ended.stderr

"""`flask dev` as a newcomer starts it, in a folder of its own."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import psutil
import pytest

from app.dev.processes import PROJECT
from tests.dev.engines.test_sharing import eventually, processes_of, temporary_folder
from tests.ports import free_port

FLASK = [sys.executable, "-m", "flask", "--app", "wsgi"]
CONFIGURED = ("DATABASE_URL", "MIGRATION_DATABASE_URL", "REDIS_URL", "INSTANCE_DIR")
READY_SECONDS = 120


def environment(folder: Path) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if name not in CONFIGURED}
    return {**plain, "INSTANCE_DIR": str(folder)}


def flask(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run another command of the same folder."""
    return subprocess.run(
        [*FLASK, *words],
        cwd=PROJECT,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=READY_SECONDS,
    )


class Dev:
    """A running `flask dev`; ``printed`` is what it has said on standard output."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.url = f"http://127.0.0.1:{port}"
        self._log = (folder.parent / "dev.log").open("ab")
        self.process = subprocess.Popen(
            [*FLASK, "dev", "--port", str(port)],
            cwd=PROJECT,
            env=environment(folder),
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self.printed = ""
        for line in self.process.stdout:
            self.printed += line
            if line.startswith("Ctrl-C"):
                return
        pytest.fail((folder.parent / "dev.log").read_text())

    @property
    def curl_lines(self) -> list[str]:
        return [line for line in self.printed.splitlines() if line.startswith("curl ")]

    def service(self) -> list[psutil.Process]:
        """The processes it has started, but for PostgreSQL and Redis."""
        started = psutil.Process(self.process.pid).children(recursive=True)
        return [process for process in started if process not in processes_of(self.folder)]

    def end(self, how: signal.Signals) -> int:
        self.process.send_signal(how)
        code = self.process.wait(60)
        self.process.stdout.close()
        self._log.close()
        return code


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


@contextmanager
def running_dev(folder: Path, port: int) -> Iterator[Dev]:
    dev = Dev(folder, port)
    try:
        yield dev
    finally:
        if dev.process.poll() is None:
            dev.end(signal.SIGTERM)


@pytest.fixture(scope="module")
def dev() -> Iterator[Dev]:
    with temporary_folder() as folder, running_dev(folder, free_port()) as dev:
        yield dev


class TestRunning:
    def test_prints_where_it_is_and_tokens_that_work(self, dev):
        tokens = re.findall(r"^  (eyJ\S+)$", dev.printed, re.MULTILINE)
        answers = [
            httpx.get(f"{dev.url}/v1/users", headers={"Authorization": f"Bearer {token}"})
            for token in tokens
        ]

        assert dev.url in dev.printed
        assert f"{dev.url}/docs" in dev.printed
        assert [answer.status_code for answer in answers] == [200, 200, 200]

    def test_the_curl_lines_work_as_pasted(self, dev):
        answers = [
            subprocess.run(shlex.split(line), capture_output=True, text=True, check=True).stdout
            for line in dev.curl_lines
        ]

        assert len(answers) == 3
        assert all("data" in json.loads(answer) for answer in answers)

    def test_says_only_its_result_on_standard_output(self, dev):
        assert [line for line in dev.printed.splitlines() if line.startswith(("{", "["))] == []

    def test_other_commands_talk_to_the_same_engines(self, dev):
        token = flask(dev.folder, "tokens", "issue", "--user", "owner@acme.example").stdout.strip()
        answer = httpx.get(f"{dev.url}/v1/users", headers={"Authorization": f"Bearer {token}"})

        assert answer.status_code == 200
        assert {user["email"] for user in answer.json()["data"]} >= {"owner@acme.example"}

    def test_the_doctor_finds_it_healthy(self, dev):
        examined = flask(dev.folder, "doctor", "--json")

        faults = [finding for finding in json.loads(examined.stdout) if not finding["ok"]]
        assert faults == []
        assert examined.returncode == 0

    def test_a_taken_port_is_one_sentence(self, dev):
        port = dev.url.rpartition(":")[2]

        second = flask(dev.folder, "dev", "--port", port)

        assert second.returncode == 1
        assert f"Error: Port {port} cannot be used" in second.stderr
        assert "Traceback" not in second.stderr


class TestEnding:
    def test_ends_and_starts_again_whatever_ended_it(self):
        port = free_port()
        with temporary_folder() as folder:
            with running_dev(folder, port) as dev:
                change = shlex.split(dev.curl_lines[1])
                subprocess.run(change, capture_output=True, check=True)
                killed = dev.service()

                dev.end(signal.SIGKILL)

                assert eventually(lambda: not any(map(is_alive, killed)), seconds=60)
            with running_dev(folder, port) as dev:
                shown = subprocess.run(
                    shlex.split(dev.curl_lines[0]), capture_output=True, text=True, check=True
                )
                stopped = dev.service()
                code = dev.end(signal.SIGINT)

            users = json.loads(shown.stdout)["data"]
            assert any(user["meta_data"].get("nickname") == "Ada" for user in users)
            assert code == 0
            assert len(killed) > 6
            assert not any(map(is_alive, stopped))
            assert processes_of(folder) == []

    @pytest.mark.parametrize(("moment", "code"), [("initdb", 143), ("honcho", 0)])
    def test_sigterm_while_it_starts_leaves_nothing(self, moment, code):
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

            dev.terminate()

            assert dev.wait(60) == code
            assert eventually(lambda: not any(map(is_alive, started)))
            assert processes_of(folder) == []


class TestFaults:
    @pytest.mark.parametrize("command", [["dev"], ["seed", "--json"], ["db", "upgrade"]])
    def test_a_broken_instance_folder_is_one_sentence(self, tmp_path, command):
        broken = tmp_path / "instance"
        broken.write_text("")

        ended = flask(broken, *command)

        assert ended.returncode == 1
        assert re.search(r"^Error: The instance folder .* cannot be used", ended.stderr, re.M)
        assert "Traceback" not in ended.stderr

    def test_help_needs_no_engines(self, tmp_path):
        shown = flask(tmp_path / "instance", "--help")

        assert "dev " in shown.stdout
        assert not (tmp_path / "instance" / "postgres").exists()

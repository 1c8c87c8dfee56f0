"""`flask dev` that is ended while it starts, or cannot start."""

import re
import signal
import socket
import subprocess
from contextlib import suppress

import psutil
import pytest

from app.dev import processes
from app.dev.engines.instance import DevError
from app.dev.processes import PROJECT
from tests.dev.engines.test_sharing import eventually, processes_of, temporary_folder
from tests.dev.running import FLASK, environment, flask, is_alive
from tests.ports import free_port


def commands_of(parent: psutil.Process) -> list[list[str]]:
    """The command lines of a process's children."""
    found = []
    for child in parent.children():
        with suppress(psutil.Error):
            found.append(child.cmdline())
    return found


class TestEnding:
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

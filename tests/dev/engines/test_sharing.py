"""The private servers, started, shared and stopped for real, as whoever runs the tests."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psutil
import psycopg2
import pytest
import redis

from app.dev.engines import postgres, redis_server
from app.dev.engines.instance import APPLICATION_ROLE, DATABASE, OWNER_ROLE, DevError, Instance
from app.dev.engines.sharing import engines
from app.dev.processes import PROJECT

USER = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
from app.dev.engines.sharing import engines
with engines(sys.argv[1], durable=False):
    print("ready", flush=True)
    time.sleep(float(sys.argv[2]))
"""


@contextmanager
def temporary_folder() -> Iterator[Path]:
    top = Path(tempfile.mkdtemp(prefix="engines-"))
    top.chmod(0o755)
    yield top / "instance"
    shutil.rmtree(top)


@pytest.fixture
def new_folder() -> Iterator[Path]:
    """An instance folder that is not there yet, at a short path that everybody may enter."""
    with temporary_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def used_folder() -> Iterator[Path]:
    """An instance folder whose engines have run before."""
    with temporary_folder() as folder:
        with engines(folder, durable=False):
            pass
        yield folder


@pytest.fixture
def folder(used_folder: Path, new_folder: Path) -> Path:
    """An instance folder with data; a copy, since making it takes longer."""
    subprocess.run(["cp", "-a", str(used_folder), str(new_folder)], check=True)
    return new_folder


@pytest.fixture(scope="module")
def running() -> Iterator[Path]:
    """The folder of engines that run."""
    with temporary_folder() as folder, engines(folder, durable=False):
        yield folder


def query(folder: Path, statement: str, role: str = OWNER_ROLE) -> list[tuple]:
    url = Instance.at(folder).database_url(role).replace("+psycopg2", "")
    with closing(psycopg2.connect(url)) as session, session, session.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []


def processes_of(folder: Path, argument: str = "") -> list[psutil.Process]:
    """The processes of an instance's servers; with ``argument``, those that were started with it."""
    instance = Instance.at(folder)
    marks = (instance.tag, str(instance.redis_socket))
    found = []
    for process in psutil.process_iter():
        try:
            command = " ".join(process.cmdline())
        except psutil.Error:
            continue
        if argument in command and any(mark in command for mark in marks):
            found.append(process)
    return found


def eventually(condition: Callable[[], bool], seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@contextmanager
def another_user(folder: Path, seconds: float = 60) -> Iterator[subprocess.Popen[str]]:
    """Another process that uses the engines."""
    user = subprocess.Popen(
        [sys.executable, "-c", USER, str(folder), str(seconds)],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield user
    finally:
        user.kill()
        user.communicate()


class TestRunning:
    def test_the_roles_are_plain(self, running):
        roles = query(
            running, "SELECT rolname, rolsuper, rolbypassrls, rolcreaterole FROM pg_roles"
        )
        owners = query(running, "SELECT datname, datdba::regrole::text FROM pg_database")
        connected_as = query(running, "SELECT current_user", APPLICATION_ROLE)

        assert (OWNER_ROLE, False, False, False) in roles
        assert (APPLICATION_ROLE, False, False, False) in roles
        assert (DATABASE, OWNER_ROLE) in owners
        assert connected_as == [(APPLICATION_ROLE,)]

    def test_no_network_port_is_opened(self, running):
        listen = query(running, "SHOW listen_addresses")
        port = redis.Redis.from_url(Instance.at(running).redis_url).config_get("port")

        assert listen == [("",)]
        assert port == {"port": "0"}

    def test_only_their_user_reaches_the_sockets(self, running):
        mode = Instance.at(running).sockets.stat().st_mode & 0o777

        assert mode == 0o700

    def test_a_folder_that_only_its_owner_may_enter_will_do(self, tmp_path):
        tmp_path.chmod(0o700)

        with engines(tmp_path / "instance", durable=False):
            assert query(tmp_path / "instance", "SELECT 1") == [(1,)]

    def test_a_path_too_odd_for_a_socket_will_do(self, new_folder):
        odd = new_folder / f"with space, and comma {'a' * 120}"

        with engines(odd, durable=False):
            assert query(odd, "SELECT 1") == [(1,)]
            assert not Instance.at(odd).sockets.is_relative_to(odd)

        Instance.at(odd).sockets.rmdir()


class TestSharing:
    def test_they_run_until_the_last_user_leaves(self, folder):
        with another_user(folder) as user:
            user.stdout.readline()

            with engines(folder, durable=False):
                user.send_signal(signal.SIGINT)
                user.wait()

                assert query(folder, "SELECT 1") == [(1,)]

        assert processes_of(folder) == []

    def test_users_who_come_at_once_get_the_same_engines(self, folder):
        with another_user(folder) as one, another_user(folder) as other:
            lines = [user.stdout.readline() for user in (one, other)]
            servers = processes_of(folder, " -D ")
            for user in (one, other):
                user.send_signal(signal.SIGINT)
            for user in (one, other):
                user.wait(30)

        assert lines == ["ready\n"] * 2
        assert len(servers) == 1
        assert processes_of(folder) == []

    def test_one_who_comes_while_they_stop_gets_new_ones(self, folder):
        with another_user(folder, seconds=0) as user:
            user.stdout.readline()

            with engines(folder, durable=False):
                assert query(folder, "SELECT 1") == [(1,)]


class TestKilled:
    def test_a_killed_users_servers_are_used_and_stopped_by_the_next_one(self, folder):
        with another_user(folder) as user:
            user.stdout.readline()
            query(folder, "CREATE TABLE kept AS SELECT 42 AS answer")
            user.kill()
            user.wait()
        left = processes_of(folder)

        with engines(folder, durable=False) as servers:
            assert query(folder, "SELECT answer FROM kept") == [(42,)]
            assert {server.process() for server in servers} <= set(left)

        assert processes_of(folder) == []

    def test_a_user_killed_while_it_creates_the_data_is_no_obstacle(self, new_folder):
        with another_user(new_folder) as user:
            assert eventually(lambda: any(new_folder.glob("postgres.new-*/data/*")))
            user.kill()
            user.wait()

        for _ in range(2):
            with engines(new_folder, durable=False):
                assert query(new_folder, "SELECT 1") == [(1,)]
        assert list(new_folder.glob("postgres.new-*")) == []

        assert processes_of(new_folder) == []

    def test_killed_servers_start_again_with_their_data(self, folder):
        with engines(folder) as servers:
            query(folder, "CREATE TABLE kept AS SELECT 42 AS answer")
            for server in servers:
                server.process().kill()

            assert eventually(lambda: all(server.process() is None for server in servers))

            with engines(folder):
                assert query(folder, "SELECT answer FROM kept") == [(42,)]
                assert all(server.answers() for server in servers)

        assert processes_of(folder) == []

    def test_a_lock_file_that_names_another_living_process_is_no_obstacle(self, folder):
        with engines(folder):
            query(folder, "CREATE TABLE kept AS SELECT 42 AS answer")
            lock = folder / "postgres" / "postmaster.pid"
            stale = lock.read_text().splitlines()
        lock.write_text("\n".join([str(os.getpid()), *stale[1:]]) + "\n")

        with engines(folder):
            assert query(folder, "SELECT answer FROM kept") == [(42,)]


class TestFaults:
    def test_a_file_in_the_folders_place(self, new_folder):
        new_folder.write_text("")

        with pytest.raises(DevError, match=r"instance folder .* cannot be used: .*INSTANCE_DIR"):
            engines(new_folder).__enter__()

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
    def test_a_folder_that_cannot_be_written(self, new_folder):
        new_folder.mkdir(mode=0o500)

        with pytest.raises(DevError, match="cannot be used: Permission denied"):
            engines(new_folder).__enter__()

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
    def test_sockets_in_somebody_elses_folder(self, new_folder):
        sockets = Instance.at(new_folder).sockets
        sockets.mkdir(parents=True)
        os.chown(sockets, 12345, 12345)

        with pytest.raises(DevError, match="belongs to another user"):
            engines(new_folder).__enter__()

    def test_data_of_another_version(self, folder):
        (folder / "postgres" / "PG_VERSION").write_text("9.6\n")

        with pytest.raises(
            DevError, match=r"PostgreSQL did not start: .*incompatible .*postgres.log"
        ):
            engines(folder, durable=False).__enter__()
        assert processes_of(folder) == []

    @pytest.mark.parametrize(
        ("find", "variable"),
        [
            (lambda: postgres.program("postgres"), "DATABASE_URL"),
            (redis_server.server_program, "REDIS_URL"),
        ],
    )
    def test_a_package_that_is_not_installed(self, monkeypatch, find, variable):
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        monkeypatch.setenv("PATH", "")

        with pytest.raises(DevError, match=rf"is missing: .*requirements.txt.*{variable}"):
            find()

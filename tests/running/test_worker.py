"""The web server's worker, with a listening socket of its own and a small application."""

from __future__ import annotations

import errno
import http.client
import logging
import os
import select
import socket
import tempfile
import threading
import time
from contextlib import suppress
from email.utils import formatdate, mktime_tz, parsedate_tz
from ipaddress import ip_network

import pytest
from gunicorn import util
from gunicorn.config import Config
from gunicorn.http import message
from gunicorn.workers import gthread

from app.core.http import server as module
from app.core.http.server import Worker
from tests.running.serving import HOST, wait_until

pytestmark = pytest.mark.skipif(not hasattr(select, "epoll"), reason="Linux has epoll")

LONG = 3600.0
SHORT = 0.2
REQUEST = b"GET /%s HTTP/1.1\r\nHost: a\r\n\r\n"


class Program:
    """A WSGI application; ``/wait`` answers when it is released, ``/exit`` not at all."""

    def __init__(self) -> None:
        self.waiting = threading.Semaphore(0)
        self.released = threading.Semaphore(0)
        self.policy: int | None = None  # of the scheduler

    def __call__(self, environ, start_response):
        self.policy = os.sched_getscheduler(0)
        if environ["PATH_INFO"] == "/wait":
            self.waiting.release()
            self.released.acquire(timeout=60)
        if environ["PATH_INFO"] == "/exit":
            raise SystemExit
        if environ["PATH_INFO"] == "/nothing":
            start_response("204 No Content", [])
            return []
        start_response("200 OK", [("Content-Length", "2")])
        if environ["PATH_INFO"] == "/file":
            file = tempfile.TemporaryFile()  # noqa: SIM115 - the server closes it
            file.write(b"ok")
            file.seek(0)
            return environ["wsgi.file_wrapper"](file)
        return [b"ok"]


class Running:
    """A worker that runs in this process."""

    def __init__(self, threads: int, most: int) -> None:
        config = Config()
        for name, value in {
            "threads": threads,
            "worker_connections": most,
            "keepalive": 5,
            "graceful_timeout": 20,
        }.items():
            config.set(name, value)
        self.listener = socket.create_server((HOST, 0))
        self.program = Program()
        quiet = logging.Logger("quiet")
        quiet.access = lambda *_: None
        self.worker = Worker(1, os.getppid(), [self.listener], None, 30, config, quiet)
        self.worker.PIPE = os.pipe()
        self.worker.poller = module.selectors.DefaultSelector()
        self.worker.wsgi = self.program
        self.thread = threading.Thread(target=self.worker.run, daemon=True)
        self.thread.start()
        self.clients: list[socket.socket] = []

    def client(self, *paths: str) -> socket.socket:
        """A connection that has asked for ``paths``."""
        client = socket.create_connection(self.listener.getsockname(), 20)
        self.clients.append(client)
        for path in paths:
            client.sendall(REQUEST % path.encode())
        return client

    def busy(self, count: int = 1) -> list[socket.socket]:
        """So many connections, each with a thread at work for it."""
        clients = [self.client("wait") for _ in range(count)]
        for _ in clients:
            assert self.program.waiting.acquire(timeout=20)
        return clients

    def stop(self) -> None:
        self.worker.handle_exit(15, None)
        os.write(self.worker.PIPE[1], b"\0")

    def end(self) -> None:
        self.program.released.release(100)
        for client in self.clients:
            client.close()
        self.stop()
        self.thread.join(30)
        self.worker.tmp.close()
        assert not self.thread.is_alive()


@pytest.fixture
def start():
    """Start a worker of ``threads`` for at most ``most`` connections."""
    started: list[Running] = []

    def begin(threads: int = 2, most: int = 50) -> Running:
        started.append(Running(threads, most))
        return started[-1]

    yield begin
    for one in started:
        one.end()


def answer(client: socket.socket) -> http.client.HTTPResponse:
    """The next answer, which must come whole."""
    found = http.client.HTTPResponse(client)
    found.begin()
    assert (found.status, found.read()) == (200, b"ok")
    return found


def is_over(client: socket.socket) -> bool:
    """Whether the server has closed, without a reset."""
    return client.recv(1) == b""


class TestWhoTakesAConnection:
    @pytest.fixture(autouse=True)
    def long_pause(self, monkeypatch):
        monkeypatch.setattr(module, "PAUSE", LONG)

    def test_a_worker_with_all_threads_at_work_leaves_it_to_others(self, start):
        running = start(threads=2)
        running.busy(2)

        running.client("")

        wait_until(lambda: not running.worker.answered.is_set())  # it has seen it
        other, _ = running.listener.accept()
        other.close()

    def test_until_a_thread_is_free(self, start):
        running = start(threads=2)
        running.busy(2)
        client = running.client("")
        wait_until(lambda: not running.worker.answered.is_set())

        running.program.released.release()

        answer(client)

    def test_or_for_a_moment(self, start, monkeypatch):
        running = start(threads=1)
        running.busy()
        monkeypatch.setattr(module, "PAUSE", SHORT)
        client = running.client("")
        wait_until(lambda: len(running.worker.opened) == 2)

        running.program.released.release()

        answer(client)

    def test_those_that_only_stay_open_do_not_count(self, start):
        running = start(threads=1)
        for _ in range(3):
            answer(running.client(""))

        assert len(running.worker.opened) == 3

    def test_one_more_than_it_may_have_waits(self, start, monkeypatch):
        monkeypatch.setattr(module, "PAUSE", 0.01)
        running = start(threads=2, most=2)
        first, _ = running.client(""), running.client("")
        wait_until(lambda: len(running.worker.opened) == 2)
        third = running.client("")
        answer(first)

        first.close()

        answer(third)


class TestThreads:
    def test_do_not_push_what_runs_aside(self, start):
        running = start()
        answer(running.client(""))

        assert running.program.policy == os.SCHED_BATCH

    def test_answer_all_the_same_where_that_is_not_allowed(self, start, monkeypatch):
        def refuse(*_):
            raise PermissionError

        monkeypatch.setattr(os, "sched_setscheduler", refuse)
        running = start()
        answer(running.client(""))

        assert running.program.policy == os.SCHED_OTHER


class TestAnswers:
    def test_head_and_body_are_sent_together(self, start):
        client = start().client("")

        assert client.recv(4096).endswith(b"\r\n\r\nok")

    def test_a_head_alone_is_sent(self, start):
        client = start().client("nothing")

        assert client.recv(4096).startswith(b"HTTP/1.1 204")
        client.sendall(REQUEST % b"")
        answer(client)

    def test_the_head_comes_before_a_file(self, start):
        answer(start().client("file"))

    def test_one_that_the_server_refuses_is_whole(self, start):
        client = start().client()
        client.sendall(b"GET / HTTP/1.1\r\nno header\r\n\r\n")

        found = http.client.HTTPResponse(client)
        found.begin()
        assert (found.status, b"Bad Request" in found.read()) == (400, True)


class TestConnections:
    def test_requests_sent_together_are_all_answered(self, start):
        client = start(threads=1).client("", "", "")

        received = b""
        while received.count(b"\r\n\r\nok") < 3:
            more = client.recv(4096)
            assert more, received
            received += more

    def test_one_that_sends_nothing_holds_no_thread(self, start):
        running = start(threads=1)
        silent = running.client()

        answer(running.client(""))
        silent.sendall(REQUEST % b"")
        answer(silent)

    def test_one_that_sends_nothing_is_closed_in_time(self, start, monkeypatch):
        monkeypatch.setattr(module, "PATIENCE", SHORT)

        assert is_over(start().client())

    def test_one_that_asks_nothing_more_is_closed_in_time(self, start):
        running = start()
        running.worker.cfg.set("keepalive", 1)
        client = running.client("")
        answer(client)

        assert is_over(client)

    def test_one_whose_request_nobody_read_as_well(self, start):
        running = start()
        running.worker.cfg.set("keepalive", 1)
        client = running.client()
        client.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n")
        answer(client)
        client.sendall(b"ab")

        assert is_over(client)

    def test_one_that_waits_for_a_thread_is_not(self, start, monkeypatch):
        monkeypatch.setattr(module, "PATIENCE", SHORT)
        monkeypatch.setattr(module, "PAUSE", 0.01)
        running = start(threads=1)
        running.busy()
        client = running.client("")
        time.sleep(5 * SHORT + 1)  # it is looked at in between, at least each second

        running.program.released.release()

        answer(client)

    def test_requests_sent_together_do_not_keep_others_waiting(self, start, monkeypatch):
        monkeypatch.setattr(module, "PAUSE", 0.01)
        running = start(threads=1)
        greedy = running.client("wait", "wait")
        assert running.program.waiting.acquire(timeout=20)
        other = running.client("")
        wait_until(lambda: len(running.worker.keepalived_conns) == 1)
        time.sleep(SHORT)  # until it is waited for, too

        running.program.released.release()

        answer(other)
        running.program.released.release()
        answer(greedy)

    def test_an_answer_comes_whole_though_nobody_read_the_request(self, start):
        client = start().client()
        client.sendall(
            b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 9000\r\n\r\n"
        )
        client.sendall(b"x" * 4500)
        time.sleep(SHORT)
        client.sendall(b"x" * 4500)

        answer(client)
        assert is_over(client)

    def test_a_client_that_does_not_close_holds_no_thread(self, start, monkeypatch):
        monkeypatch.setattr(module, "LINGER", SHORT)
        running = start(threads=1)
        lazy = running.client()
        lazy.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert answer(lazy).getheader("Connection") == "close"

        answer(running.client(""))
        wait_until(lambda: len(running.worker.opened) == 1)

    def test_a_client_that_sends_on_is_closed_all_the_same(self, start, monkeypatch):
        monkeypatch.setattr(module, "LINGER", 1.0)
        running = start(threads=1)
        client = running.client()
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        wait_until(lambda: running.worker.parting)

        while running.worker.opened:
            with suppress(OSError):
                client.sendall(b"more")

    def test_a_client_that_sends_much_is_closed_at_once(self, start, monkeypatch):
        monkeypatch.setattr(module, "LINGER", LONG)
        monkeypatch.setattr(module, "MOST_DRAINED", 100)
        running = start(threads=1)
        client = running.client()
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        answer(client)

        client.sendall(b"x" * 101)

        wait_until(lambda: not running.worker.opened)

    def test_an_answer_does_not_wait_for_the_rest_of_the_request(self, start, monkeypatch):
        monkeypatch.setattr(gthread, "DEFAULT_WORKER_DATA_TIMEOUT", LONG)
        client = start(threads=1).client()
        client.sendall(b"POST /nothing HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc")

        assert client.recv(4096).startswith(b"HTTP/1.1 204")

    def test_too_many_of_them_end_nothing(self, start):
        running = start(threads=1)
        accept = running.worker.accept

        def refuse(_listener):
            running.worker.accept = accept
            raise OSError(errno.EMFILE, "Too many open files")

        running.worker.accept = refuse

        answer(running.client(""))
        assert running.worker.accept is accept

    def test_a_thread_outlives_a_fault_of_its_own(self, start):
        running = start(threads=1)
        end = running.worker._part

        def fail(conn):
            running.worker._part = end
            raise LookupError

        running.worker._part = fail
        running.client().sendall(b"GET / HTTP/1.0\r\n\r\n")
        wait_until(lambda: running.worker._part is end)

        answer(running.client(""))

    def test_a_thread_outlives_a_program_that_exits(self, start):
        running = start(threads=1)

        assert is_over(running.client("exit"))
        answer(running.client(""))


class TestStopping:
    def test_what_is_at_work_or_in_the_queue_is_answered(self, start):
        running = start(threads=1)
        (client,) = running.busy()
        queued = running.client("")

        running.stop()
        wait_until(lambda: running.listener.fileno() == -1)
        running.program.released.release()

        answer(client)
        assert answer(queued).getheader("Connection") == "close"
        running.thread.join(20)
        assert not running.thread.is_alive()

    def test_however_long_it_waits_for_a_thread(self, start, monkeypatch):
        monkeypatch.setattr(module, "LINGER", SHORT)
        running = start(threads=1)
        (client,) = running.busy()
        queued = running.client("")

        running.stop()
        wait_until(lambda: running.listener.fileno() == -1)
        time.sleep(5 * SHORT)
        running.program.released.release()

        answer(client)
        answer(queued)

    def test_the_whole_queue_is_though_other_connections_end_meanwhile(self, start, monkeypatch):
        monkeypatch.setattr(module, "PAUSE", 1.0)
        running = start(threads=1)
        worker, accept = running.worker, running.worker.accept
        for _ in range(6):
            answer(running.client(""))
        running.busy()

        def accept_and_end_another(listener):
            before = worker.nr_conns
            accept(listener)
            if worker.nr_conns > before:
                number = next(iter(worker.keepalived_conns))
                worker._close(worker.keepalived_conns.pop(number))

        worker.accept = accept_and_end_another
        queued = [running.client("") for _ in range(6)]
        running.stop()
        wait_until(lambda: running.listener.fileno() == -1)
        running.program.released.release()

        for client in queued:
            answer(client)

    def test_a_connection_that_was_kept_open_may_ask_once_more(self, start):
        running = start()
        client = running.client("")
        answer(client)

        running.stop()
        wait_until(lambda: running.listener.fileno() == -1)
        client.sendall(REQUEST % b"")

        assert answer(client).getheader("Connection") == "close"

    def test_one_that_says_nothing_is_not_waited_for_long(self, start, monkeypatch):
        monkeypatch.setattr(module, "LINGER", SHORT)
        running = start()
        running.client("")
        wait_until(lambda: running.worker.opened)

        running.stop()

        running.thread.join(4)
        assert not running.thread.is_alive()


class TestRemembered:
    """What gunicorn is spared to find out for each request."""

    @pytest.fixture(autouse=True)
    def _remembering(self):
        module.remember()

    def test_dates_are_those_of_their_second(self):
        moments = [0, 1.9, 2, 1_790_000_000.5, 1_790_000_001]

        spelt = [util.http_date(moment) for moment in moments]

        assert spelt == [formatdate(int(moment), usegmt=True) for moment in moments]
        assert abs(mktime_tz(parsedate_tz(util.http_date())) - time.time()) < 2

    def test_proxies_are_those_that_are_configured(self):
        lists = [["127.0.0.1", "10.0.0.0/8"], ["10.1.2.3"], ["*"], []]
        addresses = ["127.0.0.1", "10.1.2.3", "192.0.2.1", "none"]

        def found():
            return [
                [message._ip_in_allow_list(one, allowed, networks(allowed)) for one in addresses]
                for allowed in lists
            ]

        expected = [
            [True, True, False, False],
            [False, True, False, False],
            [True] * 4,
            [False] * 4,
        ]
        assert [found(), found()] == [expected] * 2

    def test_no_more_addresses_than_there_is_room_for(self, monkeypatch):
        monkeypatch.setattr(module, "MOST_KNOWN", 2)
        for number in [*range(9), *range(9)]:
            address = f"10.0.0.{number}"
            assert message._ip_in_allow_list(address, ["10.0.0.5"], networks(["10.0.0.5"])) == (
                number == 5
            )


def networks(allowed):
    return [ip_network(one) for one in allowed if one != "*"]

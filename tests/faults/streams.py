"""The stream process is killed, Redis and PostgreSQL are restarted, amid changes: each reader of the
feed that comes back with its last id gets each position once, and each reader of flags learns the
last ones. A client that reads nothing is dropped, and gets everything when it comes back. The streams
of a revoked key end.
"""

import http.client
import queue
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from flask import Flask

from app.auth.permissions import Permission
from app.tenants.models import Tenant
from tests import factories
from tests.conftest import Api
from tests.database import query
from tests.faults._engines import private_engines
from tests.ports import free_port
from tests.running.serving import HOST, wait_until
from tests.streams.support import Client, kill, sequencing, stream_process

READERS = 4
PATIENCE = 60  # seconds until a reader has everything
LARGE = 5_000  # bytes; an event has them three times
READ = [Permission.FLAGS_READ]


@dataclass
class Report:
    """What happened."""

    changes: int = 0
    failed: int = 0  # changes that were refused while PostgreSQL restarted
    kills: int = 0
    restarts: int = 0
    connections: int = 0
    dropped: int = 0
    revoked_after: float = 0.0
    caught_up_after: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.changes} changes, {self.failed} refused; {self.kills} kills of the stream process,"
            f" {self.restarts} restarts of Redis and PostgreSQL: {READERS} readers of the feed got each"
            f" position once with {self.connections} connections, and {READERS} readers of flags the"
            f" last ETag, {self.caught_up_after:.1f} s after the last change; {self.dropped} slow"
            f" readers were dropped, and one got everything; a revoked key's stream ended after"
            f" {self.revoked_after:.2f} s"
        )


@dataclass
class Reader:
    """A client that comes back with its last id, as ``EventSource`` does."""

    port: int
    path: str
    token: str
    ended: threading.Event
    ids: list[str] = field(default_factory=list)
    etag: str = ""
    connections: int = 0

    def run(self) -> None:
        while not self.ended.is_set():
            with suppress(OSError, http.client.HTTPException, ValueError):
                self._read()
            time.sleep(0.2)

    def _read(self) -> None:
        headers = {"Last-Event-ID": self.ids[-1]} if self.ids else {}
        client = Client(self.port, self.path, self.token, **headers)
        self.connections += 1
        while not (self.ended.is_set() or (client.has_ended.is_set() and client.events.empty())):
            with suppress(queue.Empty):
                last_id, data = client.next(timeout=0.2)
                self.ids.append(last_id)
                self.etag = data.get("etag", "")
        client.close()


def prove(
    app: Flask, environment: object, *, seconds: float = 12, with_slow_readers: bool = True
) -> Report:
    """On engines of its own, because it restarts them; AssertionError where something is lost.

    Slow readers take a minute, because each is dropped after 30 seconds.
    """
    report, port = Report(), free_port()
    ended, written = threading.Event(), threading.Event()
    with ExitStack() as stack:
        found = stack.enter_context(private_engines())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.enter_context(sequencing(found.app))
        preset = factories.create_preset("free", beta=False)
        tenant, api = factories.create_tenant(), Api(found.app)
        override = factories.create_override(tenant, preset, "beta", True)
        token, key = factories.platform_token(), factories.create_api_key(tenant, READ)
        path = f"/ofrep/v1/events?tenant_id={tenant.id}"
        feed = [Reader(port, "/v1/events/stream", token, ended) for _ in range(READERS)]
        flags = [Reader(port, path, key, ended) for _ in range(READERS)]

        def write() -> None:
            address = f"/v1/billing/flags/overrides/{override.id}"
            while not written.is_set():
                body = {"flag_value": report.changes % 2 == 0}
                status = api.patch(address, token=token, json=body).status_code
                report.changes += status == 200
                report.failed += status != 200
                time.sleep(0.02)

        writer = threading.Thread(target=write)
        threads = [writer, *(threading.Thread(target=one.run) for one in (*feed, *flags))]
        for one in threads:
            one.start()
        try:
            for _ in range(2):
                with stream_process(found.environment, folder, port=port) as (_, process):
                    time.sleep(seconds / 6)
                    kill(process)
                report.kills += 1
            with stream_process(found.environment, folder, port=port):
                for engine in (found.engines.redis, found.engines.postgres):
                    time.sleep(seconds / 6)
                    engine.stop()
                    time.sleep(1)
                    engine.start()
                    report.restarts += 1
                time.sleep(seconds / 3)
                written.set()
                writer.join()
                report.caught_up_after = _catch_up(api, feed, flags, key)
                ended.set()
                if with_slow_readers:
                    _drop_slow_reader(report, api, port, tenant, token)
                report.revoked_after = _revoke(api, port, tenant, token)
        finally:
            written.set()
            ended.set()
            for one in threads:
                one.join()
        report.connections = sum(one.connections for one in feed)
    return report


def _catch_up(api: Api, feed: list[Reader], flags: list[Reader], key: str) -> float:
    """Seconds until all readers have everything, each position once."""
    began = time.monotonic()
    wait_until(lambda: not query("SELECT FROM event_outbox LIMIT 1"), PATIENCE)
    expected = [str(position) for (position,) in query("SELECT position FROM events ORDER BY 1")]
    evaluated = api.post("/ofrep/v1/evaluate/flags", token=key, json={})
    etag = evaluated.headers["ETag"]
    wait_until(lambda: all(len(one.ids) >= len(expected) for one in feed), PATIENCE)
    wait_until(lambda: all(one.etag == etag for one in flags), PATIENCE)
    seconds = time.monotonic() - began
    assert [one.ids for one in feed] == [expected] * READERS
    return seconds


def _drop_slow_reader(report: Report, api: Api, port: int, tenant: Tenant, token: str) -> None:
    """A client that reads nothing is dropped; it comes back and gets the rest."""
    start = query("SELECT max(position) FROM events")[0][0]
    user, _, _ = factories.create_member(tenant)
    wait_until(lambda: _open_feeds(port) == 0, PATIENCE)  # those of the readers have ended
    with _reading_nothing(port, start, token):
        wait_until(lambda: _open_feeds(port) == 1)

        def is_dropped() -> bool:
            for number in range(50):
                patches = {"note": str(number % 10) * LARGE}
                path = f"/v1/users/{user.id}/meta_data"
                assert api.patch(path, token=token, json={"patches": patches}).status_code == 200
            return _open_feeds(port) == 0

        wait_until(is_dropped, PATIENCE)
    api.sequence()
    with _reading_nothing(port, start, token):  # now older events wait for it
        wait_until(lambda: _open_feeds(port) == 1)
        wait_until(lambda: _open_feeds(port) == 0, PATIENCE)
    report.dropped = 2
    statement = f"SELECT position FROM events WHERE position > {start} ORDER BY 1"
    expected = [str(position) for (position,) in query(statement)]
    client = Client(port, f"/v1/events/stream?cursor={start}", token)
    assert [client.next()[0] for _ in expected] == expected
    client.close()


@contextmanager
def _reading_nothing(port: int, start: int, token: str) -> Iterator[None]:
    with socket.create_connection((HOST, port)) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        head = f"GET /v1/events/stream?cursor={start} HTTP/1.1\r\nHost: {HOST}\r\n"
        slow.sendall(f"{head}Authorization: Bearer {token}\r\n\r\n".encode())
        yield


def _open_feeds(port: int) -> float:
    lines = httpx.get(f"http://{HOST}:{port}/metrics").text.splitlines()
    (found,) = [line for line in lines if line.startswith('streams_open{kind="events"}')]
    return float(found.rpartition(" ")[2])


def _revoke(api: Api, port: int, tenant: Tenant, token: str) -> float:
    """Seconds until the stream of a revoked key has ended."""
    body = {"name": "flags", "permissions": ["flags:read"]}
    path = f"/v1/api-keys?tenant_id={tenant.id}"
    made = api.post(path, token=token, json=body).json["data"]
    client = Client(port, "/ofrep/v1/events", made["secret"])
    client.next()
    began = time.monotonic()
    assert api.delete(f"/v1/api-keys/{made['id']}", token=token).status_code == 204
    assert client.has_ended.wait(5)
    return time.monotonic() - began

"""GET /v1/events/stream and GET /v1/events?wait=: no event is missed, and none comes twice."""

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest

from app.auth.permissions import Permission
from tests import database
from tests.factories import (
    create_api_key,
    create_member,
    create_preset,
    create_tenant,
    platform_token,
)
from tests.running.serving import HOST, wait_until
from tests.streams.support import Client, sequencing, stream_process

PATH = "/v1/events/stream"
LARGE = 5_000  # bytes; an event has them three times


@pytest.fixture
def token():
    return create_api_key(None, [Permission.EVENTS_READ])


def rename(api, tenant, number):
    """Make one event, ``tenant.updated``."""
    path = f"/v1/tenants/{tenant.id}"
    answer = api.patch(path, token=platform_token(), json={"name": f"Name {number}"})
    assert answer.status_code == 200, answer.json


def names(client, count):
    return [client.next()[1]["data"]["name"] for _ in range(count)]


class TestStream:
    def test_shows_what_was_and_what_comes_in_one_order(self, api, connect, tenant, token):
        for number in range(3):
            rename(api, tenant, number)
        client = connect(PATH, token)
        for number in range(3, 6):
            rename(api, tenant, number)

        assert names(client, 6) == [f"Name {number}" for number in range(6)]
        assert client.is_quiet()

    def test_shows_each_event_as_the_list_does(self, api, connect, tenant, owner, token):
        rename(api, tenant, 1)
        for credential in (owner, token):
            client = connect(PATH, credential)
            last_id, event = client.next()
            client.close()

            assert [event] == api.get("/v1/events", token=credential).json["data"]
            assert last_id == str(event["position"])

    def test_goes_on_after_the_last_id_or_the_cursor(self, api, connect, tenant, owner):
        for number in range(4):
            rename(api, tenant, number)
        client = connect(PATH, owner)
        client.next()
        second, _ = client.next()

        by_header = connect(PATH, owner, **{"Last-Event-ID": second})
        by_cursor = connect(f"{PATH}?cursor={second}", owner)

        assert names(by_header, 2) == names(by_cursor, 2) == ["Name 2", "Name 3"]

    def test_reads_a_long_backlog_while_events_come(self, api, connect, tenant, token):
        count = 0
        stopped = threading.Event()

        def write():
            nonlocal count
            while not stopped.is_set():
                rename(api, tenant, count)
                count += 1

        thread = threading.Thread(target=write)
        thread.start()
        try:
            time.sleep(1.5)
            clients = [connect(PATH, token) for _ in range(3)]
            time.sleep(1)
        finally:
            stopped.set()
            thread.join()

        assert count > 20
        for client in clients:
            assert names(client, count) == [f"Name {number}" for number in range(count)]

    def test_selects_types_and_a_tenant(self, api, connect, tenant, token):
        client = connect(f"{PATH}?types=tenant.*&tenant_id={tenant.id}", token)
        rename(api, create_tenant(), 1)
        create = {"name": "k", "permissions": ["flags:read"]}
        api.post(f"/v1/api-keys?tenant_id={tenant.id}", token=platform_token(), json=create)
        rename(api, tenant, 2)

        assert names(client, 1) == ["Name 2"]
        assert client.is_quiet()

    def test_of_a_tenant_hides_positions_actors_and_others(self, api, connect, tenant, owner):
        client = connect(PATH, owner)
        rename(api, create_tenant(), 1)
        rename(api, tenant, 2)

        last_id, event = client.next()

        assert event["data"]["name"] == "Name 2"
        assert event["actor"] == "platform"
        assert last_id == event["position"]
        assert not last_id.isdecimal()

    def test_refuses_what_the_list_refuses(self, connect, owner, token):
        assert connect(f"{PATH}?cursor=x", token).status == 422
        assert connect(f"{PATH}?types=x", token).status == 422
        assert connect(f"{PATH}?tenant_id={create_tenant().id}", owner).status == 404
        assert connect(PATH).status == 401

    def test_of_a_suspended_tenant_ends(self, api, connect, tenant, owner):
        client = connect(PATH, owner)
        path, body = f"/v1/tenants/{tenant.id}/suspend", {"reason": "unpaid"}
        assert api.post(path, token=platform_token(), json=body).status_code == 200

        assert client.has_ended.wait(10)
        assert connect(PATH, owner).status == 403

    def test_ends_with_a_new_role_also_where_the_process_has_just_started(
        self, api, app, environment, tmp_path, tenant, owner
    ):
        _, membership, token = create_member(tenant, role="admin")
        with sequencing(app), stream_process(environment, tmp_path) as (port, _):
            client = Client(port, PATH, token)
            path = f"/v1/memberships/tenant/{membership.id}/role?role=viewer"
            assert api.patch(path, token=owner).status_code == 200

            assert client.has_ended.wait(10)


class TestSlowReader:
    def test_is_dropped_at_256_kib(self, api, port, tenant):
        def dropped():
            text = httpx.get(f"http://{HOST}:{port}/metrics").text
            name = 'streams_dropped_total{kind="events"} '
            return [line for line in text.splitlines() if line.startswith(name)]

        user, token = create_member(tenant)[0], platform_token()
        before = dropped()
        with socket.create_connection((HOST, port)) as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            head = f"GET {PATH} HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {token}\r\n\r\n"
            slow.sendall(head.encode())
            time.sleep(0.5)

            def is_dropped():
                for number in range(100):
                    patches = {"note": str(number % 10) * LARGE}
                    path = f"/v1/users/{user.id}/meta_data"
                    api.patch(path, token=token, json={"patches": patches})
                return dropped() != before

            wait_until(is_dropped)


class TestOpening:
    @contextmanager
    def locked(self, superuser, table):
        superuser.execute(f"BEGIN; LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        try:
            yield
        finally:
            superuser.execute("COMMIT")

    def wait_for(self, statement, count):
        """Return once so many statements of this name wait for the lock."""
        waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE :name"
        wait_until(lambda: len(database.query(waiting, name=f"%{statement}%")) == count)

    def test_at_once_does_not_exceed_the_limit(self, connect, superuser, owner):
        """The four requests pass the first check: none has read its events."""
        with ThreadPoolExecutor() as threads:
            with self.locked(superuser, "event_feed"):
                opening = [threads.submit(connect, PATH, owner) for _ in range(4)]
                self.wait_for("events_list", 4)
            clients = [one.result() for one in opening]

        wait_until(lambda: any(client.has_ended.is_set() for client in clients))
        assert [client.status for client in clients] == [200] * 4
        assert sum(client.has_ended.is_set() for client in clients) == 1
        assert all(client.retries for client in clients)

    def test_with_a_key_that_is_revoked_meanwhile_ends(
        self, api, connect, superuser, tenant, owner, token
    ):
        """Opening the stream waits for the flags, which the hub reads for no stream here."""
        create_preset("free", beta=False)
        body = {"name": "flags", "permissions": ["flags:read"]}
        made = api.post("/v1/api-keys", token=owner, json=body).json["data"]
        api.get("/v1/tenants", token=made["secret"])  # writes when the key was last used
        told = connect(f"{PATH}?types=api_key.revoked", token)
        with ThreadPoolExecutor() as threads:
            with self.locked(superuser, "plan_presets"):
                opening = threads.submit(connect, "/ofrep/v1/events", made["secret"])
                self.wait_for("flags_fingerprint", 1)
                api.delete(f"/v1/api-keys/{made['id']}", token=owner)
                told.next()
                time.sleep(0.3)  # the hub checks the credentials that it knows
            client = opening.result()

        assert client.status == 200
        assert client.has_ended.wait(10)


class TestWait:
    def get(self, connect, token, query, results, began):
        client = connect(f"/v1/events?{query}", token)
        results.append((client.body, time.monotonic() - began))

    def read(self, connect, token, query):
        results, began = [], time.monotonic()
        thread = threading.Thread(target=self.get, args=(connect, token, query, results, began))
        thread.start()
        return thread, results

    def test_waits_for_an_event(self, api, connect, tenant, owner):
        thread, results = self.read(connect, owner, "wait=10&types=tenant.updated")
        time.sleep(0.5)
        rename(api, create_tenant(), 0)
        time.sleep(0.5)
        rename(api, tenant, 1)
        thread.join()
        [(body, seconds)] = results

        assert [one["data"]["name"] for one in body["data"]] == ["Name 1"]
        assert 1 < seconds < 8

    def test_ends_with_an_empty_page(self, connect, owner):
        thread, results = self.read(connect, owner, "wait=1")
        thread.join()
        [(body, seconds)] = results

        assert body["data"] == []
        assert 1 <= seconds < 8

    def test_does_not_wait_where_there_are_events(self, api, connect, tenant, owner):
        rename(api, tenant, 1)
        api.sequence()
        time.sleep(0.3)
        thread, results = self.read(connect, owner, "wait=10")
        thread.join()
        [(body, seconds)] = results

        assert len(body["data"]) == 1
        assert seconds < 8

    def test_counts_as_one_request(self, connect, owner):
        queries = ("limit=1", "wait=1")
        headers = [connect(f"/v1/events?{query}", owner).answer.headers for query in queries]

        first, second = (int(each["RateLimit-Remaining"]) for each in headers)

        assert first - second == 1

    def test_needs_what_the_list_needs(self, connect):
        user = create_member(create_tenant(), role="viewer")[2]

        assert connect("/v1/events?wait=5").status == 401
        assert connect("/v1/events?wait=5", user).status == 403
        assert connect("/v1/events?wait=99", platform_token()).status == 422

"""SIGTERM to the web server under load: every request that was taken is answered."""

from __future__ import annotations

import http.client
import threading

from tests.factories import create_member, create_tenant
from tests.running.serving import HOST, wait_until, web_server

CLIENTS = 12


class Client(threading.Thread):
    """Sends requests, a connection for each, until nobody listens any more."""

    def __init__(self, port: int, token: str) -> None:
        super().__init__(daemon=True)
        self.port = port
        self.headers = {"Authorization": f"Bearer {token}"}
        self.answered = 0
        self.aborted: list[str] = []

    def run(self) -> None:
        while True:
            connection = http.client.HTTPConnection(HOST, self.port, timeout=40)
            try:
                connection.connect()
            except ConnectionRefusedError:
                return
            try:
                connection.request("GET", "/v1/users", headers=self.headers)
                answer = connection.getresponse()
                answer.read()
                assert answer.status == 200, answer.status
                self.answered += 1
            except (OSError, http.client.HTTPException, AssertionError) as fault:
                self.aborted.append(repr(fault))
            finally:
                connection.close()


class TestStopping:
    def test_no_answer_is_aborted(self, app, environment, tmp_path):
        _, _, token = create_member(create_tenant())
        with web_server(environment, tmp_path) as (port, process):
            clients = [Client(port, token) for _ in range(CLIENTS)]
            for client in clients:
                client.start()
            wait_until(lambda: sum(client.answered for client in clients) > 50)

            process.terminate()

            for client in clients:
                client.join(40)
            code = process.wait(40)

        assert code == 0
        assert sum(client.answered for client in clients) > 50
        assert [fault for client in clients for fault in client.aborted] == []

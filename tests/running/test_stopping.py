"""SIGTERM to the web server under load: every request is answered."""

import http.client
import socket
import threading

from tests.factories import create_member, create_tenant
from tests.running.serving import HOST, wait_until, web_server

CLIENTS = 12


class Client(threading.Thread):
    """Sends requests, a connection for each, until it is told to stop."""

    def __init__(self, port: int, token: str) -> None:
        super().__init__(daemon=True)
        self.port = port
        self.headers = {"Authorization": f"Bearer {token}"}
        self.answered = 0
        self.faults: list[str] = []
        self.stop = threading.Event()

    def run(self) -> None:
        while not self.stop.is_set():
            connection = http.client.HTTPConnection(HOST, self.port, timeout=60)
            try:
                connection.request("GET", "/v1/users", headers=self.headers)
                answer = connection.getresponse()
                answer.read()
                assert answer.status == 200, answer.status
                self.answered += 1
            except (OSError, http.client.HTTPException, AssertionError) as fault:
                self.faults.append(repr(fault))
            finally:
                connection.close()


class TestStopping:
    def test_a_restart_loses_no_request(self, app, environment, tmp_path):
        """Between two servers, new connections wait in the socket that both were given."""
        _, _, token = create_member(create_tenant())
        with socket.create_server((HOST, 0), backlog=CLIENTS) as listener:
            clients = [Client(listener.getsockname()[1], token) for _ in range(CLIENTS)]

            def count() -> int:
                return sum(client.answered for client in clients)

            with web_server(environment, tmp_path, listener=listener) as (_, process):
                for client in clients:
                    client.start()
                wait_until(lambda: count() > 50)

                process.terminate()

                assert process.wait(40) == 0
            before = count()
            with web_server(environment, tmp_path, listener=listener):
                wait_until(lambda: count() > before + 50)
                for client in clients:
                    client.stop.set()
                for client in clients:
                    client.join(40)

        assert [fault for client in clients for fault in client.faults] == []

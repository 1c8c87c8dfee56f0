"""A server in front of the service that loses the first answers."""

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.running.serving import HOST

KEPT = ("Content-Type", "ETag")
Sent = list[tuple[str, dict[str, str]]]


@contextmanager
def losing_first_answers(port: int) -> Iterator[tuple[str, Sent]]:
    """Its address, and the method and headers of each request.

    The first POST is applied, and the connection ends without an answer. The first GET is answered
    with 503. Every answer has an ``X-Consistency``.
    """
    sent: Sent = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            is_first = self.command not in {method for method, _ in sent}
            sent.append((self.command, dict(self.headers)))
            if is_first and self.command == "GET":
                self.reply(503, [("Retry-After", "0")], b"")
                return
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            service = http.client.HTTPConnection(HOST, port, timeout=10)
            service.request(self.command, self.path, body, dict(self.headers))
            answer = service.getresponse()
            content = answer.read()
            service.close()
            if not is_first or self.command != "POST":
                kept = [(name, answer.headers[name]) for name in KEPT if name in answer.headers]
                self.reply(answer.status, [*kept, ("X-Consistency", "1/2")], content)

        def reply(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
            self.send_response(status)
            for name, value in (*headers, ("Content-Length", str(len(body)))):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_PATCH = answer  # noqa: N815 - names of the base class

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer((HOST, 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://{HOST}:{server.server_port}", sent
        server.shutdown()

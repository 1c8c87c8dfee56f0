"""An identity provider's key set on a real HTTP server, which can also misbehave."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Provider:
    """What is published at :attr:`url`; ``fetched`` counts the visits, which wait for ``gate``."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/keys"
        self.fetched = 0
        self.gate = threading.Event()
        self.gate.set()
        self.status = 200
        self.delay = 0.0
        self.drip = 0.0
        self.body = b""

    def publish(self, *keys: Any) -> None:
        self.body = json.dumps({"keys": keys}).encode()


@contextmanager
def provider() -> Iterator[tuple[Provider, ThreadingHTTPServer]]:
    """A running provider, and its server (``shutdown()`` takes it away)."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.daemon_threads = True
        server.publisher = Provider(server.server_port)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server.publisher, server
        finally:
            server.shutdown()
            thread.join(5)


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        publisher: Provider = self.server.publisher
        publisher.fetched += 1
        publisher.gate.wait()
        time.sleep(publisher.delay)
        self.send_response(publisher.status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        try:
            if not publisher.drip:
                self.wfile.write(publisher.body)
            for byte in publisher.body if publisher.drip else b"":
                self.wfile.write(bytes([byte]))
                time.sleep(publisher.drip)
        except OSError:
            return  # whoever asked has gone

    def log_message(self, *args: Any) -> None:
        """Say nothing."""

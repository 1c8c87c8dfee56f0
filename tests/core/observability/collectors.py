"""What stands at the other end of traces and reports: a server that keeps what is posted to it."""

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector(ThreadingHTTPServer):
    """Sentry and an OpenTelemetry collector at once."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.posted: list[tuple[str, bytes]] = []

    @property
    def settings(self) -> dict[str, str]:
        """What the service has to be told."""
        at = f"127.0.0.1:{self.server_port}"
        return {
            "SENTRY_DSN": f"http://key@{at}/1",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{at}",
        }

    @property
    def spans(self) -> list[tuple[str, Span]]:
        """Each span, with the name of the service that sent it."""
        found = []
        for path, body in self.posted:
            if path == "/v1/traces":
                for sent in ExportTraceServiceRequest.FromString(body).resource_spans:
                    service = values(sent.resource)["service.name"]
                    found += [(service, span) for scope in sent.scope_spans for span in scope.spans]
        return found

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events of Sentry's envelopes: a header, then a header and a body of each item."""
        found = []
        for path, body in self.posted:
            if path == "/api/1/envelope/":
                lines = [json.loads(line) for line in body.splitlines() if line]
                items = zip(lines[1::2], lines[2::2], strict=True)
                found += [item for header, item in items if header["type"] == "event"]
        return found

    def wait_for(self, found: Callable[[], Any], seconds: float = 15) -> Any:
        """What ``found()`` gives, once it is something."""
        deadline = time.monotonic() + seconds
        while not (result := found()):
            assert time.monotonic() < deadline, [path for path, _ in self.posted]
            time.sleep(0.02)
        return result


def values(of: Any) -> dict[str, Any]:
    """The attributes of a span or a resource."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in of.attributes}


@contextmanager
def collector() -> Iterator[Collector]:
    """One that listens while the block runs."""
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.posted.append((self.path, body))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

"""Targets of log streams on a real HTTP server, which judge requests as the real ones do."""

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

Answer = tuple[int, Any] | tuple[int, Any, dict[str, str]]


@dataclass
class Target:
    """What was accepted, and the answers that are given in place of the next ones."""

    url: str = ""
    records: list[Any] = field(default_factory=list)
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    faults: list[Answer] = field(default_factory=list)

    def handle(self, path: str, headers: dict[str, str], body: bytes) -> Answer:
        self.requests.append((path, headers, body))
        if self.faults:
            return self.faults.pop(0)
        return self.judge(path, headers, body)

    def judge(self, path: str, headers: dict[str, str], body: bytes) -> Answer:
        raise NotImplementedError


@dataclass
class Hec(Target):
    """Splunk's HTTP Event Collector: `Format events for HTTP Event Collector`, `Troubleshoot HEC`."""

    token: str = "b5a79aab-d822-46cc-80d1-819f80d7bfb0"
    indexes: tuple[str, ...] = ("main", "identity")
    is_enabled: bool = True

    def judge(self, path, headers, body):
        if path != "/services/collector/event":
            return 404, {"text": "The requested URL was not found on this server.", "code": 404}
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if not scheme:
            return 401, {"text": "Token is required", "code": 2}
        if scheme != "Splunk" or not token:
            return 401, {"text": "Invalid authorization", "code": 3}
        if token != self.token:
            return 403, {"text": "Invalid token", "code": 4}
        if not self.is_enabled:
            return 403, {"text": "Token disabled", "code": 1}
        decoder, text, accepted = json.JSONDecoder(), body.decode(), []
        if not text:
            return 400, {"text": "No data", "code": 5}
        while text:
            number = {"invalid-event-number": len(accepted)}
            try:
                event, end = decoder.raw_decode(text)
            except ValueError:
                return 400, {"text": "Invalid data format", "code": 6, **number}
            if "event" not in event:
                return 400, {"text": "Event field is required", "code": 12, **number}
            if event.get("index", "main") not in self.indexes:
                return 400, {"text": "Incorrect index", "code": 7, **number}
            accepted.append(event)
            text = text[end:]
        self.records += accepted
        return 200, {"text": "Success", "code": 0}


@dataclass
class Datadog(Target):
    """Datadog's intake: `Send logs` of its API, version 2."""

    key: str = "0123456789abcdef0123456789abcdef"

    def judge(self, path, headers, body):
        if path != "/api/v2/logs":
            return 404, {"errors": ["Not found"]}
        if headers.get("dd-api-key") != self.key:
            return 403, {"errors": [{"status": "403", "title": "Forbidden"}]}
        if len(body) > 5_000_000:
            return 413, {"errors": [{"status": "413", "title": "Payload too large"}]}
        entries = json.loads(body)
        if len(entries) > 1000 or not all(isinstance(one["message"], str) for one in entries):
            return 400, {"errors": [{"status": "400", "title": "Bad Request"}]}
        self.records += entries
        return 202, {}


@dataclass
class Azure(Target):
    """Entra ID's token endpoint, and the Logs Ingestion API, at one address."""

    directory: str = "contoso.onmicrosoft.com"
    client: str = "0f8fad5b-d9cb-469f-a165-70867728950e"
    secret: str = "s3~cret"
    rule: str = "dcr-00000000000000000000000000000001"
    stream: str = "Custom-ControlPlane"
    has_role: bool = True

    def judge(self, path, headers, body):
        split = urlsplit(path)
        if split.path.endswith("/oauth2/v2.0/token"):
            return self._token(
                split.path, {name: one for name, [one] in parse_qs(body.decode()).items()}
            )
        if headers.get("authorization") != "Bearer t0ken":
            return 401, {"error": {"code": "InvalidToken", "message": "The token is not valid."}}
        _, rules, rule, streams, stream = split.path.split("/")
        if (rules, streams, split.query) != (
            "dataCollectionRules",
            "streams",
            "api-version=2023-01-01",
        ):
            return 404, {"error": {"code": "NotFound", "message": "No such resource."}}
        if rule != self.rule:
            message = f"Data collection rule with immutable Id '{rule}' not found."
            return 404, {"error": {"code": "NotFound", "message": message}}
        if not self.has_role:
            message = "The authentication token provided does not have access to ingest data."
            return 403, {"error": {"code": "OperationFailed", "message": message}}
        if stream != self.stream:
            message = f"Stream {stream} is not configured in the rule."
            return 400, {"error": {"code": "InvalidStream", "message": message}}
        if len(body) > 1_048_576:
            return 413, {"error": {"code": "ContentLengthLimitExceeded", "message": "Too large."}}
        self.records += json.loads(body)
        return 204, None

    def _token(self, path, form):
        directory = path.split("/")[1]
        assert form["grant_type"] == "client_credentials"
        assert form["scope"] == "https://monitor.azure.com//.default"
        if directory != self.directory:
            text = f"AADSTS90002: Tenant '{directory}' not found. Trace ID: 0 Timestamp: 1"
            return 400, {"error": "invalid_request", "error_description": text}
        if form["client_id"] != self.client:
            text = "AADSTS700016: Application was not found in the directory. Trace ID: 0"
            return 400, {"error": "unauthorized_client", "error_description": text}
        if form["client_secret"] != self.secret:
            text = "AADSTS7000215: Invalid client secret provided. Trace ID: 0 Timestamp: 1"
            return 401, {"error": "invalid_client", "error_description": text}
        return 200, {"token_type": "Bearer", "expires_in": 3599, "access_token": "t0ken"}


@dataclass
class Slack(Target):
    """Slack's incoming webhooks; they answer with texts."""

    is_archived: bool = False

    def judge(self, path, headers, body):
        if path != "/services/T0/B0/x":
            return 404, "no_service"
        if self.is_archived:
            return 410, "channel_is_archived"
        message = json.loads(body)
        if not message.get("text"):
            return 400, "no_text"
        self.records.append(message["text"])
        return 200, "ok"


@contextmanager
def running(target: Target, chain: Path | None = None) -> Iterator[Target]:
    """The target at its :attr:`url`, until the end of the block; by TLS with the key in a file."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.daemon_threads = True
        server.target = target
        target.url = f"http{'s' if chain else ''}://127.0.0.1:{server.server_port}"
        if chain:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(chain)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield target
        finally:
            server.shutdown()
            thread.join(5)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        status, said, *further = self.server.target.handle(self.path, headers, body)
        answer = said.encode() if isinstance(said, str) else json.dumps(said).encode()
        answer = b"" if said is None else answer
        self.send_response(status)
        for name, value in (further[0] if further else {}).items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        return

"""A double of Amazon S3 on loopback, which verifies signatures (AWS Signature Version 4)."""

import gzip
import hashlib
import hmac
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

KEY_ID, SECRET, REGION, BUCKET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG", "eu-west-1", "logs"
AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/]+)/(?P<date>\d{8})/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request,"
    r" ?SignedHeaders=(?P<signed>[^,]+), ?Signature=(?P<signature>[0-9a-f]{64})"
)
LONGEST_SKEW = 900  # seconds
ROLE, EXTERNAL_ID, TOKEN = "arn:aws:iam::123456789012:role/logs", "platform", "FwoGZXIvYXdzEXAMPLE"
SERVICE_KEY, ROLE_KEY = ("AKIDSERVICE", "service/secret"), ("ASIAROLE", "role/secret")
KEYS = {"s3": dict([(KEY_ID, SECRET), ROLE_KEY]), "sts": dict([SERVICE_KEY])}
ASSUMED = (
    "<AssumeRoleResponse><AssumeRoleResult><Credentials>"
    f"<SessionToken>{TOKEN}</SessionToken><SecretAccessKey>{ROLE_KEY[1]}</SecretAccessKey>"
    f"<Expiration>2026-01-31T12:00:00Z</Expiration><AccessKeyId>{ROLE_KEY[0]}</AccessKeyId>"
    "</Credentials></AssumeRoleResult></AssumeRoleResponse>"
)


@dataclass
class Bucket:
    """What was put. ``judge`` can answer ``(status, code)``, before or after the object is stored."""

    url: str = ""
    objects: dict[str, bytes] = field(default_factory=dict)
    puts: int = 0
    assumed: int = 0
    demands_external_id: bool = True
    judge: Callable[[str], tuple[int, str] | None] = lambda name: None
    delay: Callable[[], float] = lambda: 0.0
    loses_answer: Callable[[], bool] = lambda: False
    clock: Callable[[], float] = time.time
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def config(self) -> dict[str, str]:
        return {
            "endpoint": self.url,
            "region": REGION,
            "bucket": BUCKET,
            "prefix": "dt=1/audit/",
            "access_key_id": KEY_ID,
            "secret_access_key": SECRET,
        }

    def lines(self) -> list[bytes]:
        """The lines of all objects, in the order of the objects' names."""
        with self.lock:
            found = sorted(self.objects.items())
        return [line for _, body in found for line in gzip.decompress(body).splitlines()]


@contextmanager
def s3_server(**options: Any) -> Iterator[Bucket]:
    """A running bucket."""
    found = Bucket(**options)
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.daemon_threads = True
        server.bucket = found
        found.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join(5)


class _Server(ThreadingHTTPServer):
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        return  # a writer was killed


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_PUT(self) -> None:
        to: Bucket = self.server.bucket
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        if len(body) < length:  # the writer was killed
            self.close_connection = True
            return
        time.sleep(to.delay())
        bucket, _, name = unquote(urlsplit(self.path).path).lstrip("/").partition("/")
        refusal = self._refusal(body, to.clock()) or to.judge(name)
        if refusal is None and bucket != BUCKET:
            refusal = (404, "NoSuchBucket")
        if refusal is None:
            with to.lock:
                to.objects[name] = body
                to.puts += 1
            if to.loses_answer():
                self.close_connection = True
                return
        self._answer(refusal)

    def do_POST(self) -> None:
        """``AssumeRole`` of STS."""
        to: Bucket = self.server.bucket
        body = self.rfile.read(int(self.headers["Content-Length"]))
        form = {name: one for name, [one] in parse_qs(body.decode()).items()}
        refusal = self._refusal(body, to.clock(), service="sts")
        asked = (form["Action"], form["RoleArn"], form.get("ExternalId"))
        if to.demands_external_id and asked != ("AssumeRole", ROLE, EXTERNAL_ID):
            refusal = refusal or (403, "AccessDenied")
        to.assumed += refusal is None
        self._answer(refusal, ASSUMED)

    def _answer(self, refusal: tuple[int, str] | None, said: str = "") -> None:
        status, code = refusal or (200, "")
        text = f"<?xml version='1.0'?><Error><Code>{code}</Code></Error>" if code else said
        text = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _refusal(self, body: bytes, now: float, *, service: str = "s3") -> tuple[int, str] | None:
        given = AUTHORIZATION.fullmatch(self.headers.get("Authorization", ""))
        if given is None:
            return 403, "AccessDenied"
        if given["service"] != service or given["key"] not in KEYS[service]:
            return 403, "InvalidAccessKeyId"
        if given["key"] == ROLE_KEY[0] and self.headers["x-amz-security-token"] != TOKEN:
            return 403, "InvalidToken"
        if given["region"] != REGION:
            return 400, "AuthorizationHeaderMalformed"
        moment = datetime.strptime(self.headers["x-amz-date"], "%Y%m%dT%H%M%S%z")
        if abs(moment.timestamp() - now) > LONGEST_SKEW:
            return 403, "RequestTimeTooSkewed"
        if self.headers["x-amz-content-sha256"] != hashlib.sha256(body).hexdigest():
            return 400, "XAmzContentSHA256Mismatch"
        if not {"host", "x-amz-date", "x-amz-content-sha256"} <= set(given["signed"].split(";")):
            return 403, "AccessDenied"
        if not hmac.compare_digest(given["signature"], self._signature(given)):
            return 403, "SignatureDoesNotMatch"
        return None

    def _signature(self, given: re.Match[str]) -> str:
        names = given["signed"].split(";")
        canonical = "\n".join(
            [
                self.command,
                quote(unquote(urlsplit(self.path).path), safe="/~"),
                "",
                *(f"{name}:{' '.join(self.headers[name].split())}" for name in names),
                "",
                given["signed"],
                self.headers["x-amz-content-sha256"],
            ]
        )
        scope = f"{given['date']}/{REGION}/{given['service']}/aws4_request"
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        text = f"AWS4-HMAC-SHA256\n{self.headers['x-amz-date']}\n{scope}\n{digest}"
        key = f"AWS4{KEYS[given['service']][given['key']]}".encode()
        for part in (given["date"], REGION, given["service"], "aws4_request", text):
            key = hmac.digest(key, part.encode(), "sha256")
        return key.hex()

    def log_message(self, *_: object) -> None:
        return

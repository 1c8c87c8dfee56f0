"""How the server parses requests, refuses some of them, and writes answers.

The parser refuses requests that a proxy might parse differently (request smuggling). It refuses a
body above the limit of its path: by its Content-Length before it reads the body, or, if the body is
chunked, as soon as more bytes than the limit have arrived.
"""

from __future__ import annotations

import logging
import re
from typing import Any

from waitress.parser import HTTPRequestParser, ParsingError
from waitress.receiver import ChunkedReceiver
from waitress.task import ErrorTask, WSGITask
from waitress.utilities import BadRequest, Error, RequestEntityTooLarge

from app.core import json_text
from app.core.errors import AppError
from app.core.http.body_limits import body_limit, too_large
from app.core.http.error_handlers import error_body
from app.core.observability import logs
from app.core.version import HEADER, VERSION

log = logging.getLogger(__name__)

MAX_LINE = 8190  # bytes of a request's target
MAX_HEADERS = 32 * 1024  # bytes of the request line and all headers
MAX_CONTROL = 1024  # bytes of a chunk's size and extensions, or of the trailer
MAX_FRAMING = 16 * 1024  # bytes by which the framing of chunks may exceed their data

_CODINGS = re.compile(rb"\r\ntransfer-encoding:[ \t]*([^\r]*)", re.IGNORECASE)


class TimedOut(BadRequest):
    """The request did not arrive in time."""

    code = 408
    reason = "Request Timeout"


class TargetTooLong(BadRequest):
    """The target is longer than :data:`MAX_LINE`."""

    code = 414
    reason = "URI Too Long"


class ChunkedBody(ChunkedReceiver):
    """Decodes a chunked body, and refuses some that waitress accepts.

    It refuses a line with a chunk's size that is empty, too long or has a bare line feed. It also
    refuses a trailer that is too long, and framing that is much larger than the data.
    """

    error: Error | None
    framing = 0

    def received(self, s: bytes) -> int:
        """Decode bytes and return how many of them were used; sets ``error`` to refuse the body."""
        taken = 0
        while taken < len(s) and not self.completed and not self.error:
            rest = s[taken : taken + self.chunk_remainder] or s[taken:]
            if self.chunk_remainder:
                taken += int(super().received(rest))
                continue
            if self.validate_chunk_end:
                rest = rest[: 2 - len(self.chunk_end)]
            elif not self.all_chunks_received:
                rest = self._control(rest)
            used = int(super().received(rest))
            taken += used
            self.framing += used
            if self.framing > len(self) + MAX_FRAMING or len(self.trailer) > MAX_CONTROL:
                self.error = BadRequest("There is too much framing")
        return taken

    def _control(self, rest: bytes) -> bytes:
        """The part of ``rest`` that belongs to the line with the size."""
        begun = self.control_line
        line, end, _ = (begun + rest[: MAX_CONTROL + 2]).partition(b"\r\n")
        if b"\n" in line or (end and not line) or len(line) > MAX_CONTROL:
            self.error = BadRequest("The size of a chunk cannot be read")
        return rest[: len(line) + len(end) - len(begun)]


class Parser(HTTPRequestParser):
    """Parses one request as it arrives."""

    body_rcv: Any
    error: Error | None
    completed: bool

    def received(self, data: bytes) -> int:
        """Parse bytes and return how many belong to this request; sets ``error`` to refuse it."""
        consumed = int(super().received(data))
        if self.headers_finished and not self.empty and self.error is None:
            self.error = self._fault()
            self.completed = self.completed or self.error is not None
        if self.completed:  # no body follows, so no "100 Continue"
            self.expect_continue = False
        return consumed

    def parse_header(self, header_plus: bytes) -> None:
        """Parse the request line and the headers; raises ParsingError."""
        if b"\r\n " in header_plus or b"\r\n\t" in header_plus:
            raise ParsingError("A header is folded")
        try:
            super().parse_header(header_plus)
        except ValueError as fault:  # a Content-Length of 5,000 digits, a target that is no URL
            raise ParsingError("A number or the target cannot be read") from fault
        if self.version not in ("1.0", "1.1"):
            raise ParsingError("The version is unknown")
        codings = [coding.strip(b" \t").lower() for coding in _CODINGS.findall(header_plus)]
        if codings and (
            codings != [b"chunked"] or self.version == "1.0" or "CONTENT_LENGTH" in self.headers
        ):
            raise ParsingError("The length of the body is ambiguous")
        if self.chunked:
            self.body_rcv = ChunkedBody(self.body_rcv.getbuf())

    def _fault(self) -> Error | None:
        if len(self.request_uri) > MAX_LINE:
            return TargetTooLong("")
        if self.body_rcv is None:
            return None
        if max(self.content_length, len(self.body_rcv)) > body_limit(self.path):
            return RequestEntityTooLarge("")
        return None


class Task(WSGITask):
    """Runs the application for one request."""

    wrote_header: bool

    def get_environment(self) -> dict[str, Any]:
        """The WSGI environment; waitress removes leading slashes of the path, so it is set again.

        SERVER_NAME is the address that the client connected to.
        """
        environ: dict[str, Any] = super().get_environment()
        environ["PATH_INFO"] = self.request.path
        environ["SERVER_NAME"] = self.channel.local_host
        return environ

    def write(self, data: bytes) -> None:
        """Send a part of the answer; the first one goes with the headers in one system call."""
        if self.request.command == "HEAD":
            data = b""
        is_first = self.complete and not self.wrote_header and self.has_body
        if is_first and 0 < len(data) <= (self.content_length or 0):
            head = self.build_response_header()
            self.wrote_header = True
            self.content_bytes_written += len(data)
            self.channel.write_soon(head + data)
        else:
            super().write(data)

    def build_response_header(self) -> bytes:
        """The status line and the headers.

        The last answer of a connection has ``Connection: close`` if the process is stopping.
        """
        if self.channel.is_ending:
            self.request.headers["CONNECTION"] = "close"
            self.request.connection_close = True
        return bytes(super().build_response_header())

    def set_close_on_finish(self) -> None:
        """Close the connection after the answer, but not after a 204 or 304.

        waitress closes after every answer without a length. A 204 or 304 ends with its headers, so
        only HTTP/1.0 and ``Connection: close`` close its connection.
        """
        if self.has_body or self.version == "1.0" or self.request.connection_close:
            super().set_close_on_finish()


class Refusal(ErrorTask):
    """Answers and logs a request that does not reach the application."""

    def execute(self) -> None:
        """Answer with the error's body, and close the connection after it."""
        error = self.request.error
        request_id = logs.begin_request(self.request.headers.get("X_REQUEST_ID"))
        log.info("request_refused", extra={"status": error.code})
        path = getattr(self.request, "path", "")  # absent where the first line cannot be read
        refusal = AppError(too_large(path) if error.code == 413 else error.reason)
        refusal.status = error.code
        body, content_type = error_body(path, refusal, _write_body)
        self.status = f"{error.code} {error.reason}"
        self.content_length = len(body)
        self.response_headers += [
            ("Content-Type", content_type),
            ("X-Request-Id", request_id),
            (HEADER, VERSION),
        ]
        self.set_close_on_finish()
        self.write(body)


def _write_body(error: AppError) -> bytes:
    return json_text.dumps(error.body())

"""Load: raw HTTP requests, sent by wrk as fast as they are answered."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

FASTEST = 6_000  # requests per second that no server here exceeds
SCRIPT = Path(__file__).with_name("load.lua")


class NotAnswered(Exception):
    """Some requests were refused, or none was answered: the figures would mean nothing."""


@dataclass(frozen=True)
class Load:
    """What wrk saw. Times are milliseconds."""

    requests: int
    seconds: float
    p50: float
    p99: float

    @property
    def per_second(self) -> float:
        return self.requests / self.seconds


def request(
    method: str, path: str, headers: dict[str, str] | None = None, body: bytes = b""
) -> bytes:
    """One HTTP/1.1 request on a connection that stays open."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    if body or method != "GET":
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


def run(requests: Iterable[bytes], *, port: int, connections: int, seconds: float) -> Load:
    """Send them over ``connections`` connections; an answer that is no success ends the run."""
    wrk = shutil.which("wrk")
    if wrk is None:
        raise SystemExit("wrk is missing: apt-get install wrk (or your system's package of it).")
    with tempfile.NamedTemporaryFile() as file:
        for one in requests:
            file.write(b"%d\n%b" % (len(one), one))
        file.flush()
        command = [wrk, "-t1", f"-c{connections}", f"-d{seconds:g}s", "--timeout", "10s"]
        done = subprocess.run(
            [*command, "-s", SCRIPT, f"http://127.0.0.1:{port}/"],
            env={**os.environ, "REQUESTS": file.name},
            capture_output=True,
            text=True,
            check=True,
        )
    seen = json.loads(done.stdout.splitlines()[-1])
    if seen["refused"] or seen["broken"] or not seen["requests"]:
        raise NotAnswered(f"not every request was answered well: {seen}")
    return Load(seen["requests"], seen["microseconds"] / 1e6, seen["p50"] / 1e3, seen["p99"] / 1e3)

"""What each layer of one PATCH of a user's ``meta_data`` costs, measured inside one process.

Functions at the borders of the layers are wrapped: a clock charges the time until the next border
to the layer that runs. The wrapping itself costs a microsecond or so per border.
"""

from __future__ import annotations

import io
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from app.core import json_text
from benchmarks.items import Population, patch_meta_data
from benchmarks.stage import Stage

WARM_UP = 200
Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

FLASK = "Flask and Werkzeug: routing, request, response"
HOOKS = "hooks: request id, metrics, log line, limits"
GUARD = "guard: token, principal, permission"
INPUT = "input: parse and validate"
SERVICE = "service: merge, rules, change"
AUDIT = "audit row"
OUTPUT = "output: dump and JSON"
TRANSACTION = "transaction: open, close, connection"
STATEMENTS = "statements: their text, their rows"
DATABASE = "psycopg2 and PostgreSQL"
LAYERS = (
    *(FLASK, HOOKS, GUARD, INPUT, SERVICE, AUDIT, OUTPUT),
    *(TRANSACTION, STATEMENTS, DATABASE),
)


@dataclass
class Clock:
    """Time per layer, of the processor and of the wall, in seconds."""

    cpu: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    wall: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _running: list[str] = field(default_factory=list)
    _since: tuple[float, float] = (0.0, 0.0)

    def around(self, layer: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """``function``, charged to ``layer`` but for what other layers do inside it."""

        @wraps(function)
        def charged(*args: Any, **kwargs: Any) -> Any:
            self._charge()
            self._running.append(layer)
            try:
                return function(*args, **kwargs)
            finally:
                self._charge()
                self._running.pop()

        return charged

    def forget(self) -> None:
        self.cpu.clear()
        self.wall.clear()

    def _charge(self) -> None:
        now = (time.thread_time(), time.perf_counter())
        if self._running:
            self.cpu[self._running[-1]] += now[0] - self._since[0]
            self.wall[self._running[-1]] += now[1] - self._since[1]
        self._since = now


def report(stage: Stage, population: Population, *, requests: int) -> str:
    """A Markdown table for the service, and the floor's total under it."""
    os.environ.update(stage.environment, LOG_LEVEL="INFO")
    service, clock = _service()
    _send(service, population, WARM_UP)
    clock.forget()
    _send(service, population, requests)
    total = sum(clock.cpu.values()), sum(clock.wall.values())
    lines = [
        _line(layer, clock.cpu[layer], clock.wall[layer], requests, total[0]) for layer in LAYERS
    ]
    floor = _floor_seconds(population, requests)
    return "\n".join(
        [
            "| layer | processor, µs | wall, µs | share of processor |",
            "|---|--:|--:|--:|",
            *lines,
            _line("**all of the service**", *total, requests, total[0]),
            _line("the floor, all of it", *floor, requests, total[0]),
        ]
    )


def _service() -> tuple[Application, Clock]:
    from app import create_app

    app = create_app()
    clock = Clock()
    for layer, owner, name in _borders(app):
        setattr(owner, name, clock.around(layer, getattr(owner, name)))
    for hooks in (app.before_request_funcs, app.after_request_funcs, app.teardown_request_funcs):
        for name, functions in hooks.items():
            hooks[name] = [clock.around(HOOKS, function) for function in functions]
    return clock.around(FLASK, app.wsgi_app), clock


def _borders(app: Any) -> Iterator[tuple[str, Any, str]]:
    """Where one layer calls the next."""
    from app.auth.guard import Requires
    from app.core.db import connections, statements, transactions
    from app.core.http import parser
    from app.core.validation.schemas import Schema
    from app.users import service

    yield GUARD, Requires, "enter"
    yield INPUT, parser, "_load"
    yield SERVICE, service, "patch_meta_data"
    yield AUDIT, service, "record"
    yield OUTPUT, Schema, "dump"
    yield OUTPUT, json_text, "dumps"
    yield TRANSACTION, transactions, "run"
    for name in ("ask", "rows", "first", "scalars", "scalar", "write"):
        yield STATEMENTS, statements, name
    yield DATABASE, connections.Cursor, "send"


def _floor_seconds(population: Population, requests: int) -> tuple[float, float]:
    from benchmarks.floor.main import app

    _send(app, population, WARM_UP)
    clock = Clock()
    _send(clock.around(FLASK, app), population, requests)
    return clock.cpu[FLASK], clock.wall[FLASK]


def _send(application: Application, population: Population, count: int) -> None:
    """Give requests to a WSGI application; raises where one is not answered with 200."""
    environments = [_environment(patch_meta_data(population)) for _ in range(count)]
    statuses: list[str] = []
    for environment in environments:
        answer = application(environment, lambda status, *_: statuses.append(status))
        body = b"".join(answer)
        if hasattr(answer, "close"):
            answer.close()
        if statuses[-1] != "200 OK":
            raise SystemExit(f"{statuses[-1]}: {body!r}")


def _environment(request: bytes) -> dict[str, Any]:
    head, _, body = request.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    method, path, protocol = first.split()
    environment: dict[str, Any] = {
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "QUERY_STRING": "",
        "SCRIPT_NAME": "",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": protocol,
        "REMOTE_ADDR": "127.0.0.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": io.StringIO(),
    }
    environment |= dict(_variable(line) for line in lines)
    return environment


def _variable(line: str) -> tuple[str, str]:
    name, _, value = line.partition(": ")
    name = name.upper().replace("-", "_")
    return (name if name in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{name}"), value


def _line(name: str, cpu: float, wall: float, requests: int, total: float) -> str:
    return (
        f"| {name} | {cpu / requests * 1e6:.0f} | {wall / requests * 1e6:.0f} | {cpu / total:.0%} |"
    )

"""Structured logs: one JSON object per line on standard error, with the request's id."""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, TextIO

import orjson
from uuid_utils import uuid7

_request_id: ContextVar[str] = ContextVar("request_id", default="")
_facts: ContextVar[dict[str, str] | None] = ContextVar("log_facts", default=None)
_trace_id: ContextVar[str] = ContextVar("trace_id", default="")

ACCEPTED_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}", re.ASCII)
_VALUES = re.compile(r"^DETAIL:.*", re.MULTILINE)  # where PostgreSQL names the offending values
# What every record has; the rest is what the caller gave as ``extra``.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


def current_request_id() -> str:
    """The id of the HTTP request that all this happens for; ``""`` outside one."""
    return _request_id.get()


def begin_request(offered: str | None) -> str:
    """Take the caller's ``X-Request-Id`` if it is fit for logs (1..128 plain characters), else make one."""
    request_id = offered if offered and ACCEPTED_ID.fullmatch(offered) else str(uuid7())
    resume_request(request_id)
    return request_id


def resume_request(request_id: str) -> None:
    """Go on under an id that was given earlier: a job goes on for its request."""
    _request_id.set(request_id)
    _facts.set({"request_id": request_id} if request_id else {})


def add_facts(**facts: str) -> None:
    """Have every further line of this request or job say these too."""
    _facts.set({**(_facts.get() or {}), **facts})


def name_trace(trace_id: str) -> None:
    """Have every further line name this trace, whichever request it is for; ``""`` names none."""
    _trace_id.set(trace_id)


def current_facts() -> dict[str, str]:
    """What every line of this request or job says."""
    trace_id = _trace_id.get()
    return {**(_facts.get() or {}), **({"trace_id": trace_id} if trace_id else {})}


class JsonFormatter(logging.Formatter):
    """One line: the event, the request's facts, what the caller gave as ``extra``."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON; what JSON cannot carry is shown as text."""
        further = {key: value for key, value in vars(record).items() if key not in _STANDARD}
        if record.exc_info:
            further["exception"] = _VALUES.sub("DETAIL", self.formatException(record.exc_info))
        return _line(record.getMessage(), record.levelname, record.name, record.created, further)


class Lines(logging.StreamHandler[TextIO]):
    """Writes the lines."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self.setFormatter(JsonFormatter())

    def write(self, line: str) -> None:
        """One line."""
        with self.lock or nullcontext():
            self.stream.write(line + self.terminator)
            self.stream.flush()


def say(log: logging.Logger, event: str, **facts: Any) -> None:
    """``log.info(event, extra=facts)``, quicker: for what is said of every request.

    A record and its way through the loggers take longer than the line; nobody makes one here unless
    the root has another handler that would take it. Filters are not asked.
    """
    if not log.isEnabledFor(logging.INFO):
        return
    takers = [one for one in logging.getLogger().handlers if one.level <= logging.INFO]
    if len(takers) == 1 and isinstance(takers[0], Lines):
        with suppress(Exception):  # as logging has it, a line that cannot be written stops nobody
            takers[0].write(_line(event, "INFO", log.name, time.time(), facts))
    else:
        log.info(event, extra=facts)


def configure(level: str) -> None:
    """Send every logger's lines, the libraries' too, to standard error as JSON."""
    root = logging.getLogger()
    root.handlers[:] = [Lines()]
    root.setLevel(level)
    logging.captureWarnings(True)
    # No line shows where in the code it is from, so nobody has to find that out.
    logging._srcfile = None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False


def _line(event: str, level: str, logger: str, created: float, further: Mapping[str, Any]) -> str:
    line = {
        "event": event,
        "level": level.lower(),
        "logger": logger,
        "timestamp": datetime.fromtimestamp(created, UTC),
        **current_facts(),
        **further,
    }
    try:
        text = orjson.dumps(line, default=str).decode()
    except TypeError:  # an integer beyond 64 bits, a lone surrogate
        text = ""
    if text and text.isascii():  # or a terminal, or who splits lines, could take it for more
        return text
    return json.dumps(line, default=_spelt)


def _spelt(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)

"""Structured logs: one JSON object per line on standard error, with the request's id."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from datetime import UTC, datetime

import orjson
from uuid_utils import uuid7

_facts: ContextVar[Mapping[str, str]] = ContextVar("log_facts")
_trace_id: ContextVar[str] = ContextVar("trace_id", default="")

# Changes by a rewind have ids with this prefix, so no request may send one.
ACCEPTED_ID = re.compile(r"(?!rewind:)[A-Za-z0-9._:/+=@-]{1,128}", re.ASCII)
_VALUES = re.compile(r"^DETAIL:.*", re.MULTILINE)  # PostgreSQL quotes values of rows in this line
# The attributes that every log record has; all others come from ``extra``.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


def current_request_id() -> str:
    """The id of the HTTP request that this thread or job works for; ``""`` if there is none."""
    return _facts.get({}).get("request_id", "")


def begin_request(offered: str | None) -> str:
    """Set this request's id: ``offered`` if :data:`ACCEPTED_ID` matches, else a new id."""
    request_id = offered if offered and ACCEPTED_ID.fullmatch(offered) else str(uuid7())
    resume_request(request_id)
    return request_id


def resume_request(request_id: str) -> None:
    """Set the request id of later log lines, such as that of the request that queued this job."""
    _facts.set({"request_id": request_id} if request_id else {})


def add_facts(**facts: str) -> None:
    """Add these facts to every later log line of this request or job."""
    _facts.set({**_facts.get({}), **facts})


def name_trace(trace_id: str) -> None:
    """Add this trace id to every later log line; ``""`` removes it."""
    _trace_id.set(trace_id)


def current_facts() -> dict[str, str]:
    """The facts that every log line of this request or job has now."""
    trace_id = _trace_id.get()
    return {**_facts.get({}), **({"trace_id": trace_id} if trace_id else {})}


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON line: the event, the current facts, the fields of ``extra``."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON. A value that has no JSON type is written as text."""
        line = {
            "event": record.getMessage(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(),
            **current_facts(),
            **{key: value for key, value in vars(record).items() if key not in _STANDARD},
        }
        if record.exc_info:
            line["exception"] = _VALUES.sub("DETAIL", self.formatException(record.exc_info))
        with suppress(TypeError):  # an integer beyond 64 bits, a lone surrogate
            if (text := orjson.dumps(line, default=str)).isascii():
                return text.decode()
        # json.dumps escapes other characters: terminals and log collectors break lines at some.
        return json.dumps(line, default=str)


def configure(level: str) -> None:
    """Write the records of all loggers to standard error as JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    logging.captureWarnings(True)

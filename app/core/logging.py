"""Structured logs: one JSON object per line on standard error, with the request's id."""

from __future__ import annotations

import logging
import re
import sys
from contextvars import ContextVar

import orjson
import structlog
from uuid_utils.compat import uuid7

_request_id: ContextVar[str] = ContextVar("request_id", default="")

ACCEPTED_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}", re.ASCII)


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
    structlog.contextvars.clear_contextvars()
    if request_id:
        structlog.contextvars.bind_contextvars(request_id=request_id)


def configure(level: str) -> None:
    """Send every logger's lines, the standard library's too, through one JSON renderer."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(
                    serializer=lambda event, **_: orjson.dumps(event, default=str).decode()
                ),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )

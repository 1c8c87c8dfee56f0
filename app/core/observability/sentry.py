"""Reports to Sentry each exception that is logged as an error; imported only with ``SENTRY_DSN``.

A report has the types of the exceptions, their stacks without variables, the log event's name, ids
and the route. It has no messages, which may quote personal data; the log has them under the same
``request_id``. The SDK reads ``SENTRY_ENVIRONMENT`` and ``SENTRY_RELEASE`` itself.
"""

from __future__ import annotations

import logging

from flask import Flask, has_request_context, request
from sentry_sdk import Client
from sentry_sdk.types import Event
from sentry_sdk.utils import event_from_exception

from app.core.observability.logs import current_facts

TAGS = ("request_id", "trace_id", "tenant", "job", "job_id")


class Reporting(logging.Handler):
    """Sends each log record with an exception, from the SDK's thread."""

    def __init__(self, dsn: str) -> None:
        super().__init__(logging.ERROR)
        self._client = Client(
            dsn,
            default_integrations=False,
            auto_enabling_integrations=False,
            include_local_variables=False,
            auto_session_tracking=False,
            enable_logs=False,
        )

    def emit(self, record: logging.LogRecord) -> None:
        """Send the record's exception, unless the SDK itself logged it."""
        if record.exc_info and record.exc_info[1] and not record.name.startswith("sentry_sdk"):
            event, hint = event_from_exception(record.exc_info[1], self._client.options)
            self._client.capture_event(_described(event, record), hint)

    def flush(self) -> None:
        """Send the queued reports; takes two seconds at most."""
        self._client.flush()


def start(_app: Flask, dsn: str) -> Reporting:
    """Report the errors of all loggers of this process; configure the logs before."""
    reporting = Reporting(dsn)
    logging.getLogger().addHandler(reporting)
    return reporting


def _described(event: Event, record: logging.LogRecord) -> Event:
    for exception in event["exception"]["values"]:
        exception.pop("value", None)
    facts = current_facts()
    event["logger"] = record.name
    event["tags"] = {name: facts[name] for name in TAGS if facts.get(name)}
    event["tags"]["event"] = str(record.msg)  # the constant, without its arguments
    if has_request_context() and request.url_rule:
        event["transaction"] = f"{request.method} {request.url_rule.rule}"
    return event

"""Reports to Sentry each exception that is logged as an error; imported only with ``SENTRY_DSN``.

A report contains the types of the exceptions, their stacks without variables, the name of the log
event, ids and the route. Messages are removed, because they can contain personal data; find them in
the log by the ``request_id``. The SDK itself reads ``SENTRY_ENVIRONMENT`` and ``SENTRY_RELEASE``.
"""

from __future__ import annotations

import logging

import sentry_sdk
from flask import Flask, has_request_context, request
from sentry_sdk.client import BaseClient
from sentry_sdk.integrations.logging import EventHandler
from sentry_sdk.types import Event, Hint

from app.core.observability.logs import current_facts

SENT = {
    "environment",
    "event_id",
    "exception",
    "level",
    "logger",
    "platform",
    "release",
    "sdk",
    "server_name",
    "timestamp",
}
TAGS = ("request_id", "trace_id", "tenant", "job", "job_id")


def start(_app: Flask, dsn: str) -> BaseClient:
    """Report the errors of all loggers of this process. Call it after the logs are configured."""
    sentry_sdk.init(
        dsn,
        default_integrations=False,
        auto_enabling_integrations=False,
        include_local_variables=False,
        auto_session_tracking=False,
        before_send=_reduced,
    )
    logging.getLogger().addHandler(EventHandler(logging.ERROR))
    return sentry_sdk.get_client()


def _reduced(event: Event, hint: Hint) -> Event | None:
    """The report of an exception, reduced to what may be sent; None without an exception."""
    if "exception" not in event:
        return None
    for exception in event["exception"]["values"]:
        exception.pop("value", None)
    for name in event.keys() - SENT:
        del event[name]  # type: ignore[misc]  # the name is not a constant
    facts = current_facts()
    event["tags"] = {name: facts[name] for name in TAGS if facts.get(name)}
    event["tags"]["event"] = str(hint["log_record"].msg)  # the event's name, without arguments
    if has_request_context() and request.url_rule:
        event["transaction"] = f"{request.method} {request.url_rule.rule}"
    return event

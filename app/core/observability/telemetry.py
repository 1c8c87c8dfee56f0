"""Traces and reports of faults, for those who set ``OTEL_EXPORTER_OTLP_ENDPOINT`` or ``SENTRY_DSN``.

Only then are their packages needed, and imported.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from flask import Flask, current_app

from app.config import Config, ConfigError

EXTRAS = {  # by setting: the module that starts it, and what it needs
    "otel_exporter_otlp_endpoint": (
        "app.core.observability.tracing",
        "opentelemetry-sdk opentelemetry-exporter-otlp-proto-http",
    ),
    "sentry_dsn": ("app.core.observability.sentry", "sentry-sdk"),
}
PATIENCE = 2.0  # seconds in which a process that ends gets rid of what it has to send


def start(app: Flask, config: Config) -> None:
    """Start what is configured; call it before anything else that listens to requests.

    Raises :class:`app.config.ConfigError` where a package that it needs is not installed.
    """
    started = app.extensions["telemetry"] = {}
    for setting, (module, packages) in EXTRAS.items():
        if value := getattr(config, setting):
            try:
                extra = import_module(module)
            except ImportError as fault:
                raise ConfigError(
                    f"{setting.upper()} is set, but {fault.name} cannot be imported:"
                    f" pip install {packages}"
                ) from None
            started[setting] = extra.start(app, value)
    if started:
        atexit.register(_flush, started)


def carried() -> dict[str, str]:
    """What a job takes along, so that it goes on in the trace of its request."""
    tracing = _tracing()
    return tracing.carried() if tracing else {}


@contextmanager
def job_span(name: str, meta: Mapping[str, Any], **attributes: str) -> Iterator[None]:
    """One span around a job, in the trace that ``meta`` carries."""
    tracing = _tracing()
    if tracing is None:
        yield
    else:
        with tracing.job_span(name, meta, attributes):
            yield


def note_failure(fault: BaseException) -> None:
    """Mark the current job's span as failed."""
    tracing = _tracing()
    if tracing is not None:
        tracing.note_failure(fault)


def flush() -> None:
    """Send what waits, before this process ends without ado; takes :data:`PATIENCE` at most."""
    _flush(current_app.extensions["telemetry"])


def _flush(started: Mapping[str, Any]) -> None:
    """In threads, since OpenTelemetry's own time limit is not kept."""
    threads = [threading.Thread(target=extra.flush, daemon=True) for extra in started.values()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)


def _tracing() -> Any:
    return current_app.extensions["telemetry"].get("otel_exporter_otlp_endpoint")

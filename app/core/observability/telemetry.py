"""Traces with ``OTEL_EXPORTER_OTLP_ENDPOINT``, error reports with ``SENTRY_DSN``.

The packages for them are imported, and needed, only if the setting has a value.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import TYPE_CHECKING

from flask import Flask, current_app

from app.config import Config, ConfigError

if TYPE_CHECKING:
    from app.core.observability.tracing import Tracing

TRACES = "otel_exporter_otlp_endpoint"
EXTRAS = {  # by setting: our module, and the packages that it needs
    TRACES: ("tracing", "opentelemetry-sdk opentelemetry-exporter-otlp-proto-http"),
    "sentry_dsn": ("sentry", "sentry-sdk"),
}
PATIENCE = 2.0  # seconds that sending may take at the end of a process


def start(app: Flask, config: Config) -> None:
    """Start what is configured; call it before other hooks of requests are registered.

    Raises :class:`app.config.ConfigError` if a needed package is not installed.
    """
    started = app.extensions["telemetry"] = {}
    for setting, (module, packages) in EXTRAS.items():
        if value := getattr(config, setting):
            try:
                extra = import_module(f"app.core.observability.{module}")
            except ImportError as fault:
                raise ConfigError(
                    f"{setting.upper()} is set, but {fault.name} cannot be imported:"
                    f" pip install {packages}"
                ) from None
            started[setting] = extra.start(app, value)
    if started:
        atexit.register(flush, app)


def carried() -> dict[str, str]:
    """The current span as ``{"traceparent": …}``, for what it causes; empty without traces."""
    tracing = _tracing()
    return tracing.carried() if tracing else {}


def job_span(name: str, meta: Mapping[str, str], **facts: str) -> AbstractContextManager[None]:
    """One span around a job, in the trace of the ``traceparent`` in ``meta``."""
    tracing = _tracing()
    return tracing.span(name, meta, facts) if tracing else nullcontext()


def note_failure(fault: BaseException) -> None:
    """Mark the current job's span as failed."""
    if tracing := _tracing():
        tracing.note_failure(fault)


def flush(app: Flask) -> None:
    """Send the queued spans and reports, within :data:`PATIENCE` seconds."""
    # In threads, because OpenTelemetry exceeds its own time limit.
    started = app.extensions["telemetry"].values()
    threads = [threading.Thread(target=extra.flush, daemon=True) for extra in started]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)


def _tracing() -> Tracing | None:
    tracing: Tracing | None = current_app.extensions["telemetry"].get(TRACES)
    return tracing

"""Traces (if ``OTEL_EXPORTER_OTLP_ENDPOINT`` is set) and error reports (if ``SENTRY_DSN`` is set).

Without the setting, its packages are not imported and need not be installed.
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
EXTRAS = {  # setting -> this service's module, and the packages that the module needs
    TRACES: ("tracing", "opentelemetry-sdk opentelemetry-exporter-otlp-proto-http"),
    "sentry_dsn": ("sentry", "sentry-sdk"),
}
PATIENCE = 2.0  # seconds that :func:`flush` waits for spans, and again for reports


def start(app: Flask, config: Config) -> None:
    """Start what is configured. Call it before other request hooks are registered.

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
    """The current span as ``{"traceparent": …}``, for jobs and events; empty without traces."""
    tracing = _tracing()
    return tracing.carried() if tracing else {}


def job_span(name: str, meta: Mapping[str, str], **facts: str) -> AbstractContextManager[None]:
    """A span for a job, in the trace that ``traceparent`` in ``meta`` names."""
    tracing = _tracing()
    return tracing.span(name, meta, facts) if tracing else nullcontext()


def note_failure(fault: BaseException) -> None:
    if tracing := _tracing():
        tracing.note_failure(fault)


def flush(app: Flask) -> None:
    """Send the queued spans and reports; wait at most :data:`PATIENCE` seconds for each kind."""
    # In threads, because OpenTelemetry's flush can exceed its own time limit.
    started = app.extensions["telemetry"].values()
    threads = [threading.Thread(target=extra.flush, daemon=True) for extra in started]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)


def _tracing() -> Tracing | None:
    tracing: Tracing | None = current_app.extensions["telemetry"].get(TRACES)
    return tracing

"""Spans of requests, jobs and database statements, sent by OTLP over HTTP.

The module is imported only with ``OTEL_EXPORTER_OTLP_ENDPOINT``. The SDK's other variables work too
(``OTEL_SERVICE_NAME``, ``OTEL_EXPORTER_OTLP_HEADERS``, ``OTEL_TRACES_SAMPLER`` …). The SDK starts
its thread again after a fork.

Spans name routes and ids, never a path, a query or a message. OpenTelemetry's instrumentation of
Flask and psycopg2 writes all of them, and its hooks cannot remove an attribute or an event.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from flask import Flask, Response, g, request
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from app.core.db.transactions import observers
from app.core.observability import logs
from app.core.observability.metrics import METHODS

SERVICE = "controlplane"
UNTRACED = {"/healthz", "/readyz", "/metrics"}  # called every few seconds by probes
TRACEPARENT = TraceContextTextMapPropagator()
SILENT: Any = {"record_exception": False, "set_status_on_exception": False}  # they quote messages


class Tracing:
    """The spans of one application."""

    def __init__(self, endpoint: str) -> None:
        resource = Resource({"service.name": SERVICE}).merge(OTELResourceDetector().detect())
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        exporter = OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces")
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("app")

    def flush(self) -> None:
        """Send the spans that have ended."""
        self._provider.force_flush()

    def carried(self) -> dict[str, str]:
        """The current span as a ``traceparent`` (W3C Trace Context)."""
        carrier: dict[str, str] = {}
        TRACEPARENT.inject(carrier)
        return carrier

    @contextmanager
    def span(
        self,
        name: str,
        carrier: Any,
        attributes: Mapping[str, str],
        kind: SpanKind = SpanKind.CONSUMER,
    ) -> Iterator[None]:
        """A span in the trace of the carrier's ``traceparent``; log lines inside show its id."""
        parent = TRACEPARENT.extract(carrier)
        with self._tracer.start_as_current_span(name, parent, kind, attributes, **SILENT) as span:
            logs.name_trace(trace.format_trace_id(span.get_span_context().trace_id))
            try:
                yield
            except Exception as fault:
                self.note_failure(fault)
                raise
            finally:
                logs.name_trace("")

    def note_failure(self, fault: BaseException) -> None:
        """Mark the current span as failed, with the exception's type."""
        span = trace.get_current_span()
        span.set_status(StatusCode.ERROR)
        span.set_attribute("error.type", type(fault).__qualname__)

    @contextmanager
    def statement_span(self, name: str, template: str) -> Iterator[None]:
        """A span for a database statement, inside a span of a request or job; never its values."""
        with ExitStack() as stack:
            if trace.get_current_span().is_recording():
                values = {"db.system.name": "postgresql", "db.query.text": template}
                start = self._tracer.start_as_current_span
                stack.enter_context(start(name, None, SpanKind.CLIENT, values, **SILENT))
            yield

    def begin_request(self) -> None:
        """Start the request's span, in the trace of its ``traceparent`` if there is one."""
        method = request.method if request.method in METHODS else "_OTHER"
        rule = request.url_rule.rule if request.url_rule else "unrouted"
        if rule not in UNTRACED:
            attributes = {"http.request.method": method, "http.route": rule}
            g.span = ExitStack()
            g.span.enter_context(
                self.span(f"{method} {rule}", request.headers, attributes, SpanKind.SERVER)
            )

    def end_request(self, fault: BaseException | None) -> None:
        """End the request's span."""
        if "span" in g:
            if fault is not None:
                self.note_failure(fault)
            facts = logs.current_facts()
            named = {
                f"app.{name}": facts[name] for name in ("request_id", "tenant") if name in facts
            }
            trace.get_current_span().set_attributes(named)
            g.pop("span").close()


def start(app: Flask, endpoint: str) -> Tracing:
    """Trace every request of ``app``; ``endpoint`` is the collector's base URL."""
    tracing = Tracing(endpoint)
    observers.append(tracing.statement_span)
    app.before_request(tracing.begin_request)
    app.after_request(_note_status)
    app.teardown_request(tracing.end_request)
    return tracing


def _note_status(response: Response) -> Response:
    span = trace.get_current_span()
    span.set_attribute("http.response.status_code", response.status_code)
    if response.status_code >= 500:
        span.set_status(StatusCode.ERROR)
    return response

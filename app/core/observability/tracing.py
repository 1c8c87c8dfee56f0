"""Spans of requests, jobs and database statements, sent by OTLP over HTTP.

The module is imported only with ``OTEL_EXPORTER_OTLP_ENDPOINT``. The SDK's other variables work too
(``OTEL_SERVICE_NAME``, ``OTEL_EXPORTER_OTLP_HEADERS``, ``OTEL_TRACES_SAMPLER`` …). The SDK starts
its thread again after a fork.

Spans contain routes and ids. They never contain URL paths, query strings, values of statements or
messages of exceptions. OpenTelemetry's instrumentation of Flask and psycopg2 is not used: it writes
such texts, and its hooks cannot remove an attribute or an event.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial

from flask import Flask, Response, g, request
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from werkzeug.datastructures import Headers

from app.core.db.transactions import observers
from app.core.observability import logs
from app.core.observability.metrics import METHODS

SERVICE = "controlplane"
UNTRACED = {"/healthz", "/readyz", "/metrics"}  # called every few seconds by probes
TRACEPARENT = TraceContextTextMapPropagator()


class Tracing:
    """The spans of one application."""

    def __init__(self, endpoint: str) -> None:
        resource = Resource({"service.name": SERVICE}).merge(OTELResourceDetector().detect())
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        exporter = OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces")
        provider.add_span_processor(BatchSpanProcessor(exporter))
        self.flush = provider.force_flush
        self._start = partial(  # the SDK would record the messages of exceptions
            provider.get_tracer("app").start_as_current_span,
            record_exception=False,
            set_status_on_exception=False,
        )

    def carried(self) -> dict[str, str]:
        """The current span as a ``traceparent`` (W3C Trace Context)."""
        carrier: dict[str, str] = {}
        TRACEPARENT.inject(carrier)
        return carrier

    @contextmanager
    def span(
        self,
        name: str,
        carrier: Mapping[str, str] | Headers,
        attributes: Mapping[str, str],
        kind: SpanKind = SpanKind.CONSUMER,
    ) -> Iterator[None]:
        """A span in the trace that ``carrier`` names. Log lines inside show the trace id."""
        with self._start(name, TRACEPARENT.extract(carrier), kind, attributes) as span:
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

    def statement_span(self, name: str, template: str) -> AbstractContextManager[object]:
        """A span for a statement, without its values; none outside a request's or a job's span."""
        if not trace.get_current_span().is_recording():
            return nullcontext()
        values = {"db.system.name": "postgresql", "db.query.text": template}
        return self._start(name, None, SpanKind.CLIENT, values)

    def begin_request(self) -> None:
        """Start the request's span. Its ``traceparent`` header, if present, names the trace."""
        method = request.method if request.method in METHODS else "_OTHER"
        rule = request.url_rule.rule if request.url_rule else "unrouted"
        if rule not in UNTRACED:
            attributes = {"http.request.method": method, "http.route": rule}
            span = self.span(f"{method} {rule}", request.headers, attributes, SpanKind.SERVER)
            g.span = ExitStack()
            g.span.enter_context(span)

    def end_request(self, fault: BaseException | None) -> None:
        if "span" in g:
            if fault is not None:
                self.note_failure(fault)
            facts, span = logs.current_facts(), trace.get_current_span()
            for name in facts.keys() & {"request_id", "tenant"}:
                span.set_attribute(f"app.{name}", facts[name])
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

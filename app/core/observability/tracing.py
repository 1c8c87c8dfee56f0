"""Spans of requests, jobs and database statements, sent by OTLP over HTTP.

The module is imported only with ``OTEL_EXPORTER_OTLP_ENDPOINT``. The SDK's other variables work too
(``OTEL_SERVICE_NAME``, ``OTEL_EXPORTER_OTLP_HEADERS``, ``OTEL_TRACES_SAMPLER`` …). Spans name routes
and ids, never a path, a query or a message. The SDK starts its thread again after a fork.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from flask import Flask, Response, current_app, g, request
from opentelemetry import context, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

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
    def job_span(
        self, name: str, meta: Mapping[str, Any], attributes: Mapping[str, str]
    ) -> Iterator[None]:
        """A span in the trace that ``meta`` names; log lines inside show the trace's id."""
        parent = TRACEPARENT.extract(meta)
        with self._tracer.start_as_current_span(
            name, parent, SpanKind.CONSUMER, attributes, record_exception=False
        ) as span:
            logs.name_trace(_trace_id(span))
            yield
            logs.name_trace("")

    def note_failure(self, fault: BaseException) -> None:
        """Mark the current span as failed, with the exception's type."""
        span = trace.get_current_span()
        span.set_status(StatusCode.ERROR)
        span.set_attribute("error.type", type(fault).__qualname__)

    @contextmanager
    def statement_span(self, name: str, template: str) -> Iterator[None]:
        """A span for a database statement, inside a span of a request or job; never its values."""
        is_ours = current_app.extensions.get("tracing") is self
        if not is_ours or not trace.get_current_span().is_recording():
            yield
            return
        with self._tracer.start_as_current_span(
            name,
            kind=SpanKind.CLIENT,
            attributes={"db.system.name": "postgresql", "db.query.text": template},
            record_exception=False,
            set_status_on_exception=False,
        ):
            yield

    def begin_request(self) -> None:
        """Start the request's span, in the trace of its ``traceparent`` if there is one."""
        method = request.method if request.method in METHODS else "_OTHER"
        rule = request.url_rule.rule if request.url_rule else "unrouted"
        if rule in UNTRACED:
            return
        g.span = self._tracer.start_span(
            f"{method} {rule}",
            TRACEPARENT.extract(request.headers),
            SpanKind.SERVER,
            {"http.request.method": method, "http.route": rule},
        )
        g.span_token = context.attach(trace.set_span_in_context(g.span))
        logs.name_trace(_trace_id(g.span))


def start(app: Flask, endpoint: str) -> Tracing:
    """Trace every request of ``app``; ``endpoint`` is the collector's base URL."""
    tracing = app.extensions["tracing"] = Tracing(endpoint)
    observers.append(tracing.statement_span)
    app.before_request(tracing.begin_request)
    app.after_request(_answered)
    app.teardown_request(_end_request)
    return tracing


def _answered(response: Response) -> Response:
    if "span" in g:
        g.span.set_attribute("http.response.status_code", response.status_code)
        if response.status_code >= 500:
            g.span.set_status(StatusCode.ERROR)
    return response


def _end_request(fault: BaseException | None) -> None:
    if "span" not in g:
        return
    span: Span = g.pop("span")
    facts = logs.current_facts()
    span.set_attributes(
        {f"app.{name}": facts[name] for name in ("request_id", "tenant") if name in facts}
    )
    if fault is not None:
        span.set_attribute("error.type", type(fault).__qualname__)
    span.end()
    context.detach(g.pop("span_token"))
    logs.name_trace("")


def _trace_id(span: Span) -> str:
    return trace.format_trace_id(span.get_span_context().trace_id)

"""Traces and reports of faults: nothing without their variables, nothing personal with them."""

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from flask import Flask, request
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from app import create_app
from app.auth.guard import public
from app.config import ConfigError, load_config
from app.core.db import transactions
from app.core.jobs.queues import JOBS, Queue
from app.core.jobs.worker import make_worker
from app.core.observability import telemetry
from app.core.observability.logs import JsonFormatter
from app.extensions import db
from tests.core.observability.collectors import Collector, collector, values
from tests.factories import create_member, create_tenant, platform_token
from tests.running.serving import HOST, PROJECT, web_server
from tests.webhooks.deliveries.receiving import receiver, sender, wait_until
from tests.webhooks.endpoints.support import create_endpoint

CANARY = "canary7f3a"
BUILD = "app.custom_fields.jobs.sync_search_index"
LISTING = """
import sys
import redis, rq  # which import OpenTelemetry's metrics where they find them
before = set(sys.modules)
from wsgi import app
from app.core.jobs import queues, worker
assert app.test_client().get("/healthz").status_code == 200
with app.app_context():
    worker.make_worker(app, list(queues.Queue))
added = set(sys.modules) - before
print([name for name in added if name.startswith(("sentry_sdk", "opentelemetry"))])
"""


@pytest.fixture
def watched() -> Iterator[Collector]:
    with collector() as found:
        yield found


@pytest.fixture
def traced(app, environment, watched: Collector) -> Iterator[Flask]:
    """The application with both; it has a view that fails, quoting what it was sent."""
    root = logging.getLogger()
    handlers, observers = root.handlers[:], transactions.observers[:]
    made = create_app({**environment, **watched.settings})
    made.add_url_rule("/failing/<word>", methods=["POST"], view_func=public(fail))
    yield made
    telemetry.flush(made)
    with made.app_context():
        db.engine.dispose()
    root.handlers[:], transactions.observers[:] = handlers, observers


def fail(word: str) -> str:
    seen = f"{word} {request.get_data()!r} {request.headers} {request.args}"
    raise LookupError(f"fail: {seen}")


def post_failing(app: Flask, request_id: str) -> None:
    answer = app.test_client().post(
        f"/failing/{CANARY}?secret={CANARY}",
        json={CANARY: CANARY},
        headers={
            "X-Request-Id": request_id,
            "Authorization": f"Bearer {CANARY}",
            "Cookie": f"session={CANARY}",
            "User-Agent": CANARY,
        },
    )
    assert answer.status_code == 500


def run_job(app: Flask, *ids: str) -> None:
    """Queue one, and have a worker run it in a process of its own."""
    with app.app_context():
        JOBS[BUILD].push(*ids)
        make_worker(app, [Queue.INDEXES]).work(burst=True, logging_level="WARNING")


@contextmanager
def written_to(log: Path) -> Iterator[None]:
    """While the block runs, this process and its forks log there."""
    root, handler = logging.getLogger(), logging.FileHandler(log)
    handler.setFormatter(JsonFormatter())
    level = root.level
    root.addHandler(handler)
    root.setLevel("INFO")
    yield
    root.setLevel(level)
    root.removeHandler(handler)
    handler.close()


def is_statement(span: Span) -> bool:
    """Whether this is the span of a database statement."""
    return span.kind == Span.SPAN_KIND_CLIENT


def requests_and_jobs(watched: Collector) -> dict[str, Span]:
    return {span.name: span for _, span in watched.spans}


class TestUnset:
    def test_imports_none_of_the_packages(self, app, environment):
        unset = dict.fromkeys(("SENTRY_DSN", "OTEL_EXPORTER_OTLP_ENDPOINT"), "")

        done = subprocess.run(
            [sys.executable, "-c", LISTING],
            cwd=PROJECT,
            env={**os.environ, **environment, **unset},
            capture_output=True,
            text=True,
            timeout=60,
        )

        assert done.stdout == "[]\n", done.stderr

    def test_carries_nothing_and_sends_nothing(self, app):
        telemetry.flush(app)

        with app.app_context():
            assert telemetry.carried() == {}


class TestSettings:
    @pytest.mark.parametrize(
        ("name", "module"),
        [("SENTRY_DSN", "sentry_sdk"), ("OTEL_EXPORTER_OTLP_ENDPOINT", "opentelemetry")],
    )
    def test_say_which_package_is_missing(self, environment, watched, monkeypatch, name, module):
        extra, _ = telemetry.EXTRAS[name.lower()]
        monkeypatch.delitem(sys.modules, f"app.core.observability.{extra}", raising=False)
        for known in [module, *sys.modules]:
            if known.startswith(module):
                monkeypatch.setitem(sys.modules, known, None)

        said = f"{name} is set, but {module} cannot be imported: pip install"
        with pytest.raises(ConfigError, match=said):
            create_app({**environment, name: watched.settings[name]})

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("SENTRY_DSN", "yes"),
            ("SENTRY_DSN", "https://sentry.example.com/1"),
            ("SENTRY_DSN", "https://key@sentry.example.com/"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://[::"),
        ],
    )
    def test_must_be_usable(self, environment, name, value):
        with pytest.raises(ConfigError, match=name):
            load_config({**environment, name: value})


class TestReports:
    def test_tell_where_a_request_failed_and_nothing_that_it_brought(self, traced, watched):
        post_failing(traced, "failed-request")
        telemetry.flush(traced)

        (event,) = watched.wait_for(lambda: watched.events)
        ((_, span),) = watched.spans
        (exception,) = event["exception"]["values"]
        assert event["tags"]["trace_id"] == span.trace_id.hex()
        assert span.status.code == Status.STATUS_CODE_ERROR
        assert values(span)["error.type"] == "LookupError"
        assert values(span)["http.response.status_code"] == 500
        assert event["tags"]["request_id"] == "failed-request"
        assert event["tags"]["event"] == "request_failed"
        assert event["transaction"] == "POST /failing/<word>"
        assert exception["type"] == "LookupError"
        assert exception["stacktrace"]["frames"][-1]["function"] == "fail"
        assert CANARY not in json.dumps(watched.events)
        assert not any(CANARY.encode() in body for _, body in watched.posted)
        assert {"request", "user", "extra", "breadcrumbs"} & event.keys() == set()

    def test_tell_of_a_job_that_failed_in_a_process_of_its_own(self, traced, watched):
        run_job(traced, CANARY, CANARY)

        (event,) = watched.wait_for(lambda: watched.events)
        ((_, span),) = watched.wait_for(lambda: watched.spans)
        assert span.status.code == Status.STATUS_CODE_ERROR
        assert values(span)["error.type"] == "ValueError"
        assert CANARY.encode() not in span.SerializeToString()
        assert event["tags"]["event"] == "job_failed"
        assert event["tags"]["job"] == BUILD
        assert event["tags"]["job_id"]
        assert event["exception"]["values"][-1]["type"] == "ValueError"
        assert CANARY not in json.dumps(watched.events)

    def test_tell_nothing_of_a_refusal(self, traced, watched):
        traced.test_client().get("/v1/users")
        telemetry.flush(traced)

        assert watched.events == []


class TestTraces:
    def test_have_a_span_for_each_request_in_its_callers_trace(self, traced, watched):
        tenant = create_tenant()
        _, _, token = create_member(tenant)
        trace_id = "4bf92f3577b34da6a3ce929d0e0e4736"

        traced.test_client().get(
            f"/v1/users?email={CANARY}",
            headers={
                "Authorization": f"Bearer {token}",
                "X-Request-Id": "traced-request",
                "traceparent": f"00-{trace_id}-00f067aa0ba902b7-01",
            },
        )
        telemetry.flush(traced)

        ((service, span),) = [one for one in watched.spans if not is_statement(one[1])]
        assert service == "controlplane"
        assert span.name == "GET /v1/users"
        assert span.kind == Span.SPAN_KIND_SERVER
        assert (span.trace_id.hex(), span.parent_span_id.hex()) == (trace_id, "00f067aa0ba902b7")
        assert values(span) == {
            "http.request.method": "GET",
            "http.route": "/v1/users",
            "http.response.status_code": 200,
            "app.request_id": "traced-request",
            "app.tenant": str(tenant.id),
        }

    def test_have_a_span_for_each_statement_without_its_values(self, traced, watched):
        tenant = create_tenant()
        user, _, token = create_member(tenant)
        traced.test_client().get(
            f"/v1/users/{user.id}", headers={"Authorization": f"Bearer {token}"}
        )
        telemetry.flush(traced)

        (request,) = [span for _, span in watched.spans if not is_statement(span)]
        statements = [span for _, span in watched.spans if is_statement(span)]
        assert [span.name for span in statements] == [
            "auth.authenticate_user",
            "users.get",
            "COMMIT",
        ]
        for span in statements:
            assert span.parent_span_id == request.span_id
            assert str(user.id).encode() not in span.SerializeToString()
        assert "/* users.get */ SELECT" in values(statements[1])["db.query.text"]

    def test_lead_from_a_change_to_its_delivery(self, traced, watched, api):
        trace_id = "4bf92f3577b34da6a3ce929d0e0e4736"
        headers = {
            "Authorization": f"Bearer {platform_token()}",
            "traceparent": f"00-{trace_id}-00f067aa0ba902b7-01",
        }
        body = {"name": "Traced", "idp_org_id": "org_traced"}

        with receiver() as hook:
            create_endpoint(api, url=hook.url, types=["tenant.created"])
            traced.test_client().post("/v1/tenants", json=body, headers=headers)
            api.sequence()
            with sender(traced):
                wait_until(lambda: hook.received)
        telemetry.flush(traced)

        spans = requests_and_jobs(watched)
        change, delivery = spans["POST /v1/tenants"], spans["webhook_delivery"]
        sent = hook.received[0].headers["traceparent"]
        assert (delivery.trace_id.hex(), delivery.parent_span_id) == (trace_id, change.span_id)
        assert sent.startswith(f"00-{trace_id}-{delivery.span_id.hex()}-")

    def test_leave_out_what_machines_ask_all_the_time(self, traced, watched):
        for path in ("/healthz", "/readyz", "/metrics"):
            traced.test_client().get(path)
        traced.test_client().get(f"/{CANARY}")
        telemetry.flush(traced)

        assert [span.name for _, span in watched.spans] == ["GET unrouted"]

    def test_go_on_in_the_jobs_of_a_request(self, traced, watched, environment):
        _, _, token = create_member(create_tenant(), "owner")
        headers = {"Authorization": f"Bearer {token}", "X-Request-Id": "with-a-job"}
        field = {"entity_type": "user", "field_key": "size", "label": "Size", "field_type": "text"}

        traced.test_client().post(
            "/v1/custom-fields", json={**field, "is_searchable": True}, headers=headers
        )
        with traced.app_context():
            make_worker(traced, [Queue.INDEXES]).work(burst=True, logging_level="WARNING")
        telemetry.flush(traced)

        spans = requests_and_jobs(watched)
        asked, worked = spans["POST /v1/custom-fields"], spans[BUILD]
        assert worked.trace_id == asked.trace_id
        assert worked.parent_span_id == asked.span_id
        assert worked.kind == Span.SPAN_KIND_CONSUMER
        assert values(worked)["queue"] == "indexes"

    def test_are_named_in_the_lines_of_request_and_job(self, traced, watched, tmp_path):
        log = tmp_path / "log"
        with written_to(log):
            post_failing(traced, "failed-request")
            run_job(traced, CANARY, CANARY)
            logging.getLogger().warning("afterwards")
        telemetry.flush(traced)

        ids = {name: span.trace_id.hex() for name, span in requests_and_jobs(watched).items()}
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        named = {line["event"]: line.get("trace_id") for line in lines}
        assert named["request"] == ids["POST /failing/<word>"]
        assert named["job_failed"] == named["job"] == ids[BUILD]
        assert named["afterwards"] is None


class TestProcesses:
    def test_of_gunicorn_send_what_they_have_when_they_end(
        self, app, environment, watched, tmp_path
    ):
        with web_server({**environment, **watched.settings}, tmp_path, workers=1) as (
            port,
            process,
        ):
            statuses = [httpx.get(f"http://{HOST}:{port}/v1/users").status_code for _ in range(8)]
            process.send_signal(signal.SIGTERM)
            process.wait(30)

        assert statuses == [401] * 8
        names = [span.name for _, span in watched.spans]
        assert names == ["GET /v1/users"] * 8

    def test_answer_as_quickly_where_nobody_takes_what_they_send(self, app, environment, tmp_path):
        nobody = {
            "SENTRY_DSN": "http://key@127.0.0.1:9/1",
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
            "OTEL_BSP_SCHEDULE_DELAY": "50",
        }

        with web_server({**environment, **nobody}, tmp_path, workers=1) as (port, _):
            started = time.monotonic()
            statuses = [httpx.get(f"http://{HOST}:{port}/v1/users").status_code for _ in range(8)]
            seconds = time.monotonic() - started

        assert statuses == [401] * 8
        assert seconds < 6

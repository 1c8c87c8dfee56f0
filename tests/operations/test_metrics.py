"""/metrics: what Prometheus collects."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg2
import pytest
from flask.testing import FlaskClient
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import create_engine

from app import create_app
from app.core.jobs.queues import JOBS, connection
from app.core.observability.metrics import count_job, job_results
from app.dev.engines.instance import APPLICATION_ROLE, DATABASE
from app.extensions import db
from app.webhooks.models import WebhookEvent
from tests.factories import create_member, create_tenant, save


def samples(page: str) -> dict[tuple, float]:
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


class TestMetrics:
    def test_counts_requests_by_route_and_status(self, api):
        _, _, token = create_member(create_tenant())
        labels = (("method", "GET"), ("route", "/v1/users"), ("status", "200"))
        before = samples(api.get("/metrics").text).get(("http_requests_total", *labels), 0)

        api.get("/v1/users", token=token)
        after = samples(api.get("/metrics").text)

        assert after["http_requests_total", *labels] == before + 1
        assert ("http_request_duration_seconds_count", *labels[:2]) in after

    def test_tells_the_inbox_depth_and_age_by_state(self, api):
        values = {
            "source": "workos",
            "event_type": "user.created",
            "headers": {},
            "digest": "",
            "request_id": "",
        }
        save(WebhookEvent, external_id="one", **values)
        save(WebhookEvent, external_id="two", status="failed", **values)
        save(WebhookEvent, external_id="three", status="succeeded", **values)

        found = samples(api.get("/metrics").text)

        assert found["inbox_events", ("state", "pending")] == 1
        assert found["inbox_events", ("state", "failed")] == 1
        assert ("inbox_events", ("state", "succeeded")) not in found
        assert 0 <= found["inbox_oldest_seconds", ("state", "pending")] < 60

    def test_counts_the_results_of_jobs(self, app, api):
        name = next(iter(JOBS))
        with app.app_context():
            count_job(connection(), name, succeeded=True)
            count_job(connection(), name, succeeded=False)
            counted = job_results(connection())

        found = samples(api.get("/metrics").text)

        assert counted == {(name, "succeeded"): 1, (name, "failed"): 1}
        assert found["jobs_total", ("job", name), ("result", "failed")] == 1
        assert found["jobs_waiting", ("queue", "webhooks")] == 0

    def test_tells_the_connections_in_use(self, app, api):
        def in_use() -> float:
            return samples(api.get("/metrics").text)["db_pool_connections", ("state", "in_use")]

        with app.app_context():
            used = db.engine.raw_connection()
        while_used = in_use()
        used.close()

        assert (while_used, in_use()) == (1, 0)

    def test_does_not_count_a_connection_that_could_not_be_opened_again(self, instance, api):
        options = {"host": str(instance.sockets), "user": APPLICATION_ROLE, "dbname": DATABASE}
        connections = [psycopg2.connect(**options)]
        engine = create_engine("postgresql+psycopg2://", creator=connections.pop)
        before = samples(api.get("/metrics").text)

        with engine.connect() as connection:
            connection.invalidate()
        with pytest.raises(IndexError):
            engine.connect()
        after = samples(api.get("/metrics").text)

        for state in ("open", "in_use"):
            name = ("db_pool_connections", ("state", state))
            assert after[name] == before[name] >= 0


class TestToken:
    @pytest.fixture
    def protected(self, environment) -> Iterator[FlaskClient]:
        app = create_app({**environment, "METRICS_TOKEN": "collector-1"})
        yield app.test_client()
        with app.app_context():
            db.engine.dispose()

    def test_is_asked_for_where_it_is_set(self, app, protected):
        answer = protected.get("/metrics", headers={"Authorization": "Bearer collector-1"})

        assert answer.status_code == 200
        assert "http_requests_total" in answer.text

    @pytest.mark.parametrize(
        "given", [None, "", "Bearer", "Bearer collector-2", "Basic collector-1", "Bearer collecté"]
    )
    def test_that_is_wrong_is_refused(self, app, protected, given):
        headers = {} if given is None else {"Authorization": given}

        answer = protected.get("/metrics", headers=headers)

        assert (answer.status_code, answer.json) == (401, {"detail": "Not authenticated"})
        assert answer.headers["WWW-Authenticate"] == "Bearer"

    def test_is_in_the_openapi_document(self, api):
        operation = api.get("/openapi.json").json["paths"]["/metrics"]["get"]

        assert "METRICS_TOKEN" in operation["description"]
        assert "METRICS_TOKEN" in operation["responses"]["401"]["description"]

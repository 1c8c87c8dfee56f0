"""The metric of the connections' requests, and the log lines about them."""

import json
import logging

import pytest
from prometheus_client import REGISTRY

from app.connections.oauth import PATH as TOKEN_PATH
from app.core.observability.logs import JsonFormatter
from tests.scim.directory import ERROR, Directory, create_connection


def counted(provider):
    return {
        outcome: REGISTRY.get_sample_value(
            "scim_requests_total", {"provider": provider, "outcome": outcome}
        )
        or 0
        for outcome in ("succeeded", "refused", "failed")
    }


@pytest.fixture
def broken(monkeypatch):
    """The protocol has a fault that nobody expects."""

    def fail(*_):
        raise ZeroDivisionError("ada@example.com")

    monkeypatch.setattr("app.scim.protocol.serve", fail)


def test_requests_are_counted_by_provider_and_outcome(app, tenant, directory):
    entra = Directory(app, create_connection(tenant, provider="entra")[1])
    before = counted("entra"), counted("generic")

    entra.get("/Users")
    entra.get("/Users/nobody")
    entra.post("/Users", {})
    directory.get("/ServiceProviderConfig")
    Directory(app, "scim_unknown").get("/Users")

    gained = [
        {name: after[name] - was[name] for name in was}
        for was, after in zip(before, (counted("entra"), counted("generic")), strict=True)
    ]
    assert gained == [
        {"succeeded": 1, "refused": 2, "failed": 0},
        {"succeeded": 1, "refused": 0, "failed": 0},
    ]


def test_the_metric_names_no_connection(api, connection, directory):
    directory.get("/Users")

    page = api.get("/metrics").text

    lines = [line for line in page.splitlines() if line.startswith("scim_requests_total{")]
    assert 0 < len(lines) <= 6 * 3
    assert str(connection[0].id) not in page


def test_a_fault_is_500_with_scims_body_and_without_details(app, directory, connection, broken):
    before = counted("generic")

    answer = directory.get("/Users")

    assert (answer.status_code, answer.content_type) == (500, "application/scim+json")
    assert answer.get_json() == {
        "schemas": [ERROR],
        "status": "500",
        "detail": "Internal Server Error",
    }
    assert counted("generic")["failed"] == before["failed"] + 1


@pytest.mark.parametrize("path", ["/Users", "/Users/nobody"])
def test_lines_of_requests_name_the_connection(directory, connection, caplog, path):
    caplog.handler.setFormatter(JsonFormatter())
    caplog.set_level(logging.INFO)

    directory.get(path)

    (line,) = lines_of(caplog, "request")
    assert line["scim_connection"] == str(connection[0].id)
    assert line["principal"] == f"scim:{connection[0].id}"
    assert line["tenant"] == str(connection[0].tenant_id)


def test_lines_of_faults_and_grants_name_the_connection(app, directory, connection, caplog, broken):
    caplog.handler.setFormatter(JsonFormatter())
    caplog.set_level(logging.INFO)
    form = {"grant_type": "client_credentials", "client_id": connection[0].id}

    directory.get("/Users")
    app.test_client().post(TOKEN_PATH, data={**form, "client_secret": connection[1]})

    found = [*lines_of(caplog, "request_failed"), *lines_of(caplog, "request")]
    assert [line["scim_connection"] for line in found] == [str(connection[0].id)] * 3
    assert connection[1] not in caplog.text


def lines_of(caplog, event):
    lines = [json.loads(line) for line in caplog.text.splitlines()]
    return [line for line in lines if line["event"] == event]

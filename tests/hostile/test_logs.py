"""What the service shows of itself: no secret, one JSON object per line, the request's id throughout."""

import json
import logging
import time
from collections.abc import Iterator
from urllib.parse import quote

import httpx
import psycopg2.errors
import pytest
from flask import Flask

from app.core.observability.logs import JsonFormatter
from app.emails.models import Suppression
from tests import factories
from tests.hostile.document import Document, Operation
from tests.hostile.installation import (
    SECRET,
    Installation,
    bound,
    end,
    installation,
)
from tests.hostile.load import requests_of
from tests.hostile.world import World, create_world
from tests.running.serving import wait_until

CANARY = "canary7f3a"
EMAIL = f"{CANARY}@example.com"
PROCESSES = ("worker", "scheduler")


@pytest.fixture(scope="module")
def deployed(app: Flask) -> Iterator[Installation]:
    """With a worker and a scheduler, on engines that nothing has happened to."""
    with installation() as service:
        started = [service.run("flask", "--app", "wsgi", "jobs", name) for name in PROCESSES]
        yield service
        for process in started:
            end(process)


@pytest.fixture
def shown(app, deployed: Installation, document: Document) -> World:
    """A world in the installation's database."""
    with bound(deployed.app):
        return create_world(deployed.app, document)


@pytest.fixture
def http(deployed: Installation) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"http://127.0.0.1:{deployed.port}", timeout=30) as client:
        yield client


def with_canary(world: World, operation: Operation) -> bytes | None:
    """A body whose every text holds the canary."""
    if not operation.schema:
        return None
    body = dict(world.body(operation))
    for name, schema in operation.fields.items():
        if schema.get("type") == "object":
            body[name] = {"secret": f"{CANARY} in an object", CANARY: [CANARY]}
        elif schema.get("format") == "email" or "email" in name:
            body[name] = EMAIL
        elif schema.get("type") == "string" and not {"enum", "format", "pattern"} & schema.keys():
            body[name] = f"{CANARY} {body.get(name, '')}"[: schema.get("maxLength", 1000)]
    return json.dumps(body).encode()


def ask_everything(
    http: httpx.Client, world: World, caller: str, request_id: str
) -> dict[int, int]:
    """One request of each operation with the canary in each place; how many had which status."""
    statuses: dict[int, int] = {}
    for operation in world.document.operations:
        path = operation.path
        for name in operation.named("path"):
            path = path.replace(f"{{{name}}}", quote(world.ids[name]))
        query = {**operation.query, "email": EMAIL, "unknown": CANARY, "cursor": CANARY}
        if operation.is_change:
            query["tenant_id"] = str(world.tenant.id)
        answer = http.request(
            operation.method,
            path,
            params=query,
            content=with_canary(world, operation),
            headers={
                "Authorization": f"Bearer {world.credentials[caller]}",
                "Content-Type": "application/json",
                "X-Request-Id": request_id,
                "User-Agent": CANARY,
                "Cookie": f"session={CANARY}",
                "Referer": f"https://example.com/?token={CANARY}",
                "Idempotency-Key": f"{CANARY}-{operation.method}-{operation.path}",
            },
        )
        statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
    return statuses


class TestLogs:
    def test_tell_no_secret_and_nothing_personal(self, deployed, shown, http):
        for caller in ("superadmin", "tenant key"):
            statuses = ask_everything(http, shown, caller, f"run-{caller[:5]}")
            assert not any(status >= 500 for status in statuses), statuses
        http.get("/v1/users", headers={"Authorization": f"Bearer {CANARY}.{CANARY}.{CANARY}"})
        http.get("/v1/users", headers={"Authorization": f"Bearer sk_{CANARY}"})
        http.get(f"/v1/users/{CANARY}")
        http.get(f"/{CANARY}?secret={CANARY}")
        post_webhooks(http, shown)
        with deployed.superuser() as cursor:
            cursor.execute("BEGIN; LOCK TABLE users IN ACCESS EXCLUSIVE MODE")
            ask_everything_of_users(http, shown)
            cursor.execute("ROLLBACK")
        wait_until(
            lambda: any(line["logger"] == "app.core.jobs.worker" for line in lines(deployed))
        )

        log = deployed.log.read_text()

        secrets = [CANARY, SECRET, SECRET.removeprefix("whsec_"), *shown.credentials.values()]
        secrets += [deployed.environment["JWT_SIGNING_KEY"].splitlines()[1]]
        assert [secret for secret in secrets if secret in log] == []
        assert "Bearer" not in log
        assert "@example.com" not in log
        assert log.count('"request"') > 150

    def test_are_one_json_object_per_line(self, deployed, http):
        http.get("/healthz")

        wrong = [line for line in deployed.logged() if not is_object(line)]

        assert wrong == []
        assert len(deployed.logged()) > 10

    def test_name_request_tenant_principal_route_status_and_duration(self, deployed, shown, http):
        token = shown.credentials["owner"]
        headers = {"Authorization": f"Bearer {token}", "X-Request-Id": "asked-by-an-owner"}

        answer = http.get(f"/v1/users/{shown.ids['user_id']}", headers=headers)

        assert answer.headers["X-Request-Id"] == "asked-by-an-owner"
        wait_until(lambda: of_request(deployed, "asked-by-an-owner", "request") != [])
        (line,) = of_request(deployed, "asked-by-an-owner", "request")
        assert (line["method"], line["route"], line["status"]) == (
            "GET",
            "/v1/users/<user_id>",
            200,
        )
        assert line["tenant"] == str(shown.tenant.id)
        assert line["principal"].startswith(f"user:{shown.tenant.id}:")
        assert line["duration_ms"] > 0

    def test_carry_the_requests_id_into_its_jobs(self, app, deployed, shown, http):
        request = post_webhook(shown)
        headers = {**request.headers, "X-Request-Id": "sent-by-a-provider"}

        answer = http.post("/webhooks/idp", content=request.body, headers=headers)

        assert answer.status_code == 200
        sent = "sent-by-a-provider"
        wait_until(lambda: of_request(deployed, sent, "webhook_processed") != [])
        (asked,) = of_request(deployed, sent, "request")
        (processed,) = of_request(deployed, sent, "webhook_processed")
        assert asked["route"] == "/webhooks/idp"
        assert processed["event_id"] == answer.json()["event_id"]

    def test_carry_it_to_the_jobs_end(self, deployed, shown, http):
        headers = {"Authorization": f"Bearer {shown.superadmin}", "X-Request-Id": "built-by-me"}
        path = f"/v1/custom-fields/{shown.ids['field_id']}"

        http.post(f"{path}/archive", headers=headers)
        http.post(f"{path}/restore", json={"confirm": True}, headers=headers)

        wait_until(lambda: of_request(deployed, "built-by-me", "job") != [])
        line = of_request(deployed, "built-by-me", "job")[0]
        assert line["job"].startswith("app.custom_fields.jobs.")
        assert line["queue"] == "indexes"
        assert line["succeeded"] is True
        assert line["duration_ms"] > 0

    def test_show_no_values_that_the_database_complains_about(self, app):
        values = {"cause": "bounced", "scope": "", "source": "resend", "is_active": True}
        factories.save(Suppression, address=EMAIL, **values)
        with pytest.raises(psycopg2.errors.UniqueViolation) as caught:
            factories.save(Suppression, address=EMAIL, **values)
        fault = caught.value
        record = logging.makeLogRecord({"exc_info": (type(fault), fault, fault.__traceback__)})

        line = JsonFormatter().format(record)

        assert "uq_suppressions" in line
        assert CANARY not in line


def post_webhook(world: World):
    kinds = requests_of(world.tenant, "", "")
    return kinds[2](time.monotonic_ns())


def post_webhooks(http: httpx.Client, world: World) -> None:
    request = post_webhook(world)
    http.post("/webhooks/idp", content=request.body, headers=dict(request.headers))
    http.post("/webhooks/idp", content=request.body + b" ", headers=dict(request.headers))
    http.post("/webhooks/idp", content=CANARY, headers={"Authorization": f"Bearer {CANARY}"})


def ask_everything_of_users(http: httpx.Client, world: World) -> None:
    """What fails in the database shows none of the values that it failed with."""
    answer = http.patch(
        f"/v1/users/{world.ids['user_id']}",
        json={"email": EMAIL, "first_name": CANARY},
        headers={"Authorization": f"Bearer {world.superadmin}"},
    )
    assert answer.status_code == 503
    assert CANARY not in answer.text


def is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def lines(service: Installation) -> list[dict]:
    return [json.loads(line) for line in service.logged() if is_object(line)]


def of_request(service: Installation, request_id: str, event: str) -> list[dict]:
    """The lines of one event that bear the request's id."""
    return [line for line in service.events(event) if line.get("request_id") == request_id]


class TestMetrics:
    def test_are_the_sum_of_all_processes(self, deployed, shown, http):
        """Each page shows every request of every worker, whichever worker makes the page."""
        headers = {"Authorization": f"Bearer {shown.superadmin}"}
        before = metric(http, 'http_requests_total{method="GET",route="/v1/tenants",status="200"}')

        for _ in range(40):  # connections of their own, so that every worker gets some
            httpx.get(f"{http.base_url}/v1/tenants", headers=headers, timeout=30)

        pages = {
            metric(http, 'http_requests_total{method="GET",route="/v1/tenants",status="200"}')
            for _ in range(5)
        }
        assert pages == {before + 40}
        assert (
            metric(http, 'http_request_duration_seconds_count{method="GET",route="/v1/tenants"}')
            >= before + 40
        )

    def test_name_no_tenant_and_nobody(self, http, shown):
        page = http.get("/metrics").text

        assert str(shown.tenant.id) not in page
        assert "@" not in page


def metric(http: httpx.Client, name: str) -> float:
    page = http.get("/metrics").text
    found = [line.rpartition(" ")[2] for line in page.splitlines() if line.startswith(f"{name} ")]
    return float(found[0]) if found else 0.0

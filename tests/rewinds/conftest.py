"""What the tests of rewinds share."""

import pytest

from app.rewinds.jobs import rewind
from tests.factories import platform_token


@pytest.fixture
def call(api):
    """Send a request with the operator's token; returns its data."""

    def send(method, path, body=None, **query):
        answer = api.request(method, path, token=platform_token(), json=body, query_string=query)
        assert answer.status_code in (200, 201, 202, 204), answer.text
        return (answer.get_json(silent=True) or {}).get("data")

    return send


@pytest.fixture
def position(api):
    """Let all changes have positions; returns the last."""

    def read():
        api.sequence()
        return api.get("/v1/events?limit=1000", token=platform_token()).get_json()["next_cursor"]

    return read


@pytest.fixture
def go_back(app, api, call):
    """Rewind a tenant; returns the rewind when it is finished."""

    def run(tenant_id, to, **wanted):
        body = {"to": to, "dry_run": False, **wanted}
        made = call("POST", f"/v1/tenants/{tenant_id}/rewind", body)
        api.sequence()
        with app.app_context():
            rewind(made["id"])
        return call("GET", f"/v1/rewinds/{made['id']}")

    return run


@pytest.fixture
def tenant(call):
    body = {"name": "Acme", "slug": "acme", "idp_org_id": "org_acme"}
    return call("POST", "/v1/tenants", body)["id"]


@pytest.fixture
def add_user(call, tenant):
    def add(name, role=None, **values):
        body = {"idp_user_id": name, "email": f"{name}@example.com", **values}
        user = call("POST", "/v1/users", body, tenant_id=tenant)["id"]
        if role:
            body = {"user_id": user, "role": role}
            call("POST", "/v1/memberships/tenant", body, tenant_id=tenant)
        return user

    return add

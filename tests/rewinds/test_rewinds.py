"""``POST /v1/tenants/{id}/rewind``: a tenant's rows are made again what they were."""

import pytest

from app.rewinds.jobs import rewind
from tests.factories import (
    platform_token,
)


@pytest.fixture
def call(api):
    """Send a request with the operator's token; returns its data."""

    def send(method, path, body=None, status=(200, 201, 202, 204), **query):
        answer = api.request(method, path, token=platform_token(), json=body, query_string=query)
        expected = status if isinstance(status, tuple) else (status,)
        assert answer.status_code in expected, answer.text
        found = answer.get_json(silent=True) or {}
        return found.get("data", found)

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
        path = f"/v1/tenants/{tenant_id}/rewind"
        made = call("POST", path, {"to": to, "dry_run": False, **wanted}, status=202)
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
    def add(name, **values):
        body = {"idp_user_id": name, "email": f"{name}@example.com", **values}
        return call("POST", "/v1/users", body, tenant_id=tenant)["id"]

    return add


class TestPreview:
    def test_shows_what_would_change(self, call, tenant, add_user, position):
        user = add_user("ada", first_name="Ada")
        to = position()
        call("PATCH", f"/v1/users/{user}", {"first_name": "Augusta"})
        new = add_user("new")
        position()

        found = call("POST", f"/v1/tenants/{tenant}/rewind", {"to": to})

        assert found["state"] == "preview"
        assert found["counts"] == {"users": {"updated": 1, "removed": 1}}
        assert found["changes"] == [
            {
                "kind": "users",
                "id": user,
                "action": "updated",
                "changes": {"first_name": {"before": "Augusta", "after": "Ada"}},
            },
            {"kind": "users", "id": new, "action": "removed", "changes": {}},
        ]


class TestRewind:
    def test_makes_the_rows_what_they_were(self, call, tenant, add_user, position, go_back):
        user = add_user("ada", first_name="Ada")
        to = position()
        call("PATCH", f"/v1/users/{user}", {"first_name": "Augusta"})
        call("PATCH", f"/v1/tenants/{tenant}", {"name": "Other"})
        new = add_user("new")

        done = go_back(tenant, to)

        assert (done["state"], done["done"], done["left_out"]) == ("completed", 3, [])
        assert call("GET", f"/v1/users/{user}")["first_name"] == "Ada"
        assert call("GET", f"/v1/tenants/{tenant}")["name"] == "Acme"
        assert call("GET", f"/v1/users/{new}")["is_active"] is False

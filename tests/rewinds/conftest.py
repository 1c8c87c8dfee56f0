"""What the tests of rewinds share."""

import itertools

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
        while True:  # a turn ends after some seconds
            with app.app_context():
                rewind(made["id"])
            done = call("GET", f"/v1/rewinds/{made['id']}")
            if done["finished_at"] is not None:
                return done

    return run


@pytest.fixture
def tenant(call):
    body = {"name": "Acme", "slug": "acme", "idp_org_id": "org_acme"}
    return call("POST", "/v1/tenants", body)["id"]


@pytest.fixture
def resources(call, tenant):
    return Resources(call, tenant)


class Resources:
    """The tenant's resources of the type ``doc``."""

    def __init__(self, call, tenant):
        self.call, self.tenant = call, tenant

    def of(self, name):
        return {"type": "doc", "id": name}

    def put(self, name, parent=None, **attributes):
        body = {"parent": parent and self.of(parent), "attributes": attributes}
        self.call("PUT", f"/v1/resources/doc/{name}", body, tenant_id=self.tenant)

    def put_chain(self, names):
        """Each is below the one before it."""
        for parent, name in itertools.pairwise([None, *names]):
            self.put(name, parent)

    def delete(self, name):
        self.call("DELETE", f"/v1/resources/doc/{name}", tenant_id=self.tenant)

    def read(self):
        rows = self.call("GET", "/v1/resources", tenant_id=self.tenant, limit=100)
        names = ("id", "parent", "attributes", "created_at")
        return [{name: row[name] for name in names} for row in rows]


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

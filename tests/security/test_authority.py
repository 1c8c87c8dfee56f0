"""What a credential may do is what it may do when its request is complete, and where it is sent."""

import http.client
import json
from collections.abc import Iterator
from contextlib import closing

import pytest

from app.users.models import User
from tests.database import row
from tests.factories import (
    create_api_key,
    create_member,
    create_tenant,
    create_webhook_endpoint,
    platform_token,
)
from tests.running.serving import HOST, web_server


@pytest.fixture(scope="module")
def port(app, environment, tmp_path_factory) -> Iterator[int]:
    """The port of the service behind its real server."""
    with web_server(environment, tmp_path_factory.mktemp("web"), workers=1) as (port, _):
        yield port


def send_late(port, path, *, token, meanwhile, **body):
    """The status and the JSON of a PATCH whose sender does something else before its last byte."""
    content = json.dumps(body).encode()
    with closing(http.client.HTTPConnection(HOST, port, timeout=20)) as connection:
        connection.putrequest("PATCH", path)
        connection.putheader("Authorization", f"Bearer {token}")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", str(len(content)))
        connection.endheaders(content[:-1])
        assert meanwhile().status_code == 200
        connection.send(content[-1:])
        answer = connection.getresponse()
        return answer.status, json.load(answer)


class TestSlowSender:
    def test_is_judged_by_the_role_at_the_end_of_the_request(self, api, port, tenant):
        owner = create_member(tenant, role="owner")[2]
        _, membership, admin = create_member(tenant, role="admin")
        target, _, _ = create_member(tenant, role="viewer")
        demote = f"/v1/memberships/tenant/{membership.id}/role?role=viewer"

        status, _ = send_late(
            port,
            f"/v1/users/{target.id}",
            token=admin,
            meanwhile=lambda: api.patch(demote, token=owner),
            first_name="Changed",
        )

        assert status == 403
        assert row(User, id=target.id).first_name == ""

    def test_changes_nothing_in_a_tenant_suspended_meanwhile(self, api, port, tenant):
        owner = create_member(tenant, role="owner")[2]
        suspend = f"/v1/tenants/{tenant.id}/active?is_active=false"
        operator = platform_token()

        _, answer = send_late(
            port,
            f"/v1/tenants/{tenant.id}",
            token=owner,
            meanwhile=lambda: api.patch(suspend, token=operator),
            name="Changed",
        )

        assert answer["code"] == "tenant_suspended"


class TestIdempotencyKey:
    def test_of_a_superadmin_counts_in_one_organization(self, api, app):
        tenants = [create_tenant(), create_tenant()]
        body = {"idp_user_id": "u1", "email": "ada@example.com"}

        answers = [
            api.post(
                "/v1/users",
                token=platform_token(tenant=tenant),
                json=body,
                headers={"Idempotency-Key": "k"},
            )
            for tenant in tenants
        ]

        made_in = [answer.get_json()["data"]["tenant_id"] for answer in answers]
        assert made_in == [str(tenant.id) for tenant in tenants]


LASTING = {
    "/v1/api-keys": {"name": "k", "permissions": ["audit:read"]},
    "/v1/scim-connections": {"name": "c"},
    "/v1/setup-links": {"scopes": ["scim"]},
    "/v1/webhook-endpoints": {"url": "https://hooks.example.com/", "types": ["*"]},
}
"""What outlasts the request and acts for whoever created it, by the path at which it is created."""
TENANT_IN_BODY = {"/v1/setup-links"}


class TestGrowth:
    """A key with one permission cannot create what has, or is sent, more."""

    @pytest.mark.parametrize("of_tenant", [True, False], ids=["tenant's key", "platform key"])
    @pytest.mark.parametrize("path", LASTING)
    def test_is_refused(self, api, app, path, of_tenant, tenant):
        key = create_api_key(tenant if of_tenant else None, [permission_of(app, path)])

        chosen = {"tenant_id": str(tenant.id)}
        query, body = ({}, chosen) if path in TENANT_IN_BODY else (chosen, {})
        answer = api.post(path, token=key, query_string=query, json={**LASTING[path], **body})

        assert answer.status_code == 403
        assert answer.get_json()["code"] in ("permission_denied", "permission_beyond_own")

    def test_every_endpoint_that_creates_a_secret_is_known(self, app):
        endpoints = {rule.rule: app.view_functions[rule.endpoint] for rule in creating(app)}
        secret = {path for path, one in endpoints.items() if one.answer and one.answer.shown_once}

        # An invitation gives a role, as memberships:write does, and only to whoever has its address.
        assert secret - {"/v1/invitations"} == LASTING.keys()

    def test_of_an_endpoint_is_refused(self, api, app):
        endpoint = create_webhook_endpoint(create_tenant().id)
        path = f"/v1/webhook-endpoints/{endpoint.id}"
        key = create_api_key(None, ["events:write"])

        answers = [
            api.patch(path, token=key, json=body)
            for body in ({"url": "https://x.example/"}, {"types": ["*"]}, {"is_active": False})
        ]

        assert [answer.status_code for answer in answers] == [403, 403, 200]


def creating(app):
    """The rules at which things are created."""
    return [
        rule
        for rule in app.url_map.iter_rules()
        if "POST" in (rule.methods or ()) and rule.rule.startswith("/v1/") and "<" not in rule.rule
    ]


def permission_of(app, path):
    (rule,) = (rule for rule in creating(app) if rule.rule == path)
    return app.view_functions[rule.endpoint].access.permission

"""The log line of an answer 401 or 403 tells why, with what credential, and who asked."""

import json
import logging

import pytest

from app.auth.permissions import Permission
from app.core.observability.logs import JsonFormatter
from tests.factories import create_api_key, create_member, create_tenant, user_token

ADDRESS = "127.0.0.1"


@pytest.fixture
def refused(api, caplog):
    """Send a request; of its log line status, reason, credential and principal.

    Neither its token nor its body is in the log.
    """
    caplog.handler.setFormatter(JsonFormatter())
    caplog.set_level(logging.INFO)

    def send(method: str, path: str, **options) -> tuple:
        caplog.clear()
        api.request(method, path, **options)
        # `api` may read the document of the endpoints afterwards.
        text, *_ = [line for line in caplog.text.splitlines() if '"event":"request"' in line]
        line = json.loads(text)
        assert line["address"] == ADDRESS
        assert options.get("token", "Bearer") not in caplog.text
        return line["status"], line["reason"], line["credential"], line.get("principal")

    return send


class TestUnauthenticated:
    def test_names_what_is_wrong(self, refused):
        user, _, _ = create_member(create_tenant())
        expired = user_token(user, ttl=-3600)

        assert [
            refused("GET", "/v1/users"),
            refused("GET", "/v1/users", token=expired),
            refused("GET", "/v1/users", token="sk_unknown-secret"),
            refused("POST", "/webhooks/idp", data=b"{}"),
        ] == [
            (401, "credential_missing", "none", None),
            (401, "token_expired", "user_token", None),
            (401, "key_invalid", "api_key", None),
            (401, "signature_invalid", "none", None),
        ]

    @pytest.mark.parametrize("tail", ["-", "-x", "-.x.y"])
    def test_calls_what_is_no_token_invalid(self, refused, tail):
        found = refused("GET", "/v1/users", token=f"eyJ{tail}")

        assert found == (401, "token_invalid", "user_token", None)


class TestForbidden:
    @pytest.mark.parametrize(
        ("is_active", "reason"), [(True, "permission_denied"), (False, "tenant_suspended")]
    )
    def test_names_the_user(self, refused, is_active, reason):
        tenant = create_tenant(is_active=is_active)
        user, _, token = create_member(tenant, "viewer")

        found = refused("POST", "/v1/custom-fields", token=token, json={})

        assert found == (403, reason, "user_token", f"user:{tenant.id}:{user.id}")

    def test_names_the_api_key(self, refused):
        tenant = create_tenant()
        user, _, _ = create_member(tenant)
        secret = create_api_key(tenant, [Permission.USERS_WRITE, Permission.USERS_READ])
        body = {"idp_user_id": "other"}

        *found, principal = refused("PATCH", f"/v1/users/{user.id}", token=secret, json=body)

        assert found == [403, "provider_field", "api_key"]
        assert principal.startswith("key:")

    def test_names_nobody_without_a_membership(self, refused):
        _, _, token = create_member(create_tenant(), is_active=False)

        found = refused("GET", "/v1/users", token=token)

        assert found == (403, "no_membership", "user_token", None)

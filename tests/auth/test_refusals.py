"""The log line of an answer 401 or 403 tells why, with what credential, and who asked."""

import json
import logging

import pytest

from app.auth.permissions import Permission
from app.core.observability.logs import JsonFormatter
from tests.factories import create_api_key, create_member, create_tenant, user_token


@pytest.fixture
def refused(api, caplog):
    """Send a request; the fields of its log line that tell of a refusal, and the whole line."""
    caplog.handler.setFormatter(JsonFormatter())
    caplog.set_level(logging.INFO)

    def send(method: str, path: str, **options) -> tuple[dict, str]:
        caplog.clear()
        api.request(method, path, **options)
        # `api` may read the document of the endpoints afterwards.
        text, *_ = [line for line in caplog.text.splitlines() if '"event":"request"' in line]
        names = ("status", "reason", "credential", "principal", "address")
        line = json.loads(text)
        return {name: line[name] for name in names if name in line}, caplog.text

    return send


class TestUnauthenticated:
    def test_names_the_address_without_a_credential(self, refused):
        told, _ = refused("GET", "/v1/users")

        assert told == {
            "status": 401,
            "reason": "credential_missing",
            "credential": "none",
            "address": "127.0.0.1",
        }

    def test_names_what_is_wrong_with_a_user_token(self, refused):
        user, _, _ = create_member(create_tenant())
        token = user_token(user, ttl=-3600)

        told, text = refused("GET", "/v1/users", token=token)

        assert told == {
            "status": 401,
            "reason": "token_expired",
            "credential": "user_token",
            "address": "127.0.0.1",
        }
        assert token not in text

    @pytest.mark.parametrize("tail", ["", "x", ".x.y"])
    def test_calls_what_is_no_token_invalid(self, refused, tail):
        told, _ = refused("GET", "/v1/users", token=f"eyJ{tail}")

        assert (told["reason"], told["credential"]) == ("token_invalid", "user_token")

    def test_names_an_api_key_by_its_kind_alone(self, refused):
        told, text = refused("GET", "/v1/users", token="sk_unknown-secret")

        assert told == {
            "status": 401,
            "reason": "key_invalid",
            "credential": "api_key",
            "address": "127.0.0.1",
        }
        assert "unknown-secret" not in text

    def test_names_a_wrong_signature(self, refused):
        told, _ = refused("POST", "/webhooks/idp", data=b"{}")

        assert told == {
            "status": 401,
            "reason": "signature_invalid",
            "credential": "none",
            "address": "127.0.0.1",
        }


class TestForbidden:
    def test_names_the_user(self, refused):
        tenant = create_tenant()
        user, _, token = create_member(tenant, "viewer")

        told, text = refused("POST", "/v1/custom-fields", token=token, json={})

        assert told == {
            "status": 403,
            "reason": "permission_denied",
            "credential": "user_token",
            "principal": f"user:{tenant.id}:{user.id}",
            "address": "127.0.0.1",
        }
        assert token not in text

    def test_names_the_api_key(self, refused):
        tenant = create_tenant()
        user, _, _ = create_member(tenant)
        secret = create_api_key(tenant, [Permission.USERS_WRITE, Permission.USERS_READ])

        told, text = refused(
            "PATCH", f"/v1/users/{user.id}", token=secret, json={"idp_user_id": "other"}
        )

        assert told["principal"].startswith("key:")
        assert {**told, "principal": ""} == {
            "status": 403,
            "reason": "provider_field",
            "credential": "api_key",
            "principal": "",
            "address": "127.0.0.1",
        }
        assert secret not in text

    def test_names_the_address_of_a_user_without_membership(self, refused):
        _, _, token = create_member(create_tenant(), is_active=False)

        told, _ = refused("GET", "/v1/users", token=token)

        assert told == {
            "status": 403,
            "reason": "no_membership",
            "credential": "user_token",
            "address": "127.0.0.1",
        }

    def test_names_the_user_of_a_suspended_tenant(self, refused):
        tenant = create_tenant(is_active=False)
        user, _, token = create_member(tenant)

        told, _ = refused("GET", "/v1/users", token=token)

        assert told == {
            "status": 403,
            "reason": "tenant_suspended",
            "credential": "user_token",
            "principal": f"user:{tenant.id}:{user.id}",
            "address": "127.0.0.1",
        }

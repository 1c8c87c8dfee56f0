"""/v1/api-keys, and authenticating with what it makes."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from app.audit.models import AuditEvent
from app.auth.keys import digest_of
from app.auth.models import ApiKey
from app.auth.permissions import GRANTED_BY_PLATFORM, PLATFORM_ONLY, Permission
from app.cli.tokens import issue_token
from tests.concurrency import at_once
from tests.database import execute, row, rows
from tests.factories import (
    PLATFORM_SUBJECT,
    create_api_key,
    create_tenant,
    platform_token,
)

PATH = "/v1/api-keys"


def make(api, token, *permissions, path=PATH, **values):
    body = {"name": "billing handler", "permissions": list(permissions), **values}
    return api.post(path, token=token, json=body)


def key_row(secret):
    return row(ApiKey, digest=digest_of(secret))


def create_many(tenant, number):
    execute(
        "INSERT INTO api_keys (id, created_at, created_by_user_id, updated_at, updated_by_user_id,"
        " version, tenant_id, name, digest, prefix, permissions)"
        " SELECT gen_random_uuid(), now(), 'cli:x', now(), 'cli:x', 1, CAST(:tenant_id AS uuid),"
        " 'many', 'digest ' || n, 'sk_', '{}' FROM generate_series(1, :number) AS n",
        tenant_id=tenant and str(tenant.id),
        number=number,
    )


class TestCreateKey:
    def test_shows_the_secret_this_once(self, api, tenant, owner):
        answer = make(api, owner, "users:read", "billing:write")

        created = answer.get_json()["data"]
        secret = created.pop("secret")
        shown = api.get(answer.headers["Location"], token=owner).get_json()["data"]
        assert answer.status_code == 201
        assert secret.startswith("sk_")
        assert secret.startswith(created["prefix"])
        assert created["permissions"] == ["billing:write", "users:read"]
        assert created["tenant_id"] == str(tenant.id)
        assert shown == created
        assert secret not in api.get(PATH, token=owner).text

    def test_stores_the_secret_nowhere(self, api, owner):
        secret = make(api, owner, "users:read").get_json()["data"]["secret"]

        key, events = key_row(secret), rows(AuditEvent)
        assert secret not in repr(events) + repr(key)
        assert secret.removeprefix("sk_") not in repr(events) + repr(key)
        assert key.digest not in repr(events)
        assert [event.action for event in events] == ["api_key.created"]

    def test_replays_the_answer_without_the_secret(self, api, owner):
        body = {"name": "n", "permissions": ["users:read"]}
        key = {"Idempotency-Key": "once"}

        first = api.post(PATH, token=owner, json=body, headers=key)
        again = api.post(PATH, token=owner, json=body, headers=key)

        expected = first.get_json()["data"]
        del expected["secret"]
        assert again.status_code == 201
        assert again.get_json() == {"data": expected}
        assert again.headers["Location"] == first.headers["Location"]
        assert len(api.get(PATH, token=owner).get_json()["data"]) == 1

    def test_gives_a_platform_credential_the_tenant_it_names_or_none(self, api, tenant):
        named = make(api, platform_token(), "users:read", path=f"{PATH}?tenant_id={tenant.id}")
        none = make(api, platform_token(), "platform:superadmin")
        home = make(api, platform_token(tenant=tenant), "users:read")
        unknown = make(api, platform_token(), path=f"{PATH}?tenant_id={uuid4()}")

        assert named.get_json()["data"]["tenant_id"] == str(tenant.id)
        assert none.get_json()["data"]["tenant_id"] is None
        assert home.get_json()["data"]["tenant_id"] == str(tenant.id)
        assert unknown.status_code == 404

    @pytest.mark.parametrize("permission", list(Permission))
    def test_has_no_permission_that_its_creator_lacks(self, api, tenant, owner, permission):
        narrow = create_api_key(tenant, ["api_keys:write", "users:read"])
        narrow_platform = create_api_key(permissions=["api_keys:write", "webhooks:read"])

        codes = [
            make(api, token, permission).status_code for token in (owner, narrow, narrow_platform)
        ]

        assert codes == [
            403 if permission in PLATFORM_ONLY | GRANTED_BY_PLATFORM else 201,
            201 if permission in ("api_keys:write", "users:read") else 403,
            201 if permission in ("api_keys:write", "webhooks:read") else 403,
        ]

    def test_of_a_tenant_has_no_permission_of_the_platform(self, api, tenant):
        path = f"{PATH}?tenant_id={tenant.id}"

        answer = make(api, platform_token(), "webhooks:read", path=path)

        assert answer.status_code == 422
        assert answer.get_json()["detail"][0]["loc"] == ["body", "permissions"]

    @pytest.mark.parametrize("of_tenant", [True, False], ids=["tenant's key", "platform key"])
    def test_by_a_key_that_expires_ends_no_later(self, api, tenant, of_tenant):
        end = datetime.now(UTC) + timedelta(days=1)
        held = {"permissions": ["api_keys:write"], "expires_at": end}
        key = create_api_key(tenant if of_tenant else None, **held)
        moments = (None, end + timedelta(seconds=1), end)

        later = [
            make(api, key, "api_keys:write", expires_at=one and one.isoformat()) for one in moments
        ]
        unsaid = make(api, key, "api_keys:write")
        by_endless = make(api, create_api_key(tenant, ["api_keys:write"]), "api_keys:write")

        assert [one.status_code for one in later] == [403, 403, 201]
        for refused in (unsaid, *later[:2]):
            assert refused.get_json()["code"] == "expiry_beyond_own"
        assert by_endless.status_code == 201

    def test_refuses_unknown_permissions_and_moments_that_have_passed(self, api, owner):
        unknown = make(api, owner, "users:read", "users:fly")
        past = make(api, owner, "users:read", expires_at="2020-01-01T00:00:00Z")

        assert unknown.get_json()["detail"][0]["loc"] == ["body", "permissions", 1]
        assert past.get_json()["detail"][0]["loc"] == ["body", "expires_at"]

    def test_of_an_organization_that_no_tenant_has_needs_a_tenant(self, api, app, tenant):
        platform_token()
        token = issue_token(
            app.extensions["config"], subject=PLATFORM_SUBJECT, org_id="org_of_no_tenant"
        )

        refused = make(api, token, "users:read")
        named = make(api, token, "users:read", path=f"{PATH}?tenant_id={tenant.id}")

        (entry,) = refused.get_json()["detail"]
        assert refused.status_code == 422
        assert (entry["type"], entry["loc"]) == ("missing", ["query", "tenant_id"])
        assert named.get_json()["data"]["tenant_id"] == str(tenant.id)
        assert [key.tenant_id for key in rows(ApiKey)] == [tenant.id]


class TestLimit:
    def test_is_a_hundred_active_keys_also_when_two_come_at_once(self, api, tenant, owner):
        create_many(tenant, 99)
        create_api_key(tenant, expires_at=datetime.now(UTC))
        create_api_key(tenant, revoked_at=datetime.now(UTC))
        create_api_key(create_tenant())

        answers = at_once([lambda: make(api, owner, "users:read")] * 2)

        created, refused = sorted(answers, key=lambda answer: answer.status_code)
        assert (created.status_code, refused.status_code) == (201, 409)
        assert refused.get_json() == {
            "detail": "A tenant can have at most 100 active API keys; revoke one first.",
            "code": "too_many_api_keys",
        }

    def test_leaves_room_after_a_revocation(self, api, tenant, owner):
        create_many(tenant, 99)
        secret = create_api_key(tenant)

        refused = make(api, owner, "users:read")
        api.delete(f"{PATH}/{key_row(secret).id}", token=owner)

        assert (refused.status_code, make(api, owner, "users:read").status_code) == (409, 201)

    def test_is_not_the_platforms(self, api, app):
        create_api_key()
        create_many(None, 99)

        assert make(api, platform_token(), "users:read").status_code == 201


class TestUseKey:
    def test_is_recorded_as_the_actor(self, api, tenant):
        secret = create_api_key(tenant, ["users:write"])
        key_id = key_row(secret).id

        body = {"idp_user_id": "u", "email": "a@b.co"}
        answer = api.post("/v1/users", token=secret, json=body)

        assert answer.get_json()["data"]["created_by_user_id"] == f"key:{key_id}"

    def test_notes_its_use_at_most_once_a_minute(self, api, tenant):
        secret = create_api_key(tenant, ["users:read"])

        unused = key_row(secret).last_used_at
        api.get("/v1/users", token=secret)
        first = key_row(secret).last_used_at
        api.get("/v1/users", token=secret)
        second = key_row(secret).last_used_at
        execute("UPDATE api_keys SET last_used_at = last_used_at - interval '61 s'")
        api.get("/v1/users", token=secret)
        later = key_row(secret).last_used_at

        assert unused is None
        assert first == second
        assert later > first

    def test_notes_a_use_that_is_refused(self, api, tenant):
        secret = create_api_key(tenant, ["users:read"])

        assert api.post("/v1/users", token=secret, json={}).status_code == 403
        assert key_row(secret).last_used_at is not None


class TestRevokeKey:
    def test_counts_on_the_next_request(self, api, tenant, owner):
        secret = create_api_key(tenant, ["users:read"])
        path = f"{PATH}/{key_row(secret).id}"

        before = api.get("/v1/users", token=secret)
        answer = api.delete(path, token=owner)
        after = api.get("/v1/users", token=secret)
        again = api.delete(path, token=owner)

        shown = api.get(path, token=owner).get_json()["data"]
        events = api.get("/v1/audit-events", token=owner).get_json()["data"]
        assert (before.status_code, after.status_code) == (200, 401)
        assert (answer.status_code, answer.data) == (204, b"")
        assert again.status_code == 204
        assert shown["revoked_at"] is not None
        assert [event["action"] for event in events] == ["api_key.revoked"]


class TestListKeys:
    def test_tells_usable_keys_from_ended_ones(self, api, tenant, owner):
        now = datetime.now(UTC)
        usable = {
            str(key_row(create_api_key(tenant)).id),
            str(key_row(create_api_key(tenant, expires_at=now + timedelta(hours=1))).id),
        }
        ended = {
            str(key_row(create_api_key(tenant, expires_at=now)).id),
            str(key_row(create_api_key(tenant, revoked_at=now)).id),
        }

        def listed(query):
            return {key["id"] for key in api.get(f"{PATH}?{query}", token=owner).get_json()["data"]}

        assert listed("is_active=true") == usable
        assert listed("is_active=false") == ended

"""Roles, explanations and decisions of the past."""

import pytest

from app.auth.permissions import Permission
from app.core.clock import utcnow
from app.tenants.models import Tenant
from tests.database import row
from tests.factories import (
    create_api_key,
    create_member,
    platform_token,
)
from tests.scim.directory import Directory, create_connection

EVALUATION = "/access/v1/evaluation"
FLAGS = "/ofrep/v1/evaluate/flags"
AUDITOR = {"key": "auditor", "name": "Auditor", "permissions": ["audit:read"]}


@pytest.fixture
def moment(api):
    def now():
        api.sequence()
        return utcnow().isoformat().replace("+00:00", "Z")

    return now


@pytest.fixture
def tenant(api):
    body = {"name": "Acme", "slug": "acme", "idp_org_id": "org_acme"}
    made = api.post("/v1/tenants", token=platform_token(), json=body).get_json()["data"]
    return row(Tenant, id=made["id"])


class TestGroups:
    @pytest.fixture
    def directory(self, app, tenant, owner):
        return Directory(app, create_connection(tenant)[1])

    def test_their_members_had_their_roles(self, api, tenant, owner, directory, moment):
        api.post("/v1/roles", token=owner, json=AUDITOR)
        user_id = directory.add_user("ada@example.com")["id"]
        group = directory.add_group("Auditors", user_id)
        body = {"group_id": group["id"], "role": "auditor"}
        assert api.post("/v1/role-assignments", token=owner, json=body).status_code == 201
        inside = moment()
        directory.patch(f"/Groups/{group['id']}", {"op": "remove", "path": "members"})
        outside = moment()
        operation = {"op": "add", "path": "members", "value": [{"value": user_id}]}
        directory.patch(f"/Groups/{group['id']}", operation)
        again = moment()
        directory.delete(f"/Groups/{group['id']}")
        deleted = moment()

        def is_allowed(as_of):
            query = {"permission": "audit:read", "user_id": user_id, "as_of": as_of}
            answer = api.get("/v1/access/explain", token=owner, query_string=query)
            assert answer.headers["X-As-Of-Incomplete"] == "groups,usage"
            return answer.get_json()["data"]["allowed"]

        assert [is_allowed(one) for one in (inside, outside, again, deleted)] == [
            True, False, True, False,
        ]  # fmt: skip


class TestRoles:
    def test_a_template_was_always_there_with_what_it_had_then(self, api, owner, moment):
        early = moment()
        was = api.get("/v1/roles?is_template=true", token=owner).get_data()
        viewer = next(
            one
            for one in api.get("/v1/roles", token=owner).get_json()["data"]
            if one["key"] == "viewer"
        )
        for name in ("Reader", "Guest"):
            path = f"/v1/roles/{viewer['id']}"
            api.patch(path, token=platform_token(), json={"name": name})
        moment()

        past = api.get(f"/v1/roles?is_template=true&as_of={early}", token=owner)

        assert past.get_data() == was
        assert "X-As-Of-Incomplete" not in past.headers

    def test_of_another_tenant_have_no_past_here(self, api, owner, moment):
        other = api.post(
            "/v1/tenants",
            token=platform_token(),
            json={"name": "Other", "slug": "other", "idp_org_id": "org_other"},
        ).get_json()["data"]
        query = {"tenant_id": other["id"]}
        made = api.post("/v1/roles", token=platform_token(), json=AUDITOR, query_string=query)
        role_id = made.get_json()["data"]["id"]
        now = moment()

        found = api.get(f"/v1/roles?as_of={now}", token=owner).get_json()["data"]

        assert {one["tenant_id"] for one in found} == {None}
        assert api.get(f"/v1/roles/{role_id}?as_of={now}", token=owner).status_code == 404

    def test_a_role_that_was_replaced_was_the_earlier_one(self, api, tenant, owner, moment):
        _, membership, _ = create_member(tenant, role="viewer")
        for key in ("first", "second"):
            body = {**AUDITOR, "key": key}
            assert api.post("/v1/roles", token=owner, json=body).status_code == 201
        body = {"membership_id": str(membership.id), "role": "first"}
        made = api.post("/v1/role-assignments", token=owner, json=body).get_json()["data"]
        before = moment()
        query = {"replace_with": "second"}
        api.delete(f"/v1/roles/{role_id(api, owner, 'first')}", token=owner, query_string=query)
        after = moment()

        path = f"/v1/role-assignments/{made['id']}"
        roles = [api.get(f"{path}?as_of={one}", token=owner) for one in (before, after)]

        assert [one.get_json()["data"]["role"] for one in roles] == ["first", "second"]


def role_id(api, token, key):
    found = api.get("/v1/roles", token=token).get_json()["data"]
    return next(one["id"] for one in found if one["key"] == key)


class TestSuperadmins:
    def test_explain_who_was_one(self, app, api, tenant, moment):
        runner, token, before = app.test_cli_runner(), platform_token(), moment()
        runner.invoke(args=["platform-admins", "add", "boss"])
        during = moment()
        runner.invoke(args=["platform-admins", "remove", "boss", "--yes"])
        after = moment()

        def is_allowed(as_of):
            query = {"permission": "platform:superadmin", "subject": "boss", "as_of": as_of}
            answer = api.get("/v1/access/explain", token=token, query_string=query)
            return answer.get_json()["data"]["allowed"]

        assert [is_allowed(one) for one in (before, during, after)] == [False, True, False]


class TestKeys:
    def test_a_revoked_key_could_be_used(self, api, tenant, owner, moment):
        body = {"name": "k", "permissions": ["users:read"]}
        key = api.post("/v1/api-keys", token=owner, json=body).get_json()["data"]
        before = moment()
        api.delete(f"/v1/api-keys/{key['id']}", token=owner)
        after = moment()

        def status(as_of):
            query = {"permission": "users:read", "key_id": key["id"], "as_of": as_of}
            answer = api.get("/v1/access/explain", token=owner, query_string=query)
            return answer.get_json()["data"]["status"]

        assert [status(before), status(after)] == [200, 401]
        assert api.get(f"/v1/users?as_of={before}", token=key["secret"]).status_code == 401


class TestEvaluation:
    @pytest.fixture
    def key(self, tenant):
        return create_api_key(tenant, [Permission.ACCESS_READ, Permission.USAGE_WRITE])

    def test_does_not_consume(self, api, tenant, key, moment):
        consume = {"feature": "calls", "amount": 1}
        question = {
            "subject": {"type": "user", "id": "ada"},
            "action": {"name": "pay"},
            "resource": {"type": "doc", "id": "1"},
            "context": {"consume": consume},
        }

        answer = api.post(f"{EVALUATION}?as_of={moment()}", token=key, json=question)

        assert answer.status_code == 400
        assert "context.consume" in answer.text

    def test_refuses_a_moment_that_is_none_with_400(self, api, key):
        answer = api.post(f"{EVALUATION}?as_of=yesterday", token=key, json={})

        assert answer.status_code == 400


class TestOfrep:
    def test_is_for_platform_credentials(self, api, tenant, moment):
        token = create_api_key(tenant, [Permission.FLAGS_READ])

        answer = api.post(f"{FLAGS}?as_of={moment()}", token=token, json={})

        assert answer.status_code == 403
        assert answer.get_json()["errorCode"] == "GENERAL"

    def test_has_no_stream(self, api, moment):
        token = platform_token()
        flag = {"flag_key": "beta", "flag_type": "boolean", "default_value": True}
        plan = {"name": "free", "display_name": "Free", "flags": [flag]}
        made = api.post("/v1/billing/plans", token=token, json=plan).get_json()["data"]
        tenant = {"name": "T", "slug": "ttt", "idp_org_id": "org_ttt"}
        api.post("/v1/tenants", token=token, json=tenant)
        before = moment()
        changed = {"flags": [{**flag, "default_value": False}]}
        api.patch(f"/v1/billing/plans/{made['id']}", token=token, json=changed)
        moment()
        body = {"context": {"tenant_id": "ttt"}}

        now = api.post(FLAGS, token=token, json=body).get_json()
        past = api.post(f"{FLAGS}?as_of={before}", token=token, json=body).get_json()

        assert [one["value"] for one in now["flags"]] == [False]
        assert [one["value"] for one in past["flags"]] == [True]
        assert ("eventStreams" in now, "eventStreams" in past) == (True, False)

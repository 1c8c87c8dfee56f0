"""GET /ofrep/v1/events and /v1/access/events: a client learns when to ask again."""

import time
from itertools import cycle

import pytest

from app.auth.permissions import Permission
from tests.factories import (
    create_api_key,
    create_limits,
    create_member,
    create_override,
    create_preset,
    create_tenant,
    platform_token,
    preset_flag,
    user_token,
)
from tests.running.serving import wait_until
from tests.streams.support import address

PATH = "/ofrep/v1/events"
ACCESS = "/v1/access/events"


@pytest.fixture
def preset():
    return create_preset("free", beta=False)


def evaluate(api, token, **options):
    return api.post("/ofrep/v1/evaluate/flags", token=token, json={}, **options)


def add_override(api, tenant, value=True, key="beta"):
    body = {"flag_key": key, "flag_value": value}
    path = f"/v1/billing/flags/overrides?tenant_id={tenant.id}"
    answer = api.post(path, token=platform_token(), json=body)
    assert answer.status_code == 201, answer.json
    return answer.json["data"]


class TestStream:
    def test_tells_the_etag_of_the_new_flags(self, api, connect, tenant, owner, preset):
        client = connect(PATH, owner)
        first = client.next()

        add_override(api, tenant)
        began = time.monotonic()
        last_id, event = client.next()

        assert time.monotonic() - began < 5
        assert first[1]["type"] == event["type"] == "refetchEvaluation"
        assert first[1]["etag"] != event["etag"] == f'"{last_id}"'
        assert evaluate(api, owner).headers["ETag"] == event["etag"]
        assert client.is_quiet()

    def test_asks_clients_to_come_back_at_different_times(self, connect, owner, preset):
        clients = [connect(PATH, owner) for _ in range(3)]
        for client in clients:
            client.next()

        retries = [client.retries[0] for client in clients]

        assert all(1000 <= retry <= 5000 for retry in retries)
        assert len(set(retries)) > 1

    def test_tells_of_a_preset_to_all_its_tenants(self, api, connect, preset):
        tenants = [create_tenant(), create_tenant()]
        clients = [connect(PATH, create_member(one, role="owner")[2]) for one in tenants]
        first = [client.next() for client in clients]

        flags = [preset_flag("beta", True)]
        path = f"/v1/billing/plans/{preset.id}"
        answer = api.patch(path, token=platform_token(), json={"flags": flags})
        assert answer.status_code == 200, answer.json

        assert all(client.next() != before for client, before in zip(clients, first, strict=True))

    def test_says_nothing_about_another_tenant_or_what_changes_no_flag(
        self, api, connect, tenant, owner, preset
    ):
        client = connect(PATH, owner)
        client.next()

        add_override(api, create_tenant())
        api.patch(f"/v1/tenants/{tenant.id}", token=owner, json={"name": "Other"})

        assert client.is_quiet()

    def test_tells_a_user_of_their_role_and_fields_which_rules_compare(
        self, api, connect, tenant, owner
    ):
        rules = [
            {"name": name, "when": {"attribute": name, "op": "eq", "value": value}, "value": True}
            for name, value in (("user.role", "admin"), ("user.meta_data.desk", "b"))
        ]
        create_limits("free", {**preset_flag("beta", False), "rules": rules})
        user, membership, token = create_member(tenant, role="viewer")
        client, other = connect(PATH, token), connect(PATH, owner)
        client.next(), other.next()

        path, patches = f"/v1/users/{user.id}/meta_data", {"desk": "b"}
        answer = api.patch(path, token=owner, json={"patches": patches})
        assert answer.status_code == 200, answer.json
        assert client.next()[1]["type"] == "refetchEvaluation"
        answer = api.patch(f"/v1/memberships/tenant/{membership.id}/role?role=admin", token=owner)
        assert answer.status_code == 200, answer.json

        assert client.next()[1]["type"] == "refetchEvaluation"
        assert not client.has_ended.is_set()
        assert other.is_quiet()

    def test_of_a_platform_credential_names_the_tenant(self, api, connect, tenant, preset):
        key = create_api_key(None, [Permission.FLAGS_READ])
        client = connect(f"{PATH}?tenant_id={tenant.id}", key)
        client.next()

        add_override(api, tenant)

        assert client.next()
        assert connect(PATH, key).status == 422

    def test_ends_when_events_do_not_reach_the_client(self, api, connect, tenant, owner, preset):
        override, values = create_override(tenant, preset, "beta", True), cycle([False, True])
        for client in [connect(PATH, owner) for _ in range(3)]:  # STREAM_TENANT_LIMIT is 3
            client.close()

        def connects_again():
            path = f"/v1/billing/flags/overrides/{override.id}"
            api.patch(path, token=platform_token(), json={"flag_value": next(values)})
            time.sleep(0.3)
            return connect(PATH, owner).status == 200

        wait_until(connects_again)


class TestLastEventId:
    def test_of_the_present_flags_gets_no_event(self, api, connect, tenant, owner, preset):
        last_id, _ = connect(PATH, owner).next()

        client = connect(PATH, owner, **{"Last-Event-ID": last_id})

        assert client.is_quiet()
        add_override(api, tenant)
        assert client.next()

    def test_of_other_flags_gets_one_at_once(self, api, connect, tenant, owner, preset):
        before = connect(PATH, owner)
        last_id, _ = before.next()
        before.close()
        add_override(api, tenant)

        client = connect(PATH, owner, **{"Last-Event-ID": last_id})

        assert client.next()[1]["etag"] == evaluate(api, owner).headers["ETag"]


class TestGrant:
    @pytest.fixture
    def granted(self, api, connect, owner, preset):
        """The path of the stream that the answer for all flags names."""
        answer = evaluate(api, owner)
        (entry,) = answer.json["eventStreams"]
        assert entry["type"] == "sse"
        return address(entry)

    def test_opens_the_stream_without_a_header(self, api, connect, tenant, granted):
        client = connect(granted)
        client.next()

        add_override(api, tenant)

        assert client.next()

    def test_is_the_same_for_the_same_credential(self, api, owner, granted):
        assert address(evaluate(api, owner).json["eventStreams"][0]) == granted

    def test_changes_the_etag_where_it_changes(self, api, tenant, preset):
        user, _, token = create_member(tenant, role="owner")
        tags = {evaluate(api, one).headers["ETag"] for one in (token, user_token(user, ttl=99))}

        assert len(tags) == 2

    def test_is_refused_for_another_tenant_or_changed(self, connect, tenant, granted):
        other = granted.replace(str(tenant.id), str(create_tenant().id))

        for path in (other, f"{granted}A", granted.partition("&")[0], f"{PATH}?grant=x"):
            assert connect(path).status == 401

    def test_of_a_platform_credential_opens_the_stream_of_its_tenant_only(
        self, api, connect, tenant, preset
    ):
        key = create_api_key(None, [Permission.FLAGS_READ])
        body = {"context": {"tenant_id": str(tenant.id)}}
        answer = api.post("/ofrep/v1/evaluate/flags", token=key, json=body)
        path, other = address(answer.json["eventStreams"][0]), create_tenant()

        assert connect(path).status == 200
        assert connect(f"{path}&tenant_id={other.id}").status == 401
        assert connect(path.replace("?", f"?tenant_id={other.id}&")).status == 200

    def test_opens_nothing_else(self, api, granted):
        query = granted.partition("?")[2]

        assert api.get(f"/v1/events?{query}").status_code == 401
        assert api.post(f"/ofrep/v1/evaluate/flags?{query}", json={}).status_code == 401

    def test_no_credential_in_the_url_counts(self, connect, owner):
        for name in ("access_token", "token", "authorization", "grant"):
            assert connect(f"{PATH}?{name}={owner}").status == 401


class TestRefusals:
    def test_needs_a_credential_with_the_permission(self, connect, tenant, preset):
        assert connect(PATH).status == 401
        assert connect(PATH, create_api_key(tenant, [Permission.EVENTS_READ])).status == 403

    def test_a_tenant_has_a_limit(self, connect, owner, preset):
        for _ in range(3):
            connect(PATH, owner).next()

        refused = connect(PATH, owner)

        assert (refused.status, refused.body["code"]) == (429, "too_many_streams")
        assert refused.answer.headers["Retry-After"]

    def test_a_web_process_says_who_answers(self, api, owner, preset):
        answer = api.get(PATH, token=owner)

        assert (answer.status_code, answer.json["code"]) == (421, "not_stream_process")


class TestCredential:
    def test_that_is_revoked_ends_its_streams(self, api, connect, tenant, owner, preset):
        body = {"name": "flags", "permissions": ["flags:read"]}
        made = api.post("/v1/api-keys", token=owner, json=body).json["data"]
        client, other = connect(PATH, made["secret"]), connect(PATH, owner)
        client.next()

        api.delete(f"/v1/api-keys/{made['id']}", token=owner)

        assert client.has_ended.wait(10)
        assert not other.has_ended.is_set()
        assert connect(PATH, made["secret"]).status == 401

    def test_of_a_person_who_is_deactivated_ends_its_streams(self, api, connect, tenant, preset):
        user, _, token = create_member(tenant, role="member")
        client = connect(PATH, token)
        client.next()

        path = f"/v1/users/{user.id}"
        answer = api.patch(path, token=platform_token(), json={"is_active": False})

        assert answer.status_code == 200, answer.json
        assert client.has_ended.wait(10)

    def test_of_a_suspended_tenant_stays_and_learns_it(self, api, connect, tenant, owner, preset):
        create_override(tenant, preset, "beta", True)
        client = connect(PATH, owner)
        client.next()

        path, body = f"/v1/tenants/{tenant.id}/suspend", {"reason": "unpaid"}
        answer = api.post(path, token=platform_token(), json=body)
        assert answer.status_code == 200, answer.json

        assert client.next()[1]["etag"] == evaluate(api, owner).headers["ETag"]
        assert not client.has_ended.is_set()


class TestAccess:
    @pytest.fixture
    def key(self, tenant, preset):
        return create_api_key(tenant, [Permission.ACCESS_READ])

    def test_tells_the_etag_of_the_new_snapshot(self, api, connect, tenant, key, owner):
        user, *_ = create_member(tenant)
        client = connect(ACCESS, key)
        first = client.next()

        answer = api.patch(f"/v1/users/{user.id}", token=owner, json={"is_active": False})
        assert answer.status_code == 200, answer.json
        began = time.monotonic()
        last_id, event = client.next()
        while (more := api.get("/v1/access/snapshot", token=key).headers["ETag"]) != event["etag"]:
            last_id, event = client.next()  # the event has its position now

        assert time.monotonic() - began < 5
        assert first[1]["type"] == event["type"] == "refetchSnapshot"
        assert first[1]["etag"] != event["etag"] == f'"{last_id}"' == more

    def test_of_the_present_snapshot_begins_without_an_event(self, connect, key):
        last_id, _ = connect(ACCESS, key).next()

        assert connect(ACCESS, key, **{"Last-Event-ID": last_id}).is_quiet()

    def test_is_refused(self, connect, key):
        other = create_tenant()
        flags = create_api_key(other, [Permission.FLAGS_READ])

        assert connect(f"{ACCESS}?tenant_id={other.id}", key).status == 404
        assert connect(ACCESS, flags).status == 403

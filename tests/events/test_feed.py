"""/v1/events."""

import pytest

from app.core.actors import SYSTEM_IDP
from app.core.db import batches
from app.events import positions
from app.users import service as users
from tests import database
from tests.database import platform_transaction
from tests.events.support import read
from tests.factories import (
    create_api_key,
    create_member,
    create_preset,
    create_tenant,
    create_user,
    platform_token,
)


@pytest.fixture
def user(tenant):
    return create_user(tenant, first_name="Ada")


@pytest.fixture
def token(tenant):
    return create_member(tenant, role="owner")[2]


@pytest.fixture
def platform(app):
    return platform_token()


def rename(api, user, token, *names):
    for name in names:
        answer = api.patch(f"/v1/users/{user.id}", token=token, json={"first_name": name})
        assert answer.status_code == 200, answer.text
    return answer.get_json()["data"]


def names(page):
    return [event["data"]["first_name"] for event in page["data"]]


class TestListEvents:
    def test_shows_the_row_after_the_change_and_what_changed(self, api, user, platform, tenant):
        answer = api.patch(
            f"/v1/users/{user.id}",
            token=platform,
            json={"first_name": "Augusta"},
            headers={"X-Request-Id": "request-1"},
        )

        (event,) = read(api, platform)["data"]

        names = "id type timestamp position tenant_id tenant actor request_id data changes"
        assert list(event) == names.split()
        assert event["type"] == "user.updated"
        assert event["data"] == answer.get_json()["data"]
        assert event["changes"] == {"first_name": {"before": "Ada", "after": "Augusta"}}
        assert event["tenant_id"] == str(tenant.id)
        assert event["tenant"] == {"slug": tenant.slug, "idp_org_id": tenant.idp_org_id}
        assert event["actor"] == "platform:platform-operator"
        assert event["request_id"] == "request-1"

    def test_continues_after_a_position(self, api, user, token, platform):
        rename(api, user, token, "b", "c", "d")
        for credential in (token, platform):
            first = read(api, credential, limit=1)
            by_event = read(api, credential, after=first["data"][0]["position"])
            by_cursor = read(api, credential, after=first["next_cursor"], limit=1)
            last = read(api, credential, after=by_event["next_cursor"])
            again = read(api, credential, after=last["next_cursor"])

            assert names(by_event) == ["c", "d"]
            assert names(by_cursor) == ["c"]
            assert names(last) == names(again) == []

    def test_moves_a_reader_of_few_types_on(self, api, user, token, platform):
        start = read(api, platform)["next_cursor"] or "0"
        rename(api, user, token, "b", "c")

        page = read(api, platform, types="tenant.*", after=start)

        assert page == {"data": [], "next_cursor": str(int(start) + 2)}

    def test_filters_by_types(self, api, user, token, platform, tenant):
        rename(api, user, token, "b")
        api.patch(f"/v1/tenants/{tenant.id}", token=token, json={"name": "New"})
        api.patch(f"/v1/users/{user.id}/meta_data", token=token, json={"patches": {"a": 1}})

        def types(credential, wanted, **query):
            page = read(api, credential, types=wanted, **query)
            return [event["type"] for event in page["data"]]

        for credential in (token, platform):
            every = ["user.updated", "tenant.updated", "user.meta_data_patched"]
            assert types(credential, "user.*") == [every[0], every[2]]
            assert types(credential, "user.*,tenant.updated") == every
            assert types(credential, "*") == every
            assert types(credential, "user.*,tenant.*", limit=2) == every[:2]
            assert types(credential, "plan.created") == []

    @pytest.mark.parametrize("value", ["user", "users.*", "user.updated, tenant.updated", "", ","])
    def test_refuses_unknown_types(self, api, platform, value):
        answer = api.get("/v1/events", token=platform, query_string={"types": value})

        assert answer.status_code == 422
        assert answer.get_json()["detail"][0]["loc"] == ["query", "types"]

    def test_refuses_what_is_no_position(self, api, user, token, platform):
        rename(api, user, token, "b")
        other = create_member(create_tenant(), role="owner")[2]
        foreign = read(api, other)["next_cursor"]
        number = read(api, platform)["next_cursor"]
        after_the_last = str(int(number) + 1)

        for credential, *wrong in (
            (token, foreign, number, "x", "é"),
            (platform, foreign, "-1", "1" * 19, after_the_last, "١"),
        ):
            for after in wrong:
                answer = api.get("/v1/events", token=credential, query_string={"after": after})
                assert answer.status_code == 422, after
                assert answer.get_json()["detail"][0]["loc"] == ["query", "after"]

    def test_leaves_out_what_is_too_large(self, api, user, token, platform):
        for size, patches in ((9_000, {"a": "x" * 9_000}), (21_000, {"a": "x" * 21_000})):
            path = f"/v1/users/{user.id}/meta_data"
            assert api.patch(path, token=token, json={"patches": patches}).status_code == 200, size

        small, large = read(api, platform)["data"]

        assert small["data"]["meta_data"] == {"a": "x" * 9_000}
        assert large.keys() == small.keys() - {"data", "changes"} | {"truncated"}
        assert large["truncated"] is True
        stored = database.query("SELECT before, after, data FROM events ORDER BY position")
        assert stored[1] == (None, None, None)

    def test_a_page_has_8_mib_at_most(self, api, user, token, platform):
        rename(api, user, token, "b")
        (event,) = read(api, platform)["data"]
        database.execute(
            "INSERT INTO events SELECT position + number, tenant_id, id, created_at, type, actor,"
            " is_platform_actor, request_id, before, after, replace(data::text, '\"b\"',"
            " '\"' || repeat('x', 19000) || '\"')::json"
            " FROM events, generate_series(1, 500) AS number"
        )
        database.execute("UPDATE event_feed SET last_position = last_position + 500")

        page = read(api, platform, limit=1000)
        rest = read(api, platform, limit=1000, after=page["next_cursor"])

        assert 400 < len(page["data"]) < 501
        assert len(page["data"]) + len(rest["data"]) == 501
        assert page["next_cursor"] == str(event["position"] + len(page["data"]) - 1)

    def test_an_event_of_a_credential_has_no_secret(self, api, token, platform):
        body = {"name": "key", "permissions": ["users:read"]}
        key = api.post("/v1/api-keys", token=token, json=body).get_json()["data"]
        api.delete(f"/v1/api-keys/{key['id']}", token=token)

        read(api, platform)

        (row,) = database.query("SELECT digest FROM api_keys WHERE id = :id", id=key["id"])
        stored = str(database.query("SELECT * FROM events"))
        assert "api_key.revoked" in stored
        assert row.digest not in stored
        assert key["secret"] not in stored


class TestTenants:
    """What a tenant's credential sees."""

    def test_see_their_own_events_only(self, api, user, token, platform):
        other = create_user(create_tenant())
        rename(api, other, platform, "x")
        rename(api, user, platform, "b")
        create_preset()
        api.post("/v1/billing/plans", token=platform, json={"name": "pro", "flags": []})

        own, every = read(api, token), read(api, platform)

        assert names(own) == ["b"]
        assert [event["type"] for event in every["data"]] == [
            "user.updated",
            "user.updated",
            "plan.created",
        ]
        assert every["data"][2]["tenant_id"] is every["data"][2]["tenant"] is None
        of_tenant = read(api, platform, tenant_id=str(user.tenant_id))
        assert names(of_tenant) == ["b"]

    def test_see_no_positions(self, api, user, token, platform):
        rename(api, user, token, "b")
        (event,) = read(api, platform)["data"]

        (own,) = read(api, token)["data"]

        assert isinstance(own["position"], str)
        assert str(event["position"]) != own["position"]
        assert own == {**event, "position": own["position"]}

    def test_cannot_tell_whether_others_events_have_come(self, api, user, token, platform):
        rename(api, user, token, "b")
        first = read(api, token)["next_cursor"]
        quiet = read(api, token, after=first)["next_cursor"]
        rename(api, create_user(create_tenant()), platform, "x")
        busy = read(api, token, after=quiet)["next_cursor"]

        rename(api, user, token, "c")

        assert len({first, quiet, busy}) == 3
        assert len(first) == len(quiet) == len(busy)
        for cursor in (first, quiet, busy):
            assert names(read(api, token, after=cursor)) == ["c"]

    def test_see_the_platforms_people_as_platform(self, api, user, token, platform, tenant):
        rename(api, user, platform, "b")
        rename(api, user, create_api_key(None, ["users:write"]), "c")
        rename(api, user, create_api_key(tenant, ["users:write"]), "d")
        with platform_transaction():
            users.update(user.id, {"first_name": "e"}, actor=SYSTEM_IDP)
        rename(api, user, token, "f")

        actors = [event["actor"].partition(":")[0] for event in read(api, token)["data"]]

        assert actors[:4] == ["platform", "platform", "key", "system"]
        assert len(actors[4]) == 36


class TestRetention:
    def test_a_position_that_is_gone_is_410_with_the_oldest(
        self, app, api, user, token, platform, superuser, monkeypatch
    ):
        rename(api, user, token, "b", "c", "d")
        page, own = read(api, platform), read(api, token)
        first, second, third = (event["position"] for event in page["data"])
        superuser.execute(
            "UPDATE events SET created_at = created_at - interval '91 days' WHERE position <= %s",
            [second],
        )

        monkeypatch.setattr(batches, "BATCH", 1)
        with app.app_context():
            positions.remove_old()

        answer = api.get("/v1/events", token=platform, query_string={"after": first})
        assert answer.status_code == 410
        assert answer.get_json()["code"] == "position_gone"
        assert answer.get_json()["oldest"] == third
        assert names(read(api, platform)) == ["d"]
        assert names(read(api, platform, after=second)) == ["d"]
        mine = [event["position"] for event in own["data"]]
        answer = api.get("/v1/events", token=token, query_string={"after": mine[0]})
        assert (answer.status_code, answer.get_json()["oldest"]) == (410, mine[2])
        assert names(read(api, token, after=mine[1])) == ["d"]

    def test_positions_are_not_given_again(self, app, api, user, token, platform, superuser):
        rename(api, user, token, "b")
        (event,) = read(api, platform)["data"]
        superuser.execute("UPDATE events SET created_at = '2020-01-01'")
        with app.app_context():
            positions.remove_old()
            positions.remove_old()

        rename(api, user, token, "c")

        (next_,) = read(api, platform)["data"]
        assert next_["position"] == event["position"] + 1


class TestGetEvent:
    def test_shows_the_event_of_the_feed(self, api, user, token, platform):
        rename(api, user, token, "b")
        for credential in (token, platform):
            (event,) = read(api, credential)["data"]

            answer = api.get(f"/v1/events/{event['id']}", token=credential)

            assert answer.get_json() == {"data": event}

"""PATCH /v1/users/{user_id}/meta_data."""

import json
from functools import partial

import pytest

from tests.concurrency import at_once
from tests.factories import create_user, platform_token


def patch(api, user, token, patches, **options):
    return api.patch(
        f"/v1/users/{user.id}/meta_data", token=token, json={"patches": patches}, **options
    )


def stored(api, user, token):
    return json.loads(api.get(f"/v1/users/{user.id}", token=token).data)["data"]["meta_data"]


class TestPatchMetaData:
    def test_merges_and_leaves_other_keys_alone(self, api, tenant, admin):
        user = create_user(tenant, meta_data={"keep": 1, "drop": 2, "deep": {"a": 1, "b": 2}})

        answer = patch(api, user, admin, {"drop": None, "deep": {"a": None, "c": [None]}, "new": 0})

        merged = {"keep": 1, "deep": {"b": 2, "c": [None]}, "new": 0}
        assert answer.get_json()["data"]["meta_data"] == merged
        assert stored(api, user, admin) == merged

    @pytest.mark.parametrize("value", [1, 1.0, True, "1", 10**30, 0.1, -0.0, [], {}])
    def test_keeps_the_spelling_of_values(self, api, tenant, admin, value):
        user = create_user(tenant, meta_data={"a": 1.0 if type(value) is int else 1})

        patch(api, user, admin, {"a": value})

        assert json.dumps(stored(api, user, admin)) == json.dumps({"a": value})

    def test_of_nothing_changes_nothing(self, api, tenant, admin):
        user = create_user(tenant, meta_data={"a": {"b": 1}})

        for patches in ({}, {"a": {}}, {"a": {"b": 1}}, {"gone": None}):
            answer = patch(api, user, admin, patches)
            assert (answer.status_code, answer.headers["ETag"]) == (200, '"1"')

        events = api.get("/v1/audit-events", token=platform_token()).get_json()["data"]
        assert events == []

    def test_takes_what_fits_its_limit_to_the_byte(self, api, tenant, admin):
        user = create_user(tenant, meta_data={"a": 1})
        room = 32_768 - len('{"a":1,"b":""}')

        over = patch(api, user, admin, {"b": "x" * (room + 1)})
        exact = patch(api, user, admin, {"b": "x" * room})

        (fault,) = over.get_json()["detail"]
        assert over.status_code == 422
        assert (fault["type"], fault["loc"]) == ("value_error", ["body", "patches"])
        assert "32768 bytes" in fault["msg"]
        assert exact.status_code == 200

    def test_counts_the_limit_in_bytes_after_the_merge(self, api, tenant, admin):
        user = create_user(tenant, meta_data={"a": "x" * 30_000})

        too_large = patch(api, user, admin, {"b": "ä" * 1_500})
        smaller = patch(api, user, admin, {"a": None, "b": "ä" * 15_000})

        assert too_large.status_code == 422
        assert smaller.status_code == 200


class TestConcurrentPatches:
    def test_fifty_clients_patching_different_keys_lose_nothing(self, api, tenant, admin):
        user = create_user(tenant, meta_data={"old": {}})
        patches = [{f"k{n}": n, "old": {f"k{n}": n}} for n in range(50)]

        answers = at_once([partial(patch, api, user, admin, one) for one in patches])

        keys = {f"k{n}": n for n in range(50)}
        assert [answer.status_code for answer in answers] == [200] * 50
        assert stored(api, user, admin) == {"old": keys, **keys}

    def test_of_a_hundred_writers_with_one_etag_one_wins(self, api, tenant, admin):
        user = create_user(tenant)
        write = partial(patch, api, user, admin, headers={"If-Match": '"1"'})

        answers = at_once([partial(write, {"winner": n}) for n in range(100)])

        codes = [answer.status_code for answer in answers]
        assert codes.count(200) == 1
        assert codes.count(412) == 99
        assert stored(api, user, admin) == {"winner": codes.index(200)}

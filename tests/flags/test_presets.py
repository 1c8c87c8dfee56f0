"""Plan presets over HTTP."""

from __future__ import annotations

import json

import pytest

from app.audit.models import AuditEvent
from app.auth.permissions import Permission, Role
from tests.database import rows
from tests.factories import (
    create_api_key,
    create_member,
    create_override,
    create_preset,
    create_subscription,
    create_tenant,
    platform_token,
    preset_flag,
)

URL = "/v1/billing/plans"
FLAGS = [
    {"flag_key": "beta", "flag_type": "boolean", "default_value": False},
    {"flag_key": "theme", "flag_type": "string", "default_value": "plain"},
    {"flag_key": "seats", "flag_type": "number", "default_value": 5, "is_locked": True},
    {"flag_key": "ratio", "flag_type": "number", "default_value": 5.0},
    {"flag_key": "limits", "flag_type": "json", "default_value": {"a": [1, 1.0, None]}},
]


def faults(answer):
    assert answer.status_code == 422, answer.json
    return [(error["type"], error["loc"]) for error in answer.json["detail"]]


class TestCreatePreset:
    def test_answers_its_fields_in_order_and_its_flags_as_sent(self, api):
        answer = api.post(URL, token=platform_token(), json={"name": "growth", "flags": FLAGS})

        data = answer.json["data"]
        assert answer.status_code == 201
        assert list(data) == ["id", "created_at", "updated_at", "name", "flags"]
        assert list(data["flags"][0]) == [
            "flag_key",
            "flag_type",
            "default_value",
            "description",
            "is_locked",
        ]
        values = [flag["default_value"] for flag in data["flags"]]
        assert json.dumps(values) == json.dumps([flag["default_value"] for flag in FLAGS])
        assert answer.headers["Location"] == f"{URL}/{data['id']}"

    def test_needs_a_name_only(self, api):
        answer = api.post(URL, token=platform_token(), json={"name": "free"})

        assert answer.json["data"]["flags"] == []

    def test_refuses_a_name_that_is_taken(self, api):
        create_preset("growth")

        answer = api.post(URL, token=platform_token(), json={"name": "growth"})

        assert (answer.status_code, answer.json["code"]) == (409, "preset_name_taken")

    @pytest.mark.parametrize(
        ("flag_type", "value", "type_"),
        [
            ("boolean", "true", "bool_type"),
            ("boolean", 1, "bool_type"),
            ("boolean", None, "bool_type"),
            ("string", 1, "string_type"),
            ("number", "1", "float_type"),
            ("number", True, "float_type"),
        ],
    )
    def test_refuses_a_value_of_another_type(self, api, flag_type, value, type_):
        flag = {"flag_key": "a", "flag_type": flag_type, "default_value": value}

        answer = api.post(URL, token=platform_token(), json={"name": "x", "flags": [flag]})

        assert faults(answer) == [(type_, ["body", "flags", 0, "default_value"])]

    def test_refuses_a_key_twice_and_a_value_too_long(self, api):
        twice = [preset_flag("a", "x"), preset_flag("a", "y")]
        long = [preset_flag("a", "x" * 20_000)]

        answers = [
            api.post(URL, token=platform_token(), json={"name": "x", "flags": flags})
            for flags in (twice, long)
        ]

        assert faults(answers[0]) == [("value_error", ["body", "flags", 1, "flag_key"])]
        assert faults(answers[1]) == [("value_error", ["body", "flags", 0, "default_value"])]

    @pytest.mark.parametrize("key", ["", "a b", "a/b", "é", "a\n", "x" * 129])
    def test_refuses_keys_that_cannot_stand_in_a_path(self, api, key):
        flags = [preset_flag(key, True)]

        answer = api.post(URL, token=platform_token(), json={"name": "x", "flags": flags})

        assert faults(answer) == [("string_pattern_mismatch", ["body", "flags", 0, "flag_key"])]

    def test_names_what_is_missing_or_unknown_in_a_flag(self, api):
        body = {"name": "x", "flags": [{"x": 1}, 2]}

        answer = api.post(URL, token=platform_token(), json=body)

        assert faults(answer) == [
            ("missing", ["body", "flags", 0, "flag_key"]),
            ("missing", ["body", "flags", 0, "flag_type"]),
            ("missing", ["body", "flags", 0, "default_value"]),
            ("extra_forbidden", ["body", "flags", 0, "x"]),
            ("model_attributes_type", ["body", "flags", 1]),
        ]

    def test_refuses_everybody_but_superadmins(self, api):
        _, _, owner = create_member(create_tenant(), Role.OWNER)
        key = create_api_key(permissions=[Permission.FLAGS_WRITE, Permission.BILLING_WRITE])

        for token in (owner, key):
            answer = api.post(URL, token=token, json={"name": "x"})

            assert (answer.status_code, answer.json["code"]) == (403, "permission_denied")


class TestReadPresets:
    def test_every_tenant_sees_them(self, api):
        preset = create_preset("growth", beta=True)
        _, _, token = create_member(create_tenant(), Role.MEMBER)

        listed = api.get(URL, token=token, query_string={"name": "growth"})
        one = api.get(f"{URL}/{preset.id}", token=token)

        assert listed.json["data"] == [one.json["data"]]
        assert listed.json["next_cursor"] is None
        assert one.headers["ETag"] == '"1"'

    def test_refuses_a_key_without_flags_read(self, api):
        key = create_api_key(create_tenant(), [Permission.USERS_READ])

        assert api.get(URL, token=key).status_code == 403

    @pytest.mark.parametrize("preset_id", ["x", "%00", "0198a8f0-0000-7000-8000-000000000000"])
    def test_does_not_find_an_unknown_one(self, api, preset_id):
        assert api.get(f"{URL}/{preset_id}", token=platform_token()).status_code == 404


class TestUpdatePreset:
    def test_replaces_the_flags(self, api):
        preset = create_preset("growth", beta=True, old=1)

        answer = api.patch(
            f"{URL}/{preset.id}",
            token=platform_token(),
            json={"flags": [preset_flag("beta", 5.0)]},
        )

        assert answer.json["data"]["name"] == "growth"
        assert answer.json["data"]["flags"] == [preset_flag("beta", 5.0)]
        assert answer.headers["ETag"] == '"2"'

    def test_takes_back_what_it_was_read_as(self, api):
        preset = create_preset("growth", beta=True, limits={"a": None})
        token = platform_token()
        read = api.get(f"{URL}/{preset.id}", token=token)

        answer = api.patch(f"{URL}/{preset.id}", token=token, json=read.json["data"])

        assert answer.status_code == 200
        assert (answer.json, answer.headers["ETag"]) == (read.json, read.headers["ETag"])

    def test_refuses_to_write_an_id_or_a_time(self, api):
        preset = create_preset("growth")
        body = {
            "id": "0198a8f0-0000-7000-8000-000000000000",
            "created_at": "2020-01-01T00:00:00Z",
        }

        answer = api.patch(f"{URL}/{preset.id}", token=platform_token(), json=body)

        assert faults(answer) == [
            ("extra_forbidden", ["body", "id"]),
            ("extra_forbidden", ["body", "created_at"]),
        ]

    def test_refuses_a_name_that_is_taken(self, api):
        create_preset("free")
        preset = create_preset("growth")

        answer = api.patch(f"{URL}/{preset.id}", token=platform_token(), json={"name": "free"})

        assert (answer.status_code, answer.json["code"]) == (409, "preset_name_taken")

    def test_refuses_a_version_that_is_gone(self, api):
        preset = create_preset("growth")

        answer = api.patch(
            f"{URL}/{preset.id}", token=platform_token(), json={}, headers={"If-Match": '"7"'}
        )

        assert answer.status_code == 412

    def test_refuses_a_tenants_owner(self, api):
        preset = create_preset("growth")
        _, _, token = create_member(create_tenant(), Role.OWNER)

        assert api.patch(f"{URL}/{preset.id}", token=token, json={}).status_code == 403


class TestDeletePreset:
    def test_deletes_it(self, api):
        preset = create_preset("growth", seats=5)

        answer = api.delete(f"{URL}/{preset.id}", token=platform_token())

        (event,) = rows(AuditEvent, action="plan_preset.deleted")
        assert (answer.status_code, answer.data) == (204, b"")
        assert api.get(f"{URL}/{preset.id}", token=platform_token()).status_code == 404
        assert (event.before["name"], event.after) == ("growth", {})

    def test_refuses_one_in_use_with_the_numbers(self, api):
        preset = create_preset("growth", seats=5)
        other = create_tenant()
        create_tenant(plan_name="growth")
        create_subscription(other, plan_name="growth", bp_status="canceled")
        create_subscription(other, plan_name="growth")
        create_override(other, preset, "seats", 7)

        answer = api.delete(f"{URL}/{preset.id}", token=platform_token())

        assert (answer.status_code, answer.json["code"]) == (409, "plan_in_use")
        assert answer.json["detail"] == (
            "This plan is in use by tenants: 1, subscriptions that have not ended: 1, overrides: 1."
        )

    def test_of_an_ended_subscription_is_free(self, api):
        preset = create_preset("growth")
        create_subscription(create_tenant(), plan_name="growth", bp_status="canceled")

        assert api.delete(f"{URL}/{preset.id}", token=platform_token()).status_code == 204

    def test_refuses_a_version_that_is_gone(self, api):
        preset = create_preset("growth")

        answer = api.delete(
            f"{URL}/{preset.id}", token=platform_token(), headers={"If-Match": '"7"'}
        )

        assert answer.status_code == 412

    def test_refuses_a_tenants_owner(self, api):
        preset = create_preset("growth")
        _, _, token = create_member(create_tenant(), Role.OWNER)

        assert api.delete(f"{URL}/{preset.id}", token=token).status_code == 403

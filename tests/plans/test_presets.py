"""Plan presets over HTTP."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.auth.permissions import Role
from app.core.actors import SYSTEM_CLI
from app.plans import presets
from tests.database import platform_transaction, wait_for_lock
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


def patch(api, preset, body, force=""):
    return api.patch(f"{URL}/{preset.id}{force}", token=platform_token(), json=body)


class TestCreatePreset:
    def test_answers_its_fields_in_order_and_its_flags_as_sent(self, api):
        answer = api.post(URL, token=platform_token(), json={"name": "growth", "flags": FLAGS})

        data = answer.json["data"]
        assert answer.status_code == 201
        assert list(data) == ["id", "created_at", "updated_at", "name", "flags", "display_name"]
        assert data["display_name"] == ""
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

    def test_refuses_too_many_flags(self, api):
        flags = [preset_flag(f"f{number}", True) for number in range(1001)]
        body = {"name": "large", "flags": flags}

        answer = api.post(URL, token=platform_token(), json=body)
        fewer = api.post(URL, token=platform_token(), json={**body, "flags": flags[1:]})

        assert faults(answer) == [("too_long", ["body", "flags"])]
        assert fewer.status_code == 201

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


class TestReadPresets:
    def test_every_tenant_sees_them(self, api):
        preset = create_preset("growth", beta=True)
        _, _, token = create_member(create_tenant(), Role.MEMBER)

        listed = api.get(URL, token=token, query_string={"name": "growth"})
        one = api.get(f"{URL}/{preset.id}", token=token)

        assert listed.json["data"] == [one.json["data"]]
        assert listed.json["next_cursor"] is None
        assert one.headers["ETag"] == '"1"'


class TestUpdatePreset:
    def test_replaces_the_flags(self, api):
        preset = create_preset("growth", beta=True, old=1)

        answer = api.patch(
            f"{URL}/{preset.id}", token=platform_token(), json={"flags": [preset_flag("beta", 5.0)]}
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

    def test_refuses_another_name_while_it_is_in_use_with_the_numbers(self, api):
        preset = create_preset("growth")
        other = create_tenant(plan_name="growth")
        create_subscription(other)
        create_subscription(create_tenant(), plan_name="growth", bp_status="canceled")

        answer = patch(api, preset, {"name": "grown", "display_name": "Grown"})

        assert (answer.status_code, answer.json["code"]) == (409, "plan_in_use")
        assert answer.json["detail"] == (
            "This plan is in use by tenants: 1, subscriptions that have not ended: 1, overrides: 0."
            " First give the tenants and subscriptions another plan, and delete the overrides."
        )

    def test_takes_another_name_where_nobody_uses_it(self, api):
        preset, tenant = create_preset("growth", beta=True), create_tenant()
        create_override(tenant, preset, "beta", False)
        create_subscription(tenant, plan_name="growth", bp_status="canceled")

        assert patch(api, preset, {"name": "grown"}).json["data"]["name"] == "grown"


class TestLocks:
    def test_a_flag_is_locked_unless_it_says_so(self, api):
        flags = [*FLAGS, {**FLAGS[0], "flag_key": "open", "is_locked": False}]

        made = api.post(URL, token=platform_token(), json={"name": "x", "flags": flags}).json

        assert [flag["is_locked"] for flag in made["data"]["flags"]] == [True] * 5 + [False]

    def test_a_flag_that_exists_keeps_its_lock_where_none_is_given(self, api):
        preset = create_preset("growth", beta=True)
        flags = [
            {"flag_key": "new", "flag_type": "boolean", "default_value": True},
            {"flag_key": "beta", "flag_type": "boolean", "default_value": False},
        ]

        changed = patch(api, preset, {"flags": flags}).json["data"]["flags"]

        assert [(flag["flag_key"], flag["is_locked"]) for flag in changed] == [
            ("new", True),
            ("beta", False),
        ]


class TestFlagsInUse:
    @pytest.fixture
    def preset(self, app):
        preset = create_preset("growth", beta=True, theme="plain", unused=1)
        create_override(create_tenant(), preset, "beta", False)
        create_override(create_tenant(), preset, "beta", False)
        return preset

    def test_cannot_get_another_type(self, api, preset):
        flags = [preset_flag("beta", "text"), preset_flag("theme", 1), preset_flag("unused", 1)]

        for force in ("", "?force=true"):
            answer = patch(api, preset, {"flags": flags}, force)

            assert (answer.status_code, answer.json["code"]) == (409, "flag_in_use")
            assert "another type: beta (2). Delete these overrides first" in answer.json["detail"]

    def test_cannot_be_removed_without_force(self, api, preset):
        refused = patch(api, preset, {"flags": []})
        forced = patch(api, preset, {"flags": []}, "?force=true")

        assert (refused.status_code, refused.json["code"]) == (409, "flag_in_use")
        assert "removed: beta (2). Set force (?force=true" in refused.json["detail"]
        assert forced.json["data"]["flags"] == []

    def test_others_are_free(self, api, preset):
        flags = [preset_flag("beta", False), preset_flag("theme", 1)]

        assert patch(api, preset, {"flags": flags}).status_code == 200

    def test_an_override_waits_for_a_change_of_its_flag(self, api, preset):
        """An override that is created meanwhile sees the flag's new type."""
        tenant = create_tenant(plan_name="growth")

        def override():
            return api.post(
                "/v1/billing/flags/overrides",
                token=platform_token(),
                query_string={"tenant_id": str(tenant.id)},
                json={"flag_key": "unused", "flag_value": 7},
            )

        with ThreadPoolExecutor() as threads, platform_transaction():
            flags = [*preset.flags[:2], preset_flag("unused", "text")]
            presets.update_preset(preset.id, {"flags": flags}, actor=SYSTEM_CLI)
            waiting = threads.submit(override)
            wait_for_lock(waiting)
        assert faults(waiting.result()) == [("string_type", ["body", "flag_value"])]


class TestDeletePreset:
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
            " First give the tenants and subscriptions another plan, and delete the overrides."
        )


class TestLimits:
    METERING = {"period": "month", "policy": "hard", "warn_at": [80, 100]}

    def send(self, api, **flag):
        flag = {"flag_key": "calls", "flag_type": "limit", "default_value": 5, **flag}
        flag = {name: value for name, value in flag.items() if value is not ...}
        return api.post(URL, token=platform_token(), json={"name": "x", "flags": [flag]})

    @pytest.mark.parametrize("value", [0, -1, 10**15])
    def test_are_integers_or_unlimited(self, api, value):
        answer = self.send(api, default_value=value, metering=self.METERING)

        assert answer.json["data"]["flags"][0]["default_value"] == value

    @pytest.mark.parametrize(
        ("value", "type_"),
        [
            (-2, "value_error"),
            (10**15 + 1, "value_error"),
            (2**64, "value_error"),
            (5.0, "int_type"),
            ("5", "int_type"),
            (True, "int_type"),
            (None, "int_type"),
        ],
    )
    def test_are_nothing_else(self, api, value, type_):
        answer = self.send(api, default_value=value, metering=self.METERING)

        assert faults(answer) == [(type_, ["body", "flags", 0, "default_value"])]

    def test_need_metering_and_other_flags_refuse_it(self, api):
        missing = self.send(api)
        extra = self.send(api, flag_type="number", metering=self.METERING)

        assert faults(missing) == [("missing", ["body", "flags", 0, "metering"])]
        assert faults(extra) == [("extra_forbidden", ["body", "flags", 0, "metering"])]

    @pytest.mark.parametrize(
        "metering",
        [
            None,
            {},
            {"period": "year"},
            {"period": "day", "policy": "x"},
            {"period": "day", "warn_at": [0]},
            {"period": "day", "warn_at": [101]},
            {"period": "day", "warn_at": [1] * 11},
            {"period": "day", "more": 1},
        ],
    )
    def test_refuse_other_metering(self, api, metering):
        answer = self.send(api, metering=metering)

        assert answer.status_code == 422
        assert answer.json["detail"][0]["loc"][:4] == ["body", "flags", 0, "metering"]

    def test_that_are_credits_can_be_sent_back(self, api):
        credits = {**self.METERING, "kind": "credits", "rollover": "cap", "rollover_cap": 9}
        flags = [
            self.flag("tokens", {**credits, "warn_below": [5]}),
            self.flag("images", {**self.METERING, "burns": {"credits": "tokens", "rate": 3}}),
        ]

        answer = api.post(URL, token=platform_token(), json={"name": "x", "flags": flags})

        made = answer.json["data"]
        assert [flag["metering"] for flag in made["flags"]] == [flag["metering"] for flag in flags]
        answer = api.patch(f"{URL}/{made['id']}", token=platform_token(), json=made)
        assert (answer.status_code, answer.json["data"]) == (200, made)

    @pytest.mark.parametrize(
        ("metering", "field"),
        [
            ({"kind": "credits", "policy": "soft"}, "policy"),
            ({"kind": "credits", "rollover": "cap"}, "rollover_cap"),
            ({"kind": "credits", "rollover": "all", "rollover_cap": 1}, "rollover_cap"),
            ({"kind": "credits", "burns": {"credits": "calls", "rate": 1}}, "burns"),
            ({"kind": "tokens"}, "kind"),
            ({"rollover": "all"}, "rollover"),
            ({"warn_below": [1]}, "warn_below"),
            ({"burns": {"credits": "nope", "rate": 1}}, "burns"),
            ({"burns": {"credits": "calls", "rate": 1}}, "burns"),
            ({"burns": {"credits": "calls", "rate": 0}}, "burns"),
            ({"burns": {"credits": "calls", "rate": 1.5}}, "burns"),
        ],
    )
    def test_refuse_metering_that_contradicts_itself(self, api, metering, field):
        answer = self.send(api, metering={**self.METERING, **metering})

        assert [loc[:5] for _, loc in faults(answer)] == [["body", "flags", 0, "metering", field]]

    def test_of_seats_are_no_credits(self, api):
        answer = self.send(api, flag_key="seats", metering={**self.METERING, "kind": "credits"})

        assert faults(answer) == [("value_error", ["body", "flags", 0, "metering", "kind"])]

    @staticmethod
    def flag(key, metering):
        return {"flag_key": key, "flag_type": "limit", "default_value": 5, "metering": metering}

    def test_are_shown_by_ofrep_as_their_number(self, api):
        made = self.send(api, metering=self.METERING).json["data"]
        tenant = create_tenant(plan_name="x")
        key = create_api_key(tenant, ["flags:read"])
        body = {"flag_key": "calls", "flag_value": -1}
        query = {"tenant_id": str(tenant.id)}

        before = api.post("/ofrep/v1/evaluate/flags/calls", token=key, json={})
        overrides = "/v1/billing/flags/overrides"
        made = api.post(overrides, token=platform_token(), json=body, query_string=query)
        after = api.post("/ofrep/v1/evaluate/flags/calls", token=key, json={})

        assert made.status_code == 201
        assert (before.json["value"], after.json["value"]) == (5, -1)
        refused = {"flag_key": "calls", "flag_value": -2}
        answer = api.post(overrides, token=platform_token(), json=refused, query_string=query)
        assert faults(answer) == [("value_error", ["body", "flag_value"])]

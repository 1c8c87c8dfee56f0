"""Feature flag overrides over HTTP."""

import json
import threading
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from app.audit.models import AuditEvent
from app.auth.permissions import Permission, Role
from app.flags.models import FeatureOverride
from app.plans.models import PlanPreset
from tests.database import execute, row, rows
from tests.factories import (
    create_api_key,
    create_member,
    create_override,
    create_preset,
    create_tenant,
    platform_token,
    preset_flag,
    save,
)

URL = "/v1/billing/flags/overrides"
PAST, FUTURE = "2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z"


@pytest.fixture
def preset(app):
    return create_preset(beta=False)


def create(api, tenant, flag_key, flag_value, **values):
    return api.post(
        URL,
        token=platform_token(),
        query_string={"tenant_id": str(tenant.id)},
        json={"flag_key": flag_key, "flag_value": flag_value, **values},
    )


def update(api, override, body, token=None, **headers):
    path = f"{URL}/{override.id}"
    return api.patch(path, token=token or platform_token(), json=body, headers=headers)


def faults(answer):
    assert answer.status_code == 422, answer.json
    return [(error["type"], error["loc"][1]) for error in answer.json["detail"]]


def audit_actions(tenant):
    return [event.action for event in rows(AuditEvent, tenant_id=tenant.id)]


class TestCreateOverride:
    def test_shows_the_end_where_the_request_asks_for_it(self, api, preset):
        tenant = create_tenant()
        query = {"tenant_id": str(tenant.id), "include": "expires_at,preset"}
        body = {"flag_key": "beta", "flag_value": True, "expires_at": "2999-01-01T00:00:00Z"}

        answer = api.post(URL, token=platform_token(), query_string=query, json=body)

        assert answer.status_code == 201
        assert answer.json["data"]["expires_at"] == "2999-01-01T00:00:00Z"
        assert answer.json["data"]["preset"]["name"] == "free"
        assert answer.headers["ETag"]

    def test_refuses_an_expiry_in_the_past(self, api, preset):
        answer = create(api, create_tenant(), "beta", True, expires_at=PAST)

        assert faults(answer) == [("value_error", "expires_at")]

    def test_refuses_the_same_flag_twice(self, api, preset):
        tenant = create_tenant()
        create(api, tenant, "beta", True)

        answer = create(api, tenant, "beta", False)

        assert (answer.status_code, answer.json["code"]) == (409, "flag_key_taken")

    def test_refuses_a_flag_that_the_preset_has_not(self, api, preset):
        answer = create(api, create_tenant(), "gamma", True)

        assert faults(answer) == [("value_error", "flag_key")]

    def test_refuses_a_preset_that_is_not(self, api, preset):
        unknown = "0198a8f0-0000-7000-8000-000000000000"

        without = create(api, create_tenant(plan_name="none"), "beta", True)
        other = create(api, create_tenant(), "beta", True, plan_preset_id=unknown)

        assert faults(without) == faults(other) == [("value_error", "plan_preset_id")]

    def test_refuses_a_value_of_another_type(self, api, preset):
        assert faults(create(api, create_tenant(), "beta", 1)) == [("bool_type", "flag_value")]

    def test_stops_at_five_hundred_also_when_two_come_at_once(self, app, api):
        flags = [preset_flag(f"f{number}", True) for number in range(501)]
        preset, tenant = save(PlanPreset, name="free", flags=flags), create_tenant()
        execute(
            "INSERT INTO feature_overrides (id, created_at, updated_at, version, tenant_id,"
            " plan_preset_id, flag_key, flag_value)"
            " SELECT gen_random_uuid(), now(), now(), 1, CAST(:tenant_id AS uuid),"
            " CAST(:preset_id AS uuid), 'f' || number, 'false'"
            " FROM generate_series(0, 498) AS number",
            tenant_id=str(tenant.id),
            preset_id=str(preset.id),
        )
        token, answers = platform_token(), []

        def send(key):
            answers.append(
                api.post(
                    URL,
                    token=token,
                    query_string={"tenant_id": str(tenant.id)},
                    json={"flag_key": key, "flag_value": False},
                )
            )

        threads = [threading.Thread(target=send, args=(key,)) for key in ("f499", "f500")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert sorted(answer.status_code for answer in answers) == [201, 409]
        refusal = next(answer.json for answer in answers if answer.status_code == 409)
        assert refusal["code"] == "too_many_overrides"
        assert "500" in refusal["detail"]


class TestReadOverrides:
    def test_the_platform_narrows_by_every_filter(self, api):
        preset, tenant = create_preset(beta=False, theme="a"), create_tenant()
        wanted = create_override(tenant, preset, "beta", True)
        create_override(tenant, preset, "theme", "b")
        create_override(create_tenant(), preset, "beta", True)
        query = {"tenant_id": str(tenant.id), "plan_preset_id": str(preset.id), "flag_key": "beta"}

        answer = api.get(URL, token=platform_token(), query_string=query)

        assert [row["id"] for row in answer.json["data"]] == [str(wanted.id)]
        assert len(api.get(URL, token=platform_token()).json["data"]) == 3


class TestUpdateOverride:
    @pytest.mark.parametrize("role", [Role.OWNER, Role.ADMIN])
    def test_lets_the_tenants_admins_set_the_value(self, api, role):
        preset, tenant = create_preset(seats=5), create_tenant()
        override = create_override(tenant, preset, "seats", 6)
        _, _, token = create_member(tenant, role)

        answer = update(api, override, {"flag_value": 6.0}, token)

        assert json.dumps(answer.json["data"]["flag_value"]) == "6.0"
        assert audit_actions(tenant) == ["override.updated"]

    @pytest.mark.parametrize("value", [None, True, 0, 1.5, "", [], {"a": {"b": [None]}}, "é😀"])
    def test_takes_any_json_for_a_json_flag(self, api, value):
        preset, tenant = create_preset(limits={}), create_tenant()
        override = create_override(tenant, preset, "limits", {"old": 1})

        answer = update(api, override, {"flag_value": value})

        assert json.dumps(answer.json["data"]["flag_value"]) == json.dumps(value)

    def test_takes_twenty_thousand_bytes_and_no_more(self, api):
        preset, tenant = create_preset(theme="a"), create_tenant()
        override = create_override(tenant, preset, "theme", "b")

        fits = update(api, override, {"flag_value": "é" * 9_999})
        longer = update(api, override, {"flag_value": "é" * 9_999 + "a"})

        assert fits.status_code == 200
        assert faults(longer) == [("value_error", "flag_value")]

    def test_refuses_a_tenants_admin_a_locked_flag(self, api):
        preset = save_locked_preset()
        tenant = create_tenant()
        override = create_override(tenant, preset, "seats", 6)
        _, _, owner = create_member(tenant, Role.OWNER)
        key = create_api_key(tenant, [Permission.FLAGS_WRITE])
        platform_key = create_api_key(permissions=[Permission.FLAGS_WRITE])

        for token in (owner, key, platform_key):
            answer = update(api, override, {"flag_value": 7}, token)

            assert (answer.status_code, answer.json["code"]) == (403, "flag_locked")
        assert update(api, override, {"flag_value": 7}).status_code == 200

    def test_lets_superadmins_alone_set_the_expiry(self, api):
        preset, tenant = create_preset(beta=False), create_tenant()
        override = create_override(tenant, preset, "beta", True)
        _, _, owner = create_member(tenant, Role.OWNER)
        body = {"flag_value": True, "expires_at": FUTURE}

        refused = update(api, override, body, owner)
        allowed = update(api, override, body)

        assert (refused.status_code, refused.json["code"]) == (403, "permission_denied")
        assert allowed.status_code == 200
        now = row(FeatureOverride, id=override.id)
        assert now.expires_at == datetime(2999, 1, 1, tzinfo=UTC)

    def test_refuses_a_flag_that_the_preset_no_longer_has(self, api):
        preset, tenant = create_preset(beta=False), create_tenant()
        override = create_override(tenant, preset, "gone", True)

        assert faults(update(api, override, {"flag_value": 1})) == [("value_error", "flag_value")]


def save_locked_preset():
    return save(PlanPreset, name="free", flags=[preset_flag("seats", 5, is_locked=True)])


class TestReason:
    @pytest.fixture
    def required(self, app, monkeypatch):
        settings = replace(app.extensions["config"], override_reason_required=True)
        monkeypatch.setitem(app.extensions, "config", settings)

    def test_is_shown_where_a_read_asks_for_it_and_in_the_audit_trail(self, api):
        create_preset(beta=False)
        tenant = create_tenant()
        created = create(api, tenant, "beta", True, reason="Pilot").get_json()["data"]
        path = f"{URL}/{created['id']}"
        _, _, admin = create_member(tenant, role=Role.ADMIN)

        api.patch(path, token=admin, json={"flag_value": False, "reason": "It failed"})
        api.patch(path, token=admin, json={"flag_value": True})

        read = api.get(f"{path}?include=reason", token=admin).get_json()["data"]
        assert "reason" not in created
        assert read["reason"] == "It failed"
        changes = [event.after.get("reason") for event in rows(AuditEvent, tenant_id=tenant.id)]
        assert sorted(changes, key=str) == ["It failed", None, "Pilot"]

    def test_has_at_most_500_characters(self, api):
        create_preset(beta=False)

        answer = create(api, create_tenant(), "beta", True, reason="r" * 501)

        assert faults(answer) == [("string_too_long", "reason")]

    @pytest.mark.parametrize("given", [{}, {"reason": ""}, {"reason": "  "}])
    def test_is_required_by_a_setting(self, api, required, given):
        preset, tenant = create_preset(beta=False, theme="a"), create_tenant()
        override = create_override(tenant, preset, "theme", "b")

        refused = create(api, tenant, "beta", True, **given)
        unchanged = update(api, override, {"flag_value": "c", **given})
        accepted = update(api, override, {"flag_value": "c", "reason": "They asked"})

        assert faults(refused) == faults(unchanged) == [("missing", "reason")]
        assert accepted.status_code == 200
        assert row(FeatureOverride, id=override.id).reason == "They asked"

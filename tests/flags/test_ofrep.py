"""OFREP 0.3, request by request."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from app.auth.permissions import Permission, Role
from app.core import json_text as app_json
from tests.factories import (
    create_api_key,
    create_member,
    create_override,
    create_preset,
    create_tenant,
    platform_token,
)
from tests.messages import sent_messages

URL = "/ofrep/v1/evaluate/flags"
CONTEXT = {"context": {"targetingKey": "user-1", "anything": [1, {"a": None}]}}


def key_of(tenant):
    return create_api_key(tenant, [Permission.FLAGS_READ])


def evaluate(api, token, key=None, body=CONTEXT, **headers):
    path = URL if key is None else f"{URL}/{key}"
    return api.post(path, token=token, json=body, headers=headers)


class TestEvaluateFlag:
    def test_answers_the_presets_value(self, api):
        create_preset("growth", theme="dark")
        token = key_of(create_tenant(plan_name="growth"))

        answer = evaluate(api, token, "theme")

        assert answer.status_code == 200
        assert answer.json == {
            "key": "theme",
            "value": "dark",
            "reason": "STATIC",
            "variant": "preset",
            "metadata": {"plan": "growth"},
        }

    def test_answers_the_tenants_override(self, api):
        preset, tenant = create_preset(theme="dark"), create_tenant()
        create_override(tenant, preset, "theme", "light")

        answer = evaluate(api, key_of(tenant), "theme").json

        assert (answer["value"], answer["reason"]) == ("light", "TARGETING_MATCH")
        assert answer["variant"] == "override"

    @pytest.mark.parametrize(("value", "spelled"), [(5, b"5"), (5.0, b"5.0"), (2**70, b"1180591")])
    def test_keeps_the_spelling_of_numbers(self, api, value, spelled):
        preset, tenant = create_preset(seats=value, other=1), create_tenant()
        create_override(tenant, preset, "other", value)
        token = key_of(tenant)

        for key in ("seats", "other"):
            assert b'"value":' + spelled in evaluate(api, token, key).data

    def test_leaves_null_to_the_callers_code(self, api):
        create_preset(limits=None)

        answer = evaluate(api, key_of(create_tenant()), "limits")

        assert answer.status_code == 200
        assert "value" not in answer.json

    @pytest.mark.parametrize("key", ["gamma", "a b", "%C3%A9", "x" * 500])
    def test_does_not_find_an_unknown_flag(self, api, key):
        create_preset(beta=True)

        answer = evaluate(api, key_of(create_tenant()), key)

        assert answer.status_code == 404
        assert answer.json["errorCode"] == "FLAG_NOT_FOUND"
        assert set(answer.json) == {"key", "errorCode", "errorDetails"}

    def test_does_not_find_a_flag_without_a_preset(self, api):
        answer = evaluate(api, key_of(create_tenant(plan_name="none")), "beta")

        assert (answer.status_code, answer.json["errorCode"]) == (404, "FLAG_NOT_FOUND")

    @pytest.mark.parametrize("body", [{}, {"context": {}}, {"context": {"targetingKey": "a"}}])
    def test_needs_no_context(self, api, body):
        create_preset(beta=True)

        assert evaluate(api, key_of(create_tenant()), "beta", body).status_code == 200

    @pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 5000, b'{"context": NaN}'])
    @pytest.mark.parametrize("path", [URL, f"{URL}/beta"])
    def test_refuses_what_is_no_json(self, api, path, data):
        answer = api.post(path, token=key_of(create_tenant()), data=data)

        assert (answer.status_code, answer.json["errorCode"]) == (400, "PARSE_ERROR")
        assert answer.json["errorDetails"]
        assert ("key" in answer.json) == (path != URL)

    @pytest.mark.parametrize(
        "body", [[], 1, "text", {"context": None}, {"context": 1}, {"context": {"targetingKey": 1}}]
    )
    @pytest.mark.parametrize("key", [None, "beta"])
    def test_refuses_what_is_no_context(self, api, key, body):
        answer = evaluate(api, key_of(create_tenant()), key, body)

        assert (answer.status_code, answer.json["errorCode"]) == (400, "INVALID_CONTEXT")

    @pytest.mark.parametrize("key", [None, "beta"])
    def test_needs_a_tenant_in_the_credential(self, api, key):
        answer = evaluate(api, platform_token(), key)

        assert (answer.status_code, answer.json["errorCode"]) == (400, "INVALID_CONTEXT")

    def test_takes_the_tenant_of_a_platform_tokens_organization(self, api):
        create_preset(beta=True)

        answer = evaluate(api, platform_token(tenant=create_tenant()), "beta")

        assert answer.json["value"] is True

    def test_answers_a_suspended_tenant_with_the_presets_value(self, api):
        preset, tenant = create_preset(beta=False), create_tenant(is_active=False)
        create_override(tenant, preset, "beta", True)
        _, _, user_token = create_member(tenant, Role.MEMBER)

        for token in (key_of(tenant), user_token):
            answer = evaluate(api, token, "beta")

            assert answer.status_code == 200
            assert (answer.json["value"], answer.json["reason"]) == (False, "DISABLED")

    def test_asks_for_a_credential_with_flags_read(self, api):
        tenant = create_tenant()

        missing = evaluate(api, None, "beta")
        powerless = evaluate(api, create_api_key(tenant, []), "beta")

        assert (missing.status_code, powerless.status_code) == (401, 403)
        assert missing.headers["WWW-Authenticate"] == "Bearer"

    def test_costs_one_statement_besides_authentication(self, app, api):
        preset, tenant = create_preset(beta=False), create_tenant()
        create_override(tenant, preset, "beta", True)
        token = key_of(tenant)

        with sent_messages() as messages:
            evaluate(api, token, "beta")

        assert messages == ["auth.authenticate_key", "flags.evaluate_one", "COMMIT"]


class TestEvaluateAll:
    def test_answers_every_flag_in_the_presets_order(self, api):
        preset, tenant = create_preset(zebra=True, ant="a", mouse=1), create_tenant()
        create_override(tenant, preset, "ant", "b")

        answer = evaluate(api, key_of(tenant))

        assert [(flag["key"], flag["value"], flag["reason"]) for flag in answer.json["flags"]] == [
            ("zebra", True, "STATIC"),
            ("ant", "b", "TARGETING_MATCH"),
            ("mouse", 1, "STATIC"),
        ]
        assert all(flag["variant"] for flag in answer.json["flags"])

    def test_answers_304_while_nothing_changes(self, api):
        create_preset(beta=True)
        token = key_of(create_tenant())
        tag = evaluate(api, token).headers["ETag"]

        for known in (tag, f"W/{tag}", f'"other", {tag}', tag.strip('"')):
            again = evaluate(api, token, **{"If-None-Match": known})

            assert (again.status_code, again.data) == (304, b"")
            assert again.headers["ETag"] == tag

    def test_has_a_new_etag_after_every_change_that_counts(self, api):
        preset, tenant = create_preset(beta=False), create_tenant()
        token, tags = key_of(tenant), []
        override = f"/v1/billing/flags/overrides/{create_override(tenant, preset, 'beta', True).id}"
        changes = [
            ("PATCH", override, {"flag_value": False}),
            ("PATCH", override, {"flag_value": False, "expires_at": "2999-01-01T00:00:00Z"}),
            ("PATCH", override, {"flag_value": False, "expires_at": None}),
            ("DELETE", override, None),
            ("PATCH", f"/v1/billing/plans/{preset.id}", {"flags": []}),
            ("PATCH", f"/v1/tenants/{tenant.id}/active?is_active=false", None),
            ("PATCH", f"/v1/billing/plans/{preset.id}", {"name": "renamed"}),
        ]

        for method, path, body in [*changes, ("GET", override, None)]:
            tag = tags[-1] if tags else "none"
            answer = evaluate(api, token, **{"If-None-Match": tag})
            tags.append(answer.headers["ETag"])
            assert answer.status_code == 200, (method, path, body)
            api.request(method, path, token=platform_token(), json=body)

        assert evaluate(api, token, **{"If-None-Match": tags[-1]}).status_code == 304
        assert len(set(tags[:3])) == 3

    def test_has_a_new_etag_when_an_override_expires(self, api):
        preset, tenant = create_preset(beta=False), create_tenant()
        soon = datetime.now(UTC) + timedelta(seconds=0.5)
        create_override(tenant, preset, "beta", True, expires_at=soon)
        token = key_of(tenant)
        first = evaluate(api, token)

        answer = first
        while answer.status_code == 304 or answer is first:
            answer = evaluate(api, token, **{"If-None-Match": first.headers["ETag"]})

        assert datetime.now(UTC) >= soon
        assert first.json["flags"][0]["value"] is True
        assert answer.json["flags"][0]["value"] is False

    def test_costs_two_statements_at_most_and_no_serialization_for_304(self, app, api, monkeypatch):
        preset = create_preset(**{f"flag_{number}": number for number in range(50)})
        tenant = create_tenant()
        for number in range(0, 50, 5):
            create_override(tenant, preset, f"flag-{number}", 1000)
        token = key_of(tenant)

        with sent_messages() as fresh:
            first = evaluate(api, token)
        with sent_messages() as changed:
            evaluate(api, token, **{"If-None-Match": '"old"'})
        monkeypatch.setattr(app_json, "dumps", None)  # serializing anything would fail now
        with sent_messages() as unchanged:
            again = evaluate(api, token, **{"If-None-Match": first.headers["ETag"]})

        assert len(first.json["flags"]) == 50
        assert fresh[1:-1] == ["flags.evaluate_all"]
        assert changed[1:-1] == ["flags.fingerprint", "flags.evaluate_all"]
        assert unchanged[1:-1] == ["flags.fingerprint"]
        assert again.status_code == 304

    def test_answers_a_suspended_tenant_with_disabled_flags(self, api):
        create_preset(beta=False, theme="a")

        answer = evaluate(api, key_of(create_tenant(is_active=False)))

        assert [flag["reason"] for flag in answer.json["flags"]] == ["DISABLED", "DISABLED"]

    def test_answers_no_flags_without_a_preset(self, api):
        assert evaluate(api, key_of(create_tenant(plan_name="none"))).json == {"flags": []}

    def test_is_not_for_get(self, api):
        assert api.get(URL, token=platform_token()).status_code == 405

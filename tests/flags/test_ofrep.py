"""OFREP 0.3, request by request."""

from datetime import UTC, datetime, timedelta
from unittest.mock import Mock
from uuid import UUID

import pytest
from psycopg2 import OperationalError

from app.auth.permissions import Permission, Role
from app.core import json_text as app_json
from app.core.http.body_limits import MAX_BODY
from app.flags import ofrep
from tests.conftest import Api
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


@pytest.fixture
def limited(with_limits):
    return Api(with_limits(RATELIMIT_DEFAULT="1/month"))


@pytest.fixture
def preset(app):
    return create_preset(beta=True)


def naming(name):
    """A body whose context names a tenant."""
    is_plain = name is None or isinstance(name, int)
    return {"context": {"targetingKey": "user-1", "tenant_id": name if is_plain else str(name)}}


def value_of(answer):
    """The value of the only flag."""
    assert answer.status_code == 200
    return answer.json.get("flags", [answer.json])[0]["value"]


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
    def test_does_not_find_an_unknown_flag(self, api, key, preset):
        answer = evaluate(api, key_of(create_tenant()), key)

        assert answer.status_code == 404
        assert answer.json["errorCode"] == "FLAG_NOT_FOUND"
        assert set(answer.json) == {"key", "errorCode", "errorDetails"}

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

    def test_answers_a_suspended_tenant_with_the_presets_value(self, api):
        preset, tenant = create_preset(beta=False), create_tenant(is_active=False)
        create_override(tenant, preset, "beta", True)
        _, _, user_token = create_member(tenant, Role.MEMBER)

        for token in (key_of(tenant), user_token):
            answer = evaluate(api, token, "beta")

            assert answer.status_code == 200
            assert (answer.json["value"], answer.json["reason"]) == (False, "DISABLED")

    def test_costs_one_statement_besides_authentication(self, app, api):
        preset, tenant = create_preset(beta=False), create_tenant()
        create_override(tenant, preset, "beta", True)
        token = key_of(tenant)
        evaluate(api, token, "beta")  # reads the preset

        with sent_messages() as messages:
            evaluate(api, token, "beta")

        assert messages == ["auth.authenticate_key", "flags.evaluate_one", "COMMIT"]


@pytest.mark.parametrize("key", [None, "beta"])
class TestTenantOfTheContext:
    """``tenant_id`` of the context, at both endpoints."""

    @pytest.mark.parametrize("name", ["id", "slug", "idp_org_id"])
    def test_is_the_one_that_a_platform_credential_names(self, api, key, name):
        create_preset("free", beta=False)
        create_preset("growth", beta=True)
        tenant, other = create_tenant(plan_name="growth"), create_tenant(plan_name="free")
        token = create_api_key(None, [Permission.FLAGS_READ])

        for of, value in ((tenant, True), (other, False)):
            answer = evaluate(api, token, key, naming(getattr(of, name)))

            assert value_of(answer) is value

    def test_goes_before_the_organization_of_a_platform_token(self, api, key):
        create_preset("free", beta=False)
        create_preset("growth", beta=True)
        token = platform_token(tenant=create_tenant(plan_name="free"))

        answer = evaluate(api, token, key, naming(create_tenant(plan_name="growth").slug))

        assert value_of(answer) is True

    def test_is_never_found_by_a_slug_that_is_another_tenants_id(self, api, key):
        create_preset("free", beta=False)
        create_preset("growth", beta=True)
        tenant = create_tenant(plan_name="growth", idp_org_id="acme")
        create_tenant(plan_name="free", slug="acme")
        create_tenant(plan_name="free", slug=str(tenant.id))
        token = create_api_key(None, [Permission.FLAGS_READ])

        for name in ("acme", tenant.id):
            assert value_of(evaluate(api, token, key, naming(name))) is True

    def test_may_be_the_tenant_credentials_own(self, api, key, preset):
        tenant = create_tenant(slug="acme")
        create_tenant(idp_org_id="acme")

        for name in (tenant.id, tenant.slug, tenant.idp_org_id, None):
            answer = evaluate(api, key_of(tenant), key, naming(name))

            assert answer.status_code == 200

    def test_is_not_another_one_than_a_tenant_credentials(self, api, key):
        tenant, other = create_tenant(), create_tenant()
        refusals = [
            evaluate(api, key_of(tenant), key, naming(name))
            for name in (other.id, other.slug, other.idp_org_id, "unknown")
        ]

        assert {answer.status_code for answer in refusals} == {400}
        assert {answer.json["errorCode"] for answer in refusals} == {"INVALID_CONTEXT"}
        assert len({answer.data for answer in refusals}) == 1

    @pytest.mark.parametrize("name", [None, "", "unknown", str(UUID(int=7)), "a\0", "x" * 256, 1])
    def test_must_exist_for_a_platform_credential(self, api, key, name):
        for body in (naming(name), CONTEXT):
            answer = evaluate(api, create_api_key(None, [Permission.FLAGS_READ]), key, body)

            assert (answer.status_code, answer.json["errorCode"]) == (400, "INVALID_CONTEXT")
            assert ("key" in answer.json) == (key is not None)

    def test_costs_one_more_statement(self, api, key, preset):
        token, body = create_api_key(None, [Permission.FLAGS_READ]), naming(create_tenant().slug)
        evaluate(api, token, key, body)  # reads the preset

        with sent_messages() as messages:
            evaluate(api, token, key, body)

        assert messages[1:-1] == [
            "tenants.find_named",
            "flags.evaluate_all" if key is None else "flags.evaluate_one",
        ]


@pytest.mark.parametrize("key", [None, "beta"])
class TestRefusals:
    """Errors that every endpoint has, in OFREP's own form."""

    def test_have_the_keys_of_a_failure(self, api, key):
        tenant, own = create_tenant(), {"key", "errorCode", "errorDetails"}
        expected = own if key else own - {"key"}
        refusals = [
            evaluate(api, None, key),
            evaluate(api, "sk_unknown", key),
            evaluate(api, create_api_key(tenant, []), key),
            evaluate(api, key_of(tenant), key, **{"Idempotency-Key": ""}),
            evaluate(api, key_of(tenant), key, {"context": {"a": "x" * MAX_BODY}}),
        ]

        assert [answer.status_code for answer in refusals] == [401, 401, 403, 422, 413]
        for answer in refusals:
            assert answer.json.keys() == expected
            assert answer.json["errorCode"] == "GENERAL"
            assert isinstance(answer.json["errorDetails"], str)

    def test_beyond_the_rate_limit_say_when_to_come_back(self, limited, key):
        token = key_of(create_tenant(plan_name="none"))

        evaluate(limited, token, key)
        answer = evaluate(limited, token, key)

        assert answer.status_code == 429
        assert answer.json["errorCode"] == "GENERAL"
        assert int(answer.headers["Retry-After"]) > 0

    def test_without_a_database_or_with_a_fault_tell_nothing(self, app, api, key, monkeypatch):
        token = key_of(create_tenant())
        answers = []
        for fault in (OperationalError("host=secret"), RuntimeError("secret")):
            raises = Mock(side_effect=fault)
            monkeypatch.setattr(ofrep, "evaluate" if key else "evaluate_all", raises)
            answers.append(evaluate(api, token, key))

        assert [answer.status_code for answer in answers] == [503, 500]
        assert answers[0].headers["Retry-After"]
        assert [answer.json["errorCode"] for answer in answers] == ["GENERAL", "GENERAL"]
        assert not any(b"secret" in answer.data for answer in answers)


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

    def test_answers_304_while_nothing_changes(self, api, preset):
        token = key_of(create_tenant())
        tag = evaluate(api, token).headers["ETag"]

        for known in (tag, f"W/{tag}", f'"other", {tag}', tag.strip('"')):
            again = evaluate(api, token, **{"If-None-Match": known})

            assert (again.status_code, again.data) == (304, b"")
            assert again.headers["ETag"] == tag

    def test_has_another_etag_for_another_tenant_with_equal_flags(self, api, preset):
        one, two = create_tenant(), create_tenant()
        token = create_api_key(None, [Permission.FLAGS_READ])

        first = evaluate(api, token, body=naming(one.slug))
        known = {"If-None-Match": first.headers["ETag"]}
        second = evaluate(api, token, body=naming(two.slug), **known)
        again = evaluate(api, token, body=naming(one.slug), **known)

        assert (second.status_code, again.status_code) == (200, 304)
        assert first.data == second.data
        assert first.headers["ETag"] != second.headers["ETag"]

    def test_has_an_etag_of_the_credential(self, api, preset):
        """The answers differ in the grant of `eventStreams`."""
        tenant = create_tenant()
        own, other = key_of(tenant), key_of(tenant)

        tags = [evaluate(api, key).headers["ETag"] for key in (own, own, other)]
        named = evaluate(api, platform_token(), body=naming(tenant.id)).headers["ETag"]

        assert tags[0] == tags[1]
        assert len({*tags, named}) == 3
        assert len({tag.partition(".")[0] for tag in (*tags, named)}) == 1

    def test_is_not_for_shared_caches(self, api, preset):
        token = key_of(create_tenant())

        first = evaluate(api, token)
        again = evaluate(api, token, **{"If-None-Match": first.headers["ETag"]})

        assert again.status_code == 304
        for answer in (first, again):
            assert set(answer.cache_control) == {"private", "no-cache"}
            assert "Authorization" in answer.vary

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
            ("PATCH", f"/v1/billing/plans/{preset.id}", {"display_name": "x"}),
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
        soon = datetime.now(UTC) + timedelta(seconds=2)
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
        assert fresh[1:-1] == ["flags.evaluate_all", "plan_presets.find_flags"]
        assert changed[1:-1] == ["flags.fingerprint", "flags.evaluate_all"]
        assert unchanged[1:-1] == ["flags.fingerprint"]
        assert again.status_code == 304

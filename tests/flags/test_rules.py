"""Rules of flags: what is accepted, what decides, and for whom."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uuid_utils.compat import uuid7

from app.auth.permissions import Permission, Role
from app.flags import evaluation
from app.flags.rules import bucket, compile_rule
from app.plans.models import PlanPreset
from app.plans.rule_conditions import compiled
from tests import database
from tests.factories import (
    create_api_key,
    create_member,
    create_override,
    create_preset,
    create_tenant,
    create_user,
    limit_flag,
    platform_token,
    preset_flag,
    save,
)
from tests.messages import sent_messages

URL = "/ofrep/v1/evaluate/flags"
PLANS = "/v1/billing/plans"
FREE = {"attribute": "tenant.plan", "op": "eq", "value": "free"}
NEVER = {"attribute": "tenant.plan", "op": "eq", "value": "other"}


def rule(value=True, name="one", **parts):
    return {"name": name, **(parts or {"when": FREE}), "value": value}


def rollout(percent, **more):
    return rule(rollout={"percent": percent, **more})


def flag_with(*rules, default=False, key="beta"):
    return {**preset_flag(key, default), "rules": list(rules)}


def preset_of(*rules, **options):
    return save(PlanPreset, name="free", flags=[flag_with(*rules, **options)])


def key_of(tenant):
    return create_api_key(tenant, [Permission.FLAGS_READ])


def evaluate(api, tenant, key="beta", **context):
    answer = api.post(f"{URL}/{key}", token=key_of(tenant), json={"context": context})
    assert answer.status_code == 200, answer.json
    return answer.json


def value(api, tenant, **context):
    return evaluate(api, tenant, **context)["value"]


def condition(attribute, op, value):
    return {"attribute": attribute, "op": op, "value": value}


class TestPrecedence:
    def test_a_rule_gives_its_value_and_is_named(self, api):
        preset_of(rule())

        assert evaluate(api, create_tenant()) == {
            "key": "beta",
            "value": True,
            "reason": "TARGETING_MATCH",
            "variant": "rule",
            "metadata": {"plan": "free", "rule": "one"},
        }

    def test_without_a_match_the_preset_applies(self, api):
        preset_of(rule(when=NEVER), rollout(0) | {"name": "none"})

        answer = evaluate(api, create_tenant())

        assert (answer["value"], answer["reason"], answer["variant"]) == (False, "STATIC", "preset")

    def test_an_override_precedes_rules_until_it_expires(self, api):
        preset, tenant = preset_of(rule("rule"), default="preset"), create_tenant()
        create_override(tenant, preset, "beta", "override")
        expired = create_tenant()
        past = datetime.now(UTC) - timedelta(days=1)
        create_override(expired, preset, "beta", "override", expires_at=past)

        assert value(api, tenant) == "override"
        assert value(api, expired) == "rule"

    def test_the_list_of_flags_follows_rules(self, api):
        preset_of(rule())

        query = {"tenant_id": str(create_tenant().id)}
        [flag] = api.get("/v1/billing/flags", token=platform_token(), query_string=query).json[
            "data"
        ]

        assert (flag["value"], flag["source"], flag["preset_value"]) == (True, "rule", False)

    def test_follows_a_changed_preset_at_once(self, api):
        preset, tenant = preset_of(rule()), create_tenant()
        assert value(api, tenant) is True

        api.patch(
            f"{PLANS}/{preset.id}",
            token=platform_token(),
            json={"flags": [flag_with(rule(when=NEVER))]},
        )

        assert value(api, tenant) is False


class TestAttributes:
    @pytest.mark.parametrize(
        ("attribute", "op", "wanted"),
        [
            ("tenant.plan", "eq", "free"),
            ("tenant.slug", "prefix", "tenant-"),
            ("tenant.region", "eq", "Bavaria"),
            ("tenant.country", "in", ["AT", "DE"]),
            ("tenant.age_days", "ge", 10),
            ("tenant.meta_data.tier", "eq", "gold"),
            ("tenant.meta_data.seats", "gt", 5),
            ("tenant.meta_data.missing", "exists", False),
            ("user.role", "eq", "admin"),
            ("user.email_domain", "eq", "example.com"),
            ("user.email_domain", "eq", "Example.COM"),
            ("user.email_domain", "in", ["Example.com"]),
            ("user.email_domain", "exists", True),
            ("user.meta_data.team", "ne", "sales"),
            ("context.device", "eq", "phone"),
            ("context.version", "semver_gt", "1.9.0"),
            ("context.now", "after", "2026-01-01"),
            ("context.missing", "ne", "x"),
            ("context.missing", "not_in", ["x"]),
            ("context.targetingKey", "exists", True),
        ],
    )
    def test_are_compared(self, api, attribute, op, wanted):
        preset_of(rule(when=condition(attribute, op, wanted)))
        tenant = create_tenant(
            mailing_state="Bavaria",
            mailing_country="DE",
            created_at=datetime.now(UTC) - timedelta(days=11),
            meta_data={"tier": "gold", "seats": 6},
        )
        user, _, _ = create_member(tenant, Role.ADMIN, meta_data={"team": "ops"})
        context = {"device": "phone", "version": "1.10.0", "now": "2026-06-01T00:00:00+02:00"}

        assert value(api, tenant, targetingKey=str(user.id), **context) is True

    @pytest.mark.parametrize("name", ["id", "idp_user_id", "email"])
    def test_the_user_has_three_names(self, api, name):
        preset_of(rule(when=condition("user.role", "eq", "owner")))
        tenant = create_tenant()
        user, _, _ = create_member(tenant, Role.OWNER, email="Ada@Example.com")

        assert value(api, tenant, targetingKey=str(getattr(user, name))) is True

    def test_another_tenants_user_is_nobody(self, api):
        preset_of(rule(when=condition("user.role", "exists", True)))
        tenant = create_tenant()
        stranger, _, _ = create_member(create_tenant())
        without_role = create_user(tenant)

        for key in (str(stranger.id), str(without_role.id), "nobody", "", "\0"):
            assert value(api, tenant, targetingKey=key) is False

    def test_the_user_is_read_only_where_a_rule_asks_and_once(self, api):
        asking = rule(
            when={"any": [condition("user.role", "eq", "x"), condition("user.role", "eq", "y")]}
        )
        save(PlanPreset, name="free", flags=[flag_with(asking), flag_with(rule(), key="plain")])
        tenant = create_tenant()
        token = key_of(tenant)
        body = {"context": {"targetingKey": "nobody"}}

        for key in ("beta", "plain", "beta"):
            with sent_messages() as messages:
                api.post(f"{URL}/{key}", token=token, json=body)
            assert messages.count("users.find_facts") == (key == "beta")


class TestConditions:
    @pytest.mark.parametrize(
        ("op", "have", "wanted", "holds"),
        [
            ("eq", 1, 1.0, True),
            ("eq", True, 1, False),
            ("eq", "1", 1, False),
            ("ne", None, "a", True),
            ("in", False, [0], False),
            ("in", "b", ["a", "b"], True),
            ("not_in", [1], ["a"], True),
            ("lt", "4", 5, False),
            ("lt", True, 5, False),
            ("le", 5, 5, True),
            ("gt", None, -1, False),
            ("prefix", 5, "5", False),
            ("suffix", "a.b", ".b", True),
            ("semver_gt", "v1.2", "1.1.9", True),
            ("semver_lt", "1.0.0-rc.1", "1.0.0", True),
            ("semver_lt", "1.0.0-rc.2", "1.0.0-rc.10", True),
            ("semver_lt", "1.0.0-2", "1.0.0-beta", True),
            ("semver_lt", "1.0.0-rc", "1.0.0-rc.1", True),
            ("semver_gt", "1.0.0+2", "1.0.0+1", False),
            ("semver_gt", "one", "1.0.0", False),
            ("semver_gt", 2, "1.0.0", False),
            ("semver_gt", "9" * 5000, "1.0.0", False),
            ("before", "2026-01-01T00:30:00+01:00", "2026-01-01", True),
            ("after", "2026-01-01", "2026-01-01T00:00:00Z", False),
            ("after", "tomorrow", "2026-01-01", False),
            ("exists", None, False, True),
            ("exists", "", True, True),
        ],
    )
    def test_nothing_is_converted(self, op, have, wanted, holds):
        test = compiled({"attribute": "context.x", "op": op, "value": wanted})

        assert test({"context.x": have}) is holds

    def test_are_joined_by_all_any_and_not(self):
        yes, no = condition("x", "eq", 1), condition("x", "eq", 2)

        for joined, expected in [
            ({"all": [yes, yes]}, True),
            ({"all": [yes, no]}, False),
            ({"any": [no, yes]}, True),
            ({"any": [no, no]}, False),
            ({"not": {"any": [no, {"not": yes}]}}, True),
        ]:
            assert compiled(joined)({"x": 1}) is expected


def nested(depth):
    return FREE if depth == 0 else {"not": nested(depth - 1)}


class TestValidation:
    @pytest.mark.parametrize(
        ("rules", "loc", "kind"),
        [
            ([rule() | {"name": ""}], [0, "name"], "string_too_short"),
            ([rule(), rule()], [1, "name"], "value_error"),
            ([rule("x")], [0, "value"], "bool_type"),
            ([{"name": "a", "value": True}], [0], "value_error"),
            ([{"name": "a", "when": FREE}], [0, "value"], "missing"),
            ([rule() | {"percent": 1}], [0, "percent"], "extra_forbidden"),
            ([rule(name=str(n)) for n in range(33)], [], "too_long"),
            ([rule(when=None)], [0, "when"], "model_attributes_type"),
            ([rule(when={})], [0, "when"], "value_error"),
            ([rule(when={"attribute": "tenant.plan"})], [0, "when"], "value_error"),
            ([rule(when={**FREE, "all": [FREE]})], [0, "when"], "value_error"),
            ([rule(when={"all": []})], [0, "when", "all"], "too_short"),
            ([rule(when={"all": [FREE] * 32})], [0, "when"], "value_error"),
            ([rule(when=nested(32))], [0, "when"], "value_error"),
            (
                [rule(when={"all": [FREE, condition("tenant.age_days", "lt", "x")]})],
                [0, "when", "all", 1, "value"],
                "float_type",
            ),
            (
                [rule(when={"not": {"any": [condition("tenant.secret", "eq", "x")]}})],
                [0, "when", "not", "any", 0, "attribute"],
                "string_pattern_mismatch",
            ),
            (
                [rule(when=condition("context.a.b", "eq", 1))],
                [0, "when", "attribute"],
                "string_pattern_mismatch",
            ),
            ([rule(when=condition("context.a", "regex", "x"))], [0, "when", "op"], "enum"),
            ([rule(when=condition("tenant.plan", "eq", 5))], [0, "when", "value"], "string_type"),
            ([rule(when=condition("context.a", "eq", {}))], [0, "when", "value"], "scalar_type"),
            ([rule(when=condition("context.a", "eq", None))], [0, "when", "value"], "scalar_type"),
            ([rule(when=condition("context.a", "in", "x"))], [0, "when", "value"], "list_type"),
            ([rule(when=condition("context.a", "in", []))], [0, "when", "value"], "too_short"),
            (
                [rule(when=condition("context.a", "in", [1, {}]))],
                [0, "when", "value", 1],
                "scalar_type",
            ),
            (
                [rule(when=condition("context.a", "exists", "yes"))],
                [0, "when", "value"],
                "bool_type",
            ),
            (
                [rule(when=condition("context.a", "prefix", ""))],
                [0, "when", "value"],
                "string_too_short",
            ),
            (
                [rule(when=condition("context.a", "semver_gt", "x"))],
                [0, "when", "value"],
                "value_error",
            ),
            (
                [rule(when=condition("context.a", "before", "x"))],
                [0, "when", "value"],
                "value_error",
            ),
            ([rollout(100.1)], [0, "rollout", "percent"], "less_than_equal"),
            ([rollout("10")], [0, "rollout", "percent"], "float_type"),
            ([rollout(10, by="role")], [0, "rollout", "by"], "enum"),
            ([rule(rollout={})], [0, "rollout", "percent"], "missing"),
        ],
    )
    def test_names_the_exact_place(self, api, rules, loc, kind):
        body = {"name": "free", "flags": [preset_flag("a", 1), flag_with(*rules)]}

        answer = api.post(PLANS, token=platform_token(), json=body)

        assert answer.status_code == 422, answer.json
        found = [(entry["loc"], entry["type"]) for entry in answer.json["detail"]]
        assert found == [(["body", "flags", 1, "rules", *loc], kind)]

    @pytest.mark.parametrize(
        ("parts", "place"),
        [
            ({"rollout": {"percent": 10}}, ["rollout"]),
            ({"when": condition("user.role", "eq", "x")}, ["when", "attribute"]),
            ({"when": {"any": [condition("context.x", "eq", 1)]}}, ["when", "any", 0, "attribute"]),
            ({"when": condition("tenant.meta_data.x", "before", "2026-01-01")}, ["when", "op"]),
        ],
    )
    def test_limits_have_rules_about_the_tenant_only(self, api, parts, place):
        flag = {**limit_flag(), "rules": [rule(5, **parts)]}

        answer = api.post(PLANS, token=platform_token(), json={"name": "free", "flags": [flag]})

        assert answer.status_code == 422
        assert [entry["loc"] for entry in answer.json["detail"]] == [
            ["body", "flags", 0, "rules", 0, *place]
        ]

    def test_rules_are_answered_as_they_were_sent_and_absent_without_any(self, api):
        rules = [rule(when={"all": [condition("context.a", "lt", 5.0)]}, rollout={"percent": 10})]
        flags = [flag_with(*rules), flag_with(key="plain")]

        made = api.post(PLANS, token=platform_token(), json={"name": "free", "flags": flags})

        assert made.status_code == 201, made.json
        first, second = api.get(f"{PLANS}/{made.json['data']['id']}", token=platform_token()).json[
            "data"
        ]["flags"]
        assert (first["rules"], json.dumps(first["rules"]).count("5.0")) == (rules, 1)
        assert "rules" not in second


def failures():
    samples = evaluation.RULES_FAILED.collect()[0].samples
    return sum(one.value for one in samples if one.name.endswith("_total"))


class TestFailures:
    BROKEN = (
        rule(when=condition("tenant.plan", "regex", ".*")),
        rule(when={"none": []}),
        rule(rollout={}),
        rule("text"),
        {"name": "one"},
        5,
    )

    @pytest.mark.parametrize("broken", BROKEN)
    def test_a_stored_rule_that_is_not_valid_falls_to_the_preset(self, api, broken):
        save(PlanPreset, name="free", flags=[flag_with(broken), preset_flag("other", 1)])
        tenant = create_tenant()
        before = failures()

        answer = evaluate(api, tenant)
        bulk = api.post(URL, token=key_of(tenant), json={"context": {}})

        assert (answer["value"], answer["reason"], answer["variant"]) == (False, "ERROR", "preset")
        assert answer["errorCode"] == "GENERAL"
        assert [flag["value"] for flag in bulk.json["flags"]] == [False, 1]
        assert failures() == before + 2

    def test_a_context_beyond_64_kib_is_refused(self, api):
        preset_of(rule())

        answer = api.post(URL, token=key_of(create_tenant()), json={"context": {"a": "x" * 65536}})

        assert (answer.status_code, answer.json["errorCode"]) == (400, "INVALID_CONTEXT")


class TestEtag:
    def ask(self, api, token, tag="", **context):
        headers = {"If-None-Match": tag}
        answer = api.post(URL, token=token, json={"context": context}, headers=headers)
        return answer.status_code, answer.headers["ETag"]

    def test_depends_on_what_rules_compare(self, api):
        preset_of(rule(when=condition("context.device", "eq", "phone")))
        tenant = create_tenant()
        token = key_of(tenant)

        _, desk = self.ask(api, token, device="desk")
        status, phone = self.ask(api, token, desk, device="phone")

        assert (status, phone != desk) == (200, True)
        assert self.ask(api, token, phone, device="phone") == (304, phone)
        assert self.ask(api, token, desk, device="none") == (304, desk)

    def test_depends_on_the_user(self, api):
        preset_of(rule(when=condition("user.role", "eq", "owner")))
        tenant = create_tenant()
        token = key_of(tenant)
        owner, _, _ = create_member(tenant, Role.OWNER)
        _, tag = self.ask(api, token, targetingKey="nobody")

        status, _ = self.ask(api, token, tag, targetingKey=str(owner.id))

        assert status == 200

    @pytest.mark.parametrize(
        ("has_rules", "column", "new", "changes"),
        [
            (True, "meta_data", '{"a": 1}', True),
            (True, "mailing_state", "x", True),
            (True, "name", "x", False),
            (False, "meta_data", '{"a": 1}', False),
        ],
    )
    def test_the_fingerprint_follows_the_tenant(self, api, has_rules, column, new, changes):
        preset_of(rule()) if has_rules else create_preset(beta=False)
        tenant = create_tenant()
        with database.platform_transaction():
            before = evaluation.fingerprint(tenant.id)

        cast = "json" if column == "meta_data" else "text"
        database.execute(
            f"UPDATE tenants SET {column} = CAST(:new AS {cast}) WHERE id = :id",
            new=new,
            id=tenant.id,
        )

        with database.platform_transaction():
            assert (evaluation.fingerprint(tenant.id) != before) is changes


def inside(percent, ids, salt="salt"):
    one = rollout(percent, salt=salt)
    test = compile_rule(one, preset_flag("beta", False))
    return {each for each in ids if test({"tenant.id": each})}


class TestRollouts:
    def test_ten_percent_of_100000_tenants(self):
        ids = [str(uuid7()) for _ in range(100_000)]

        assert 9_700 <= len(inside(10, ids)) <= 10_300

    @settings(deadline=None, max_examples=50)
    @given(
        st.floats(0, 100, allow_nan=False),
        st.floats(0, 100, allow_nan=False),
        st.text(min_size=1, max_size=20),
    )
    def test_raising_a_percentage_only_adds(self, one, other, salt):
        ids = [str(number) for number in range(200)]

        assert inside(min(one, other), ids, salt) <= inside(max(one, other), ids, salt)

    def test_0_is_nobody_and_100_everybody(self):
        ids = [str(number) for number in range(1000)]

        assert (len(inside(0, ids)), len(inside(100, ids))) == (0, 1000)

    def test_by_user_people_differ_and_nobody_without_a_key(self, api):
        preset_of(rollout(50, by="user"))
        tenant = create_tenant()

        assert {value(api, tenant, targetingKey=str(n)) for n in range(20)} == {True, False}
        preset = database.query("SELECT id FROM plan_presets")[0][0]
        body = {"flags": [flag_with(rollout(100, by="user"))]}
        api.patch(f"{PLANS}/{preset}", token=platform_token(), json=body)
        assert value(api, tenant) is False
        assert value(api, tenant, targetingKey="anybody") is True

    def test_flags_have_their_own_buckets_unless_they_share_a_salt(self):
        facts = [{"tenant.id": str(n)} for n in range(100)]
        own, shared = rollout(10), rollout(10, salt="s")

        assert [bucket(own, f, "a") for f in facts] != [bucket(own, f, "b") for f in facts]
        assert [bucket(shared, f, "a") for f in facts] == [bucket(shared, f, "b") for f in facts]


class TestExplain:
    def test_names_the_rule_and_the_buckets(self, api):
        preset_of(rule(when=NEVER, name="no"), rollout(100, salt="s") | {"name": "yes"})
        tenant = create_tenant()

        told = api.get(
            "/v1/billing/flags/beta/explain",
            token=platform_token(),
            query_string={"tenant_id": str(tenant.id)},
        ).json["data"]

        number = bucket(rollout(1, salt="s"), {"tenant.id": str(tenant.id)}, "beta")[0]
        assert (told["decided_by"], told["rule"], told["value"]) == ("rule", "yes", True)
        assert told["rules"] == [
            {"name": "no", "matches": False, "bucket": None, "salt": None},
            {"name": "yes", "matches": True, "bucket": number, "salt": "s"},
        ]

    def test_takes_a_user(self, api):
        preset_of(rule(when=condition("user.role", "eq", "owner")))
        tenant = create_tenant()
        owner, _, _ = create_member(tenant, Role.OWNER)

        query = {"tenant_id": str(tenant.id), "targeting_key": owner.email}
        told = api.get(
            "/v1/billing/flags/beta/explain", token=platform_token(), query_string=query
        ).json["data"]

        assert (told["decided_by"], told["rule"]) == ("rule", "one")

"""The flagd document: evaluated inside of an application, it gives what OFREP answers.

``FLAGD_TENANTS=2000`` compares so many random tenants.
"""

import json
import os
from collections import Counter
from contextlib import suppress
from random import Random
from uuid import uuid4

import pytest
from openfeature.contrib.tools.flagd.core import FlagdCore
from openfeature.evaluation_context import EvaluationContext
from openfeature.exception import FlagNotFoundError, TypeMismatchError

from app.auth.permissions import Permission, Role
from app.flags import flagd
from app.plans.rule_conditions import Op
from tests import database
from tests.factories import (
    create_api_key,
    create_limits,
    create_member,
    create_override,
    create_preset,
    create_tenant,
    limit_flag,
    platform_token,
    preset_flag,
)

URL = "/v1/billing/flags/flagd.json"
ABSENT = "the application's default"
PAST, FUTURE = "2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z"


@pytest.fixture
def key(app):
    return create_api_key(None, [Permission.FLAGS_READ])


@pytest.fixture
def read(api, key):
    """The document, loaded by flagd's evaluator."""

    def load(**query):
        answer = api.get(URL, token=key, query_string=query)
        assert answer.status_code == 200
        return evaluator(answer.json)

    return load


def evaluator(document):
    core = FlagdCore()
    core.set_flags(json.dumps(document))
    return core


def value(core, flag_key, tenant_id, **context):
    """What the evaluator gives, whatever its type."""
    context = {"tenant_id": str(tenant_id), **context}
    key = context.pop("targetingKey", None)
    for resolve in (
        core.resolve_boolean_value,
        core.resolve_string_value,
        core.resolve_integer_value,
        core.resolve_float_value,
        core.resolve_object_value,
    ):
        with suppress(TypeMismatchError):
            try:
                return resolve(flag_key, ABSENT, EvaluationContext(key, context)).value
            except FlagNotFoundError:
                return ABSENT
    raise AssertionError(flag_key)


class TestValues:
    def test_of_a_new_tenant_are_the_default_plans(self, app, read):
        create_preset(theme="plain")
        create_preset("growth", theme="dark")
        create_tenant(plan_name="growth")

        assert value(read(), "theme", uuid4()) == "plain"

    def test_of_a_rule_that_is_not_valid_are_the_plans(self, app, read):
        broken = {"name": "a", "when": {"attribute": "tenant.plan", "op": "?"}, "value": "dark"}
        create_limits("free", {**preset_flag("theme", "plain"), "rules": [broken]})

        assert value(read(), "theme", create_tenant().id) == "plain"

    def test_need_no_lists_where_all_tenants_have_the_default_plan(self, api, key):
        create_preset(theme="plain")
        create_tenant()

        assert api.get(URL, token=key).json == {
            "$schema": "https://flagd.dev/schema/v0/flags.json",
            "$evaluators": {},
            "flags": {
                "theme": {
                    "state": "ENABLED",
                    "variants": {"value-1": "plain"},
                    "defaultVariant": "value-1",
                }
            },
        }


class TestNarrowed:
    @pytest.fixture
    def tenant(self, app):
        create_preset(theme="plain")
        preset = create_preset("growth", theme="dark")
        create_override(create_tenant(plan_name="growth"), preset, "theme", "red")
        return create_tenant(plan_name="growth")

    def test_to_a_plan_lists_its_overrides_only(self, api, key, read, tenant):
        assert value(read(plan="growth"), "theme", tenant.id) == "dark"
        document = api.get(URL, token=key, query_string={"plan": "growth"}).json
        assert document["$evaluators"] == {}
        assert document["flags"]["theme"]["variants"] == {"value-1": "dark", "value-2": "red"}

    def test_to_a_tenant_lists_nothing(self, api, key, tenant):
        flags = api.get(URL, token=key, query_string={"tenant_id": tenant.id}).json["flags"]

        assert flags["theme"]["variants"] == {"value-1": "dark"}
        assert "targeting" not in flags["theme"]

    @pytest.mark.parametrize(
        ("query", "code"),
        [({"plan": "none"}, "plan_preset_not_found"), ({"tenant_id": uuid4()}, "tenant_not_found")],
    )
    def test_to_what_does_not_exist_is_404(self, api, key, query, code):
        answer = api.get(URL, token=key, query_string=query)

        assert (answer.status_code, answer.json["code"]) == (404, code)


class TestAnswer:
    def test_has_an_etag_that_changes_with_the_flags(self, api, key):
        preset, tenant = create_preset(theme="plain"), create_tenant()
        etag = api.get(URL, token=key).headers["ETag"]

        same = api.get(URL, token=key, headers={"If-None-Match": etag})
        create_override(tenant, preset, "theme", "dark")
        changed = api.get(URL, token=key, headers={"If-None-Match": etag})

        assert (same.status_code, changed.status_code) == (304, 200)

    def test_is_refused_where_it_would_be_too_large(self, api, key, monkeypatch):
        monkeypatch.setattr(flagd, "MAX_LISTED", 2)
        create_preset("growth", theme="dark")
        for _ in range(3):
            create_tenant(plan_name="growth")

        refused = api.get(URL, token=key)
        narrowed = api.get(URL, token=key, query_string={"plan": "growth"})

        assert (refused.status_code, refused.json["code"]) == (409, "flagd_document_too_large")
        assert narrowed.status_code == 200

    def test_is_printed_by_the_command(self, app, api, key):
        create_preset(theme="plain")
        tenant = create_tenant()

        shown = app.test_cli_runner().invoke(args=["flags", "export"])
        of_one = app.test_cli_runner().invoke(args=["flags", "export", "--tenant", tenant.slug])

        assert json.loads(shown.stdout) == api.get(URL, token=key).json
        assert json.loads(of_one.stdout)["flags"]["theme"]["defaultVariant"] == "value-1"


@pytest.mark.parametrize(
    ("op", "moment", "holds"),
    [
        ("before", "9999-12-31T23:59:59-01:00", True),
        ("after", "0001-01-01T00:00:00+01:00", True),
        ("after", "0999-01-01", True),
        ("before", "0999-01-01", False),
    ],
)
def test_compares_the_first_and_last_times(api, read, op, moment, holds):
    rule = {"name": "a", "when": {"attribute": "context.now", "op": op, "value": moment}}
    flag = {**preset_flag("beta", False), "rules": [{**rule, "value": True}]}
    body = {"name": "free", "flags": [flag]}
    assert api.post("/v1/billing/plans", token=platform_token(), json=body).status_code == 201
    tenant, context = create_tenant(), {"now": "2026-01-31T12:00:00Z"}

    answer = api.post(
        "/ofrep/v1/evaluate/flags/beta",
        token=platform_token(),
        json={"context": {"tenant_id": str(tenant.id), **context}},
    )

    assert answer.json["value"] is holds
    assert value(read(), "beta", tenant.id, **context) is holds


@pytest.mark.parametrize(
    "seen",
    [
        *("2026-01-31T12:00:00Z", "2026-01-31T12:00:00.123Z", "2024-02-29T23:59:59Z"),
        *("", "soon", "9", "2026", "2026-01-31T12:00:0", "2026-01-31T12:00:00Z?", "2026-13-01T00:00:00Z"),
        *("2026-01-32T00:00:00Z", "2026-01-31T24:00:00Z", "2026-01-31T12:60:00Z", "0000-01-01T00:00:00Z"),
        *("2026-01-31T12:00:6-Z", "2026-01-31T12:00:+1Z", "202x-01-31T12:00:00Z", "2026-01-31T12:00:00.1-2Z"),
    ],
)  # fmt: skip
def test_compares_only_times(api, read, seen):
    when = {"attribute": "context.seen", "op": "after", "value": "2025-01-01"}
    other = {**when, "op": "before"}
    rule = {"name": "a", "when": {"any": [when, other]}, "value": True}
    create_limits("free", {**preset_flag("beta", False), "rules": [rule]})
    tenant = create_tenant()

    body = {"context": {"tenant_id": str(tenant.id), "seen": seen}}
    answer = api.post("/ofrep/v1/evaluate/flags/beta", token=platform_token(), json=body)

    assert value(read(), "beta", tenant.id, seen=seen) is answer.json["value"]


def test_compares_domains_in_lower_case(read):
    whens = [("eq", "Example.COM"), ("in", ["other.example", "Example.com"]), ("suffix", ".COM")]
    flags = [
        {**preset_flag(op, False), "rules": [{"name": "a", "when": when, "value": True}]}
        for op, given in whens
        for when in [{"attribute": "user.email_domain", "op": op, "value": given}]
    ]
    create_limits("free", *flags)

    core = read()

    user = {"email_domain": "example.com"}
    assert all(value(core, op, uuid4(), user=user) for op, _ in whens)


class TestEquality:
    """Random tenants, each with all of its flags and a random context."""

    TENANTS = int(os.environ.get("FLAGD_TENANTS", 400))
    PLANS = ("free", "growth", "scale", "gone")

    @pytest.fixture
    def random(self):
        return Random(39)

    @pytest.fixture
    def presets(self, app, random):
        shared = {"beta": False, "theme": "plain", "depth": 1, "rate": 0.5, "layout": {"a": [1]}}
        plans = {
            "free": [limit_flag("calls", 10), *flags_of(**shared)],
            "growth": [
                limit_flag("calls", 100),
                *flags_of(**{**shared, "beta": True, "depth": "deep", "layout": None}),
            ],
            "scale": [limit_flag("calls", -1), *flags_of(beta=True, own=[1])],
        }
        for flag in (flag for flags in plans.values() for flag in flags):
            if flag["flag_type"] != "limit":
                flag["rules"] = [random_rule(random, flag, n) for n in range(random.randint(0, 4))]
        return {name: create_limits(name, *flags) for name, flags in plans.items()}

    def make(self, random, presets):
        """A tenant, its context, and the user of it."""
        plan = random.choice(self.PLANS)
        tenant = create_tenant(
            plan_name=plan,
            is_active=random.random() < 0.9,
            mailing_state=random.choice(TEXTS),
            meta_data={"tier": random.choice(VALUES)},
        )
        database.execute(
            "UPDATE tenants SET created_at = now() - make_interval(days => :days) WHERE id = :id",
            days=random.randint(0, 9),
            id=tenant.id,
        )
        values = [True, False, "dark", 7, 7.5, None, {"b": 1}, [2], -1]
        for name, preset in presets.items():
            for flag in preset.flags:
                if random.random() < (0.2 if name == plan else 0.05):
                    create_override(
                        tenant,
                        preset,
                        flag["flag_key"],
                        random.choice(values),
                        expires_at=random.choice([None, None, PAST, FUTURE]),
                        carry_over=random.random() < 0.5,
                    )
        if random.random() < 0.1:  # the assigned plan has ended, and no job has run since
            database.execute(
                "INSERT INTO plan_assignments"
                " (tenant_id, plan_name, next_plan_name, until, reason, created_by, created_at)"
                " VALUES (:id, :plan, :next, now() - interval '1 day', '', '', now())",
                id=tenant.id,
                plan=plan,
                next=random.choice(self.PLANS),
            )
        context = {key: random.choice(VALUES) for key in ("version", "n") if random.random() < 0.8}
        context["seen"] = random.choice(TIMES)
        user = {}
        if random.random() < 0.5:
            user = {"role": random.choice(list(Role)), "meta_data": {"desk": random.choice(VALUES)}}
            email = f"p{tenant.slug}@{random.choice(TEXTS)}.example"
            known, *_ = create_member(
                tenant, user["role"], email=email, meta_data=user["meta_data"]
            )
            user["email_domain"] = email.partition("@")[2]
            context["targetingKey"] = random.choice([str(known.id), known.idp_user_id, email])
        elif random.random() < 0.5:
            context["targetingKey"] = f"nobody-{random.random()}"
        return tenant, context, user

    def test_with_the_answers_of_ofrep(self, api, read, random, presets):
        tenants = [self.make(random, presets) for _ in range(self.TENANTS)]
        core, token = read(), platform_token()
        keys = ("beta", "theme", "depth", "rate", "layout", "calls", "own", "none")
        wrong, reasons = [], Counter()

        for tenant, context, user in tenants:
            body = {"context": {"tenant_id": str(tenant.id), **context}}
            answers = api.post("/ofrep/v1/evaluate/flags", token=token, json=body).json["flags"]
            expected = {one["key"]: one.get("value", ABSENT) for one in answers}
            reasons.update(one["reason"] for one in answers)
            for key in keys:
                found = value(core, key, tenant.id, user=user, **context)
                if found != expected.get(key, ABSENT):
                    wrong.append((tenant.plan_name, key, context, user, found, expected.get(key)))

        assert wrong == []
        assert min(reasons[one] for one in ("STATIC", "TARGETING_MATCH", "SPLIT", "DISABLED")) > 20


TEXTS = ["eu", "us", "1.2", "v1.10.0", "2026-01-31T12:00:00Z", "", "7", "true"]
VALUES = [*TEXTS, 0, 1, 7, 7.5, True, False, None, [1], {"a": 1}]
TIMES = ["2026-01-31T10:59:59Z", "2026-01-31T11:00:01Z", "later", None, 7, True]
ATTRIBUTES = [
    *("tenant.plan", "tenant.region", "tenant.slug", "user.role", "user.email_domain"),
    *("tenant.meta_data.tier", "user.meta_data.desk", "context.version", "context.n"),
]


def random_rule(random, flag, number):
    default = flag["default_value"]
    given = {bool: not default, str: "ruled", int: 40, float: 4.5}.get(
        type(default), {"rule": number}
    )
    rule = {"name": f"rule-{number}", "value": given}
    if random.random() < 0.7:
        rule["when"] = random_condition(random)
    if "when" not in rule or random.random() < 0.4:
        by = random.choice(["tenant", "user"])
        rule["rollout"] = {"percent": random.choice([12.5, 33.333, 60]), "by": by}
        if random.random() < 0.3:
            rule["rollout"]["salt"] = "sälz"
    return rule


def random_condition(random, depth=0):
    kind = random.random()
    if depth < 2 and kind < 0.3:
        parts = [random_condition(random, depth + 1) for _ in range(random.randint(1, 3))]
        return {random.choice(["all", "any"]): parts}
    if depth < 2 and kind < 0.4:
        return {"not": random_condition(random, depth + 1)}
    op = random.choice(list(Op))
    if op in (Op.LT, Op.LE, Op.GT, Op.GE):
        attributes = ["tenant.age_days", "tenant.meta_data.tier", "context.n"]
        return {
            "attribute": random.choice(attributes),
            "op": str(op),
            "value": random.choice([1, 5]),
        }
    if op in (Op.BEFORE, Op.AFTER):
        attribute = random.choice(["tenant.meta_data.tier", "context.seen"])
        return {"attribute": attribute, "op": str(op), "value": "2026-01-31T13:00:00+02:00"}
    scalars = [one for one in VALUES if isinstance(one, str | int | float)]
    texts = [one for one in TEXTS if one]
    values = {
        **dict.fromkeys((Op.SEMVER_GT, Op.SEMVER_LT), "1.3.0"),
        **dict.fromkeys((Op.PREFIX, Op.SUFFIX), random.choice(texts)[:1]),
        Op.IN: [*random.sample(scalars, 4), "admin", "growth"],
        Op.NOT_IN: [*random.sample(scalars, 4), "admin", "growth"],
        **dict.fromkeys((Op.EQ, Op.NE), random.choice([*scalars, "admin", "growth"])),
        Op.EXISTS: random.random() < 0.5,
    }
    return {"attribute": random.choice(ATTRIBUTES), "op": str(op), "value": values[op]}


def flags_of(**defaults):
    return [preset_flag(key, default) for key, default in defaults.items()]

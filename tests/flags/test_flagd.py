"""The flagd document: evaluated inside of an application, it gives what OFREP answers."""

import json
from contextlib import suppress
from random import Random
from uuid import uuid4

import pytest
from openfeature.contrib.tools.flagd.core import FlagdCore
from openfeature.evaluation_context import EvaluationContext
from openfeature.exception import FlagNotFoundError, TypeMismatchError

from app.auth.permissions import Permission
from app.flags import flagd
from tests import database
from tests.factories import (
    create_api_key,
    create_limits,
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
    def test_are_those_of_the_plans(self, app, read):
        create_preset(theme="plain", seats=5)
        create_preset("growth", theme="dark")
        free, growth = create_tenant(), create_tenant(plan_name="growth")

        core = read()

        assert [value(core, "theme", one.id) for one in (free, growth)] == ["plain", "dark"]
        assert [value(core, "seats", one.id) for one in (free, growth)] == [5, ABSENT]

    def test_of_an_override_are_the_tenants(self, app, read):
        preset = create_preset(theme="plain")
        tenant, other = create_tenant(), create_tenant()
        create_override(tenant, preset, "theme", "dark")

        core = read()

        assert [value(core, "theme", one.id) for one in (tenant, other)] == ["dark", "plain"]

    def test_of_a_new_tenant_are_the_default_plans(self, app, read):
        create_preset(theme="plain")
        create_preset("growth", theme="dark")
        create_tenant(plan_name="growth")

        assert value(read(), "theme", uuid4()) == "plain"

    def test_that_are_null_are_left_to_the_application(self, app, read):
        preset = create_preset(theme="plain", limits=None)
        tenant = create_tenant()
        create_override(tenant, preset, "theme", None)

        core = read()

        assert value(core, "limits", tenant.id) == ABSENT

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

    def test_is_for_platform_credentials(self, api):
        token = create_api_key(create_tenant(), [Permission.FLAGS_READ])

        assert api.get(URL, token=token).status_code == 403

    def test_is_refused_where_it_would_be_too_large(self, api, key):
        create_preset("growth", theme="dark")
        create_tenant(plan_name="growth")
        database.execute(
            "INSERT INTO tenants SELECT (jsonb_populate_record(t, jsonb_build_object("
            "'id', gen_random_uuid(), 'idp_org_id', n::text, 'slug', n::text))).*"
            " FROM tenants t, generate_series(1, :most) n",
            most=flagd.MAX_LISTED,
        )

        refused = api.get(URL, token=key)
        narrowed = api.get(URL, token=key, query_string={"plan": "growth"})

        assert (refused.status_code, refused.json["code"]) == (409, "flagd_document_too_large")
        assert narrowed.status_code == 200

    def test_is_printed_by_the_command(self, app, api, key):
        create_preset(theme="plain")
        tenant = create_tenant()

        shown = app.test_cli_runner().invoke(args=["flags", "export", "--flagd"])
        of_one = app.test_cli_runner().invoke(
            args=["flags", "export", "--flagd", "--tenant", tenant.slug]
        )

        assert json.loads(shown.stdout) == api.get(URL, token=key).json
        assert json.loads(of_one.stdout)["flags"]["theme"]["defaultVariant"] == "value-1"


class TestEquality:
    """2,000 random tenants, each with all of its flags."""

    TENANTS = 2_000
    PLANS = ("free", "growth", "scale", "gone")

    @pytest.fixture
    def random(self):
        return Random(39)

    @pytest.fixture
    def tenants(self, app, random):
        """Tenants with overrides of each kind, of which some are suspended."""
        shared = {"beta": False, "theme": "plain", "depth": 1, "rate": 0.5, "layout": {"a": [1]}}
        presets = {
            "free": create_limits("free", limit_flag("calls", 10), *flags_of(**shared)),
            "growth": create_limits(
                "growth",
                limit_flag("calls", 100),
                *flags_of(**{**shared, "beta": True, "depth": "deep", "layout": None}),
            ),
            "scale": create_limits("scale", limit_flag("calls", -1), *flags_of(beta=True, own=[1])),
        }
        return [self.make(random, presets) for _ in range(self.TENANTS)]

    def make(self, random, presets):
        plan = random.choice(self.PLANS)
        tenant = create_tenant(plan_name=plan, is_active=random.random() < 0.9)
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
        return tenant

    def test_with_the_answers_of_ofrep(self, api, read, tenants):
        core, token = read(), platform_token()
        keys = ("beta", "theme", "depth", "rate", "layout", "calls", "own", "none")
        wrong = []

        for tenant in tenants:
            body = {"context": {"tenant_id": str(tenant.id)}}
            answers = api.post("/ofrep/v1/evaluate/flags", token=token, json=body).json["flags"]
            expected = {one["key"]: one.get("value", ABSENT) for one in answers}
            found = {key: value(core, key, tenant.id) for key in keys}
            if found != {key: expected.get(key, ABSENT) for key in keys}:
                wrong.append((tenant.plan_name, tenant.is_active, found, expected))

        assert wrong == []


def flags_of(**defaults):
    return [preset_flag(key, default) for key, default in defaults.items()]

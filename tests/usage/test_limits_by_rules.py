"""Limits that rules give: the same in the database, which decides, and in the list of flags."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.auth.permissions import Permission
from app.flags.evaluation import evaluate_all
from app.plans.models import PlanPreset
from app.plans.rule_conditions import compiled
from tests import database
from tests.factories import (
    create_api_key,
    create_override,
    create_tenant,
    limit_flag,
    platform_token,
    save,
)

GOLD = {"attribute": "tenant.meta_data.tier", "op": "eq", "value": "gold"}
OLD = {"attribute": "tenant.age_days", "op": "gt", "value": 365}
RULES = [{"name": "old", "when": OLD, "value": -1}, {"name": "gold", "when": GOLD, "value": 3}]


@pytest.fixture
def preset(app):
    return save(PlanPreset, name="free", flags=[{**limit_flag(most=1), "rules": RULES}])


def consume(api, tenant, amount):
    answer = api.post(
        "/v1/usage/consume",
        token=create_api_key(tenant, [Permission.USAGE_WRITE]),
        json={"feature": "calls", "amount": amount},
    )
    return answer.status_code


def limit_of(tenant):
    [(most,)] = database.query("SELECT most FROM tenant_limits(:id, 'calls')", id=tenant.id)
    with database.platform_transaction():
        assert evaluate_all(tenant.id).flags["calls"].value == most
    return most


class TestLimits:
    def test_are_decided_by_the_first_rule_that_matches(self, api, preset):
        gold = create_tenant(meta_data={"tier": "gold"})
        old = create_tenant(meta_data={"tier": "gold"}, created_at="2020-01-01T00:00:00Z")

        assert [limit_of(tenant) for tenant in (create_tenant(), gold, old)] == [1, 3, -1]

    def test_an_override_precedes_them(self, api, preset):
        tenant = create_tenant(meta_data={"tier": "gold"})
        create_override(tenant, preset, "calls", 7)

        assert limit_of(tenant) == 7

    def test_follow_a_change_of_the_tenant_at_once(self, api, preset):
        tenant = create_tenant(meta_data={"tier": "gold"})
        assert consume(api, tenant, 3) < 300

        assert consume(api, tenant, 1) == 409
        body = {"patches": {"tier": "iron"}}
        path = f"/v1/tenants/{tenant.id}/meta_data"
        assert api.patch(path, token=platform_token(), json=body).status_code == 200

        assert limit_of(tenant) == 1


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([1.0, 0.5, "1", "a", "ab", "", "é"]),
)
SCALARS = st.one_of(
    st.booleans(), st.integers(-3, 3), st.sampled_from([1.0, 0.5, "1", "a", "ab", "b"])
)
TEXTS = st.sampled_from(["a", "b", "ab", "é"])
NAMES = st.sampled_from(["plan", "slug", "region", "meta_data.x", "meta_data.y", "meta_data.z"])
OPS = st.one_of(
    st.tuples(st.sampled_from(["eq", "ne"]), SCALARS),
    st.tuples(st.sampled_from(["in", "not_in"]), st.lists(SCALARS, min_size=1, max_size=3)),
    st.tuples(st.sampled_from(["lt", "le", "gt", "ge"]), st.sampled_from([-1, 0, 0.5, 1.0, 2])),
    st.tuples(st.sampled_from(["prefix", "suffix"]), TEXTS),
    st.tuples(st.just("exists"), st.booleans()),
)
COMPARISONS = st.builds(
    lambda name, compared: {"attribute": f"tenant.{name}", "op": compared[0], "value": compared[1]},
    NAMES,
    OPS,
)
CONDITIONS = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(
        st.builds(lambda parts: {"all": parts}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda parts: {"any": parts}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda part: {"not": part}, inner),
    ),
    max_leaves=6,
)


class Found(dict):
    def __missing__(self, key):
        return None


class TestConditionHolds:
    @settings(deadline=None, max_examples=150)
    @given(CONDITIONS, VALUES, VALUES)
    def test_decides_as_the_evaluation_does(self, app, condition, x, y):
        facts = {"plan": "ab", "slug": "b", "region": "", "meta_data": {"x": x, "y": y}}
        flat = Found({f"tenant.{name}": value for name, value in facts.items()})
        flat.update({f"tenant.meta_data.{key}": value for key, value in facts["meta_data"].items()})

        [(decided,)] = database.query(
            "SELECT condition_holds(CAST(:condition AS jsonb), CAST(:facts AS jsonb))",
            condition=json.dumps(condition),
            facts=json.dumps(facts),
        )

        assert decided is compiled(condition)(flat)

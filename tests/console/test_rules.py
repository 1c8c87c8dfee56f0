"""Rules of flags as sentences, and the inputs that make them."""

import json

import pytest
from markupsafe import escape
from werkzeug.datastructures import MultiDict

from app.console.fields import DRAFT
from app.console.pages.flags import value_field
from app.console.rules import Rules, sentence
from tests import database
from tests.factories import create_limits, create_tenant, preset_flag

PLAN = {"attribute": "tenant.plan", "op": "in", "value": ["growth", "pro"]}
AGE = {"attribute": "tenant.age_days", "op": "ge", "value": 30}
FIELD = {"attribute": "user.meta_data.desk", "op": "eq", "value": "7"}
SET = {"attribute": "context.beta", "op": "exists", "value": False}
NESTED = {"all": [PLAN, {"any": [AGE, {"not": SET}]}]}
RULES = [
    ({"name": "a", "when": PLAN, "value": True}, "If the tenant's plan is one of growth, pro: on"),
    (
        {"name": "b", "rollout": {"percent": 12.5, "by": "user", "salt": "s"}, "value": False},
        "12.5 % of users: off",
    ),
    (
        {
            "name": "c",
            "when": {"any": [AGE, FIELD, SET]},
            "rollout": {"percent": 10},
            "value": True,
        },
        "If the tenant's age in days is at least 30 or the user's field desk is \"7\" or the context's"
        " beta is not set, for 10 % of tenants: on",
    ),
    (
        {"name": "d", "when": NESTED, "value": True},
        "If the tenant's plan is one of growth, pro and (the tenant's age in days is at least 30 or"
        " not the context's beta is not set): on",
    ),
]
FIELD_OF_RULES = Rules("rules", "Rules", "rules", value=value_field("boolean", "rules_value"))


def sent(rules, do=""):
    """What a browser sends of these rules."""
    names = FIELD_OF_RULES.inputs(FIELD_OF_RULES.shown(rules))
    form = MultiDict([(name, text) for name, texts in names.items() for text in texts])
    form.add(DRAFT, do)
    return form


class TestRules:
    @pytest.mark.parametrize(("rule", "told"), RULES)
    def test_are_sentences(self, rule, told):
        assert sentence(rule) == told

    @pytest.mark.parametrize(
        "condition",
        [
            {"attribute": "context.version", "op": "semver_gt", "value": "1.2.0"},
            {"attribute": "context.n", "op": "in", "value": [1, "1", True, "true", 1.5]},
            {"attribute": "context.n", "op": "eq", "value": '"'},
            {"attribute": "tenant.slug", "op": "not_in", "value": ["a, b", "c"]},
            {"attribute": "tenant.meta_data.since", "op": "before", "value": "2026-01-31"},
            {"attribute": "tenant.region", "op": "eq", "value": ""},
            {"all": [PLAN]},
            {"not": PLAN},
        ],
    )
    def test_stay_as_they_are_where_nobody_changes_them(self, condition):
        rules = [{"name": "one", "when": condition, "value": False}, *(rule for rule, _ in RULES)]

        assert FIELD_OF_RULES.read(sent(rules)) == rules

    @pytest.mark.parametrize(
        ("do", "names"),
        [
            ("up 2", "acbd"),
            ("down 0", "bacd"),
            ("down 3", "abcd"),
            ("up 0", "abcd"),
            ("remove 1", "acd"),
            ("remove 9", "abcd"),
            ("up x", "abcd"),
        ],
    )
    def test_are_moved_and_removed_with_their_conditions(self, do, names):
        rules = {rule["name"]: rule for rule, _ in RULES}

        assert FIELD_OF_RULES.read(sent(rules.values(), do)) == [rules[name] for name in names]

    def test_are_added_at_the_end_with_a_new_name(self):
        rows = FIELD_OF_RULES.typed(sent([{"name": "rule-1", "value": True}], "add"))

        assert [row["name"] for row in rows] == ["rule-1", "rule-2"]

    def test_that_a_browser_would_not_send_are_left_out(self):
        form = sent([rule for rule, _ in RULES])
        form.setlist("rules_rule", ["-1", "9", "x"])

        assert len(FIELD_OF_RULES.typed(form)) == len(RULES)


class TestPage:
    @pytest.fixture
    def plan(self, app):
        return create_limits("free", {**preset_flag("beta", False), "rules": [RULES[3][0]]})

    @pytest.fixture
    def page(self, plan):
        return f"/console/plans/{plan.id}/flags/beta/edit"

    def test_shows_the_rules_as_sentences(self, browser, plan, page):
        for path in (page, f"/console/plans/{plan.id}"):
            assert escape(RULES[3][1]) in browser.get(path).text

    def test_adds_a_rule_before_it_is_saved(self, browser, page):
        added = browser.send(page, form_draft="add", **INPUTS_OF_NESTED)
        saved = browser.send(page, **{**INPUTS_OF_NESTED, **two_rules()})

        assert added.status_code == 200
        assert "2. " in added.text
        assert saved.status_code == 303
        assert flags()[0]["rules"] == [
            RULES[3][0],
            {"name": "part", "rollout": {"percent": 10}, "value": True},
        ]

    def test_says_how_many_tenants_change(self, browser, page):
        create_tenant()

        shown = browser.send(page, form_preview="1", rules_kept="", **ONE_RULE)

        assert "The rules change the value of 1 of 1 tenant" in shown.text
        assert flags()[0]["rules"] == [RULES[3][0]]

    def test_has_the_errors_of_a_rule(self, browser, page):
        wrong = browser.send(page, rules_kept="", **{**ONE_RULE, "rules_percent": "1000"})

        assert wrong.status_code == 422
        assert "Rule 1: " in wrong.text
        assert 'value="1000"' in wrong.text

    def test_gives_back_the_rules_that_it_showed(self, browser, plan, page):
        browser.send(page, rules_kept="", **ONE_RULE)
        changed = flags()[0]["rules"]
        browser.undo(f"/console/plans/{plan.id}")

        assert [len(changed), flags()[0]["rules"]] == [1, [RULES[3][0]]]

    def test_of_a_flag_tells_which_rule_decides(self, browser, plan):
        tenant = create_tenant()

        shown = browser.get(f"/console/tenants/{tenant.id}/flags/beta").text

        assert "Rule d" in shown
        assert "does not match" in shown


def flags():
    ((found,),) = database.query("SELECT flags FROM plan_presets")
    return found


INPUTS_OF_NESTED = {
    "default_value": "false",
    "rules_name": "d",
    "rules_percent": "",
    "rules_by": "tenant",
    "rules_value": "true",
}
ONE_RULE = {
    "default_value": "false",
    "rules_name": "region",
    "rules_join": "all",
    "rules_percent": "",
    "rules_by": "tenant",
    "rules_value": "true",
    "rules_rule": ["0"],
    "rules_attribute": ["tenant.plan"],
    "rules_key": [""],
    "rules_op": ["eq"],
    "rules_text": ["free"],
}


def two_rules():
    kept = json.dumps(NESTED)
    return {
        "rules_name": ["d", "part"],
        "rules_join": ["all", "all"],
        "rules_kept": [kept, ""],
        "rules_percent": ["", "10 %"],
        "rules_by": ["tenant", "tenant"],
        "rules_salt": ["", ""],
        "rules_value": ["true", "true"],
    }

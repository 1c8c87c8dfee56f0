"""The public cases of other flag services, as far as rules can express them."""

import json
from collections import Counter
from pathlib import Path
from uuid import uuid4

import pytest

from app.flags.rules import CompiledFlag, Facts
from app.plans.rule_schemas import RuleSchema

FOUND = json.loads(Path(__file__).with_name("cases.json").read_text())
TENANT = {"plan": "free", "slug": "acme", "meta_data": {}}


@pytest.mark.parametrize("source", FOUND["total"])
def test_every_case_has_the_expected_value(source):
    wrong = []
    for case in FOUND["cases"]:
        if case["source"] == source:
            rules = [RuleSchema().load(rule) for rule in case["rules"]]
            flag = {"flag_key": "flag", "flag_type": "json", "rules": rules}
            facts = Facts(uuid4(), TENANT, case["context"])
            rule = CompiledFlag.of(flag).first_match(facts)
            value = case["default"] if rule is None else rule["value"]
            if value != case["expected"]:
                wrong.append(case["name"])

    assert wrong == []


def test_every_case_is_counted():
    expressed = Counter(case["source"] for case in FOUND["cases"])

    for source, total in FOUND["total"].items():
        assert expressed[source] + sum(FOUND["not_expressible"][source].values()) == total

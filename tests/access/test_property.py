"""Evaluation, explanation, the searches and the snapshot decide as the model does.

``ACCESS_WORLDS=2000`` compares so many random tenants. ``ACCESS_CASES=FILE`` writes the cases that
the tests of the clients run: snapshots, questions, and the service's answers.
"""

import json
import os
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from app.auth.permissions import Permission
from tests.access.model import Flag
from tests.access.stored import store, store_permissions
from tests.access.worlds import plain, questions, random_world
from tests.factories import create_api_key
from tests.flags.test_flagd import TIMES, VALUES, random_rule

WORLDS = int(os.environ.get("ACCESS_WORLDS", 24))
CASES = os.environ.get("ACCESS_CASES")
WRITTEN = 6  # worlds of each test
QUESTIONS = 40  # of each world
EXPLAINED = 3
SEARCHES = 2  # of each kind in each world


@pytest.fixture
def key(app):
    store_permissions()
    return create_api_key(None, [Permission.ACCESS_READ, Permission.AUDIT_READ])


@pytest.fixture
def post(api, key):
    def send(path, body):
        answer = api.post(f"/access/v1/{path}", token=key, json=body)
        assert answer.status_code == 200, answer.json
        return answer.json

    return send


@pytest.fixture
def search(post):
    """All results of a search, page by page."""

    def read(path, question, tenant):
        token, found = None, []
        context = {**question.get("context", {}), "tenant_id": str(tenant.id)}
        while token != "":
            page = {"limit": 3} if token is None else {"limit": 3, "token": token}
            body = post(f"search/{path}", {**question, "context": context, "page": page})
            found += [one.get("id", one.get("name")) for one in body["results"]]
            token = body["page"]["next_token"]
        assert len(set(found)) == len(found)
        return set(found)

    return read


@pytest.fixture
def read_snapshot(api, key):
    def read(tenant):
        answer = api.get(f"/v1/access/snapshot?tenant_id={tenant.id}", token=key)
        assert answer.status_code == 200, answer.json
        return answer.json["data"]

    return read


@pytest.fixture
def refusals(post):
    """The codes of what refuses each question, by one request."""

    def ask(tenant, asked):
        context = {"tenant_id": str(tenant.id)}
        body = {
            "evaluations": [{**one, "context": one.get("context", {}) | context} for one in asked]
        }
        answers = post("evaluations", body)["evaluations"]
        found = [one.get("context", {}).get("reason", {}).get("code", "") for one in answers]
        assert [one["decision"] for one in answers] == [code == "" for code in found]
        return found

    return ask


def write_cases(cases):
    """Add some of them to the file, a line for each."""
    if CASES:
        with Path(CASES).open("a") as file:
            for snapshot, asked, codes in cases[:WRITTEN]:
                first = {code: one for one, code in zip(asked, codes, strict=True)}
                listed = [
                    *zip(asked[:10], codes, strict=False),
                    *((q, c) for c, q in first.items()),
                ]
                file.write(json.dumps({"snapshot": snapshot, "cases": listed}) + "\n")


def test_all_decide_as_the_model(importable, api, key, search, read_snapshot, refusals):
    from controlplane.access import Snapshot

    random, wrong, answers, cases = Random(40), [], Counter(), []
    for number in range(WORLDS):
        world = random_world(random, number)
        tenant = store(world, number, random)
        document = read_snapshot(tenant)
        snapshot = Snapshot(document)
        asked = questions(random, world, QUESTIONS)
        codes = refusals(tenant, asked)
        cases.append((document, asked, codes))
        for question, code in zip(asked, codes, strict=True):
            answers[code] += 1
            found = world.decide(question), code == "", snapshot.refusal(**question) == code
            if found not in ((True, True, True), (False, False, True)):
                wrong.append((number, question, code, found))
        for question in map(plain, asked[:EXPLAINED]):
            if (found := explained(api, key, tenant, question)) not in (
                None,
                world.decide(question),
            ):
                wrong.append((number, question, "explain", found))
        for question in random.sample(asked, SEARCHES):
            person = {"type": "user"}
            kind = {"type": question["resource"]["type"]}
            known = {
                "subject": (world.find_subjects(question), {**question, "subject": person}),
                "resource": (world.find_resources(question), {**question, "resource": kind}),
                "action": (world.find_actions(question), without_action(question)),
            }
            for path, (expected, body) in known.items():
                if (found := search(path, body, tenant)) != expected:
                    wrong.append((number, path, body, expected, found))

    write_cases(cases)
    assert wrong == []
    assert answers[""] > WORLDS
    assert len(answers) > 8


def without_action(question):
    return {name: one for name, one in question.items() if name != "action"}


def explained(api, key, tenant, question):
    """Whether the explanation allows it; None if it knows no such subject."""
    kind = {"api_key": "key_id", "user": "user_id"}.get(question["subject"]["type"])
    if kind is None or len(question["subject"]["id"]) != 36:
        return None
    query = {
        "permission": question["action"]["name"],
        kind: question["subject"]["id"],
        "tenant_id": str(tenant.id),
        "resource_type": question["resource"]["type"],
        "resource_id": question["resource"]["id"],
    }
    answer = api.get("/v1/access/explain", token=key, query_string=query)
    return answer.json["data"]["allowed"] if answer.status_code == 200 else answer.json


def test_snapshots_evaluate_rules_as_the_service(importable, read_snapshot, refusals):
    from controlplane.access import Snapshot

    random, wrong, cases = Random(41), [], []
    for number in range(max(WORLDS // 2, 20)):
        world = random_world(random, number)
        world.is_active = True
        for key in world.flags:
            flag = {"flag_key": key, "default_value": False}
            rules = [random_rule(random, flag, each) for each in range(random.randint(0, 3))]
            world.flags[key] = Flag(False, rules=rules)
        for person in world.people:
            person.role, person.meta_data = "owner", {"desk": random.choice(VALUES)}
        tenant, document = store(world, number, random), None
        document = read_snapshot(tenant)
        asked = questions(random, world, QUESTIONS)
        for question in asked:
            question["action"] = {"name": random.choice(["doc:share", "doc:close"])}
            question["context"] = {
                "version": random.choice(VALUES),
                "n": random.choice(VALUES),
                "seen": random.choice(TIMES),
            }
        codes = refusals(tenant, asked)
        snapshot = Snapshot(document)
        wrong += [
            (number, question, code)
            for question, code in zip(asked, codes, strict=True)
            if snapshot.refusal(**question) != code
        ]
        cases.append((document, asked, codes))

    write_cases(cases)
    assert wrong == []

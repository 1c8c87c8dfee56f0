"""AuthZEN's certification scenario for the Authorization API 1.0, all seven levels.

The fixture is the scenario's, made of roles, resources, assignments and flags. Sections are those of
the scenario's document.
"""

import pytest

from app.auth.permissions import Permission
from app.plans.models import PlanPreset
from tests.authzen.world import assign, create_permission, create_resource, create_role
from tests.factories import create_api_key, create_member, create_tenant, preset_flag, save

EVALUATION, EVALUATIONS = "/access/v1/evaluation", "/access/v1/evaluations"
SUBJECTS, RESOURCES, ACTIONS = (
    f"/access/v1/search/{kind}" for kind in ("subject", "resource", "action")
)
CIRCUMSTANCES = {"time": "2025-06-27T18:03-07:00", "ip": "192.168.1.1"}


def user(name, **properties):
    return thing("user", name, properties)


def record(number, **properties):
    return thing("record", f"record-{number}", properties)


def thing(type_, name, properties):
    return {"type": type_, "id": name, **({"properties": properties} if properties else {})}


def action(name, **properties):
    return {"name": name, **({"properties": properties} if properties else {})}


def ask(subject, act, resource, **more):
    return {"subject": subject, "action": act, "resource": resource, **more}


def without(body, *path):
    *above, last = path
    if not above:
        return {key: value for key, value in body.items() if key != last}
    return {**body, above[0]: without(body[above[0]], last)}


ALICE, BOB, ADMIN = user("alice"), user("bob"), user("bob", role="admin")
READ, WRITE = action("read"), action("write")
ARCHIVED, ACTIVE = record(2, status="archived"), record(1, status="active")
FIRST = ask(ALICE, READ, record(1))
USERS, RECORDS = {"type": "user"}, {"type": "record"}
WHO = ask(USERS, READ, record(1))
WHICH = ask(ALICE, READ, RECORDS)
WHAT = without(FIRST, "action")

DECISIONS = {
    "2.2.1": (FIRST, True),
    "2.2.2": (ask(BOB, WRITE, record(1)), False),
    "2.2.3": ({**FIRST, "context": CIRCUMSTANCES}, True),
    "2.2.4": (ask(ALICE, WRITE, ARCHIVED), False),
    "2.2.5": (ask(ADMIN, WRITE, ARCHIVED), True),
    "2.2.6": (ask(ALICE, action("delete", soft=True), record(1)), True),
    "2.2.7": (ask(ALICE, action("delete", soft=False), record(1)), False),
    "2.2.8": (
        ask(
            user("alice", department="Sales", role="manager"),
            action("read", method="GET"),
            record(1, status="active", owner="bob"),
        ),
        True,
    ),
    "2.2.9": ({**FIRST, "foo": "bar", "futureField": {"nested": True}}, True),
    "rule 2": (ask(ALICE, WRITE, record(1)), True),
    "rule 3": (ask(BOB, READ, record(1)), True),
}
MALFORMED = {
    "no subject": without(FIRST, "subject"),
    "no action": without(FIRST, "action"),
    "no resource": without(FIRST, "resource"),
    "no type of subject": without(FIRST, "subject", "type"),
    "no id of subject": without(FIRST, "subject", "id"),
    "no name of action": {**FIRST, "action": {}},
    "no type of resource": without(FIRST, "resource", "type"),
    "no id of resource": without(FIRST, "resource", "id"),
    "subject is a text": {**FIRST, "subject": "alice"},
    "name is a number": {**FIRST, "action": {"name": 123}},
}
BATCHES = {
    "3.2.1": (
        {
            "subject": ALICE,
            "action": READ,
            "evaluations": [{"resource": record(1)}, {"resource": record(2)}],
        },
        [True, True],
    ),
    "3.2.2": (
        {
            "subject": BOB,
            "resource": record(1),
            "evaluations": [{"action": READ}, {"action": WRITE}],
        },
        [True, False],
    ),
    "3.2.3": (
        {
            "subject": ALICE,
            "action": WRITE,
            "evaluations": [{"resource": ACTIVE}, {"resource": ARCHIVED}],
        },
        [True, False],
    ),
    "3.2.4": (
        {
            "action": WRITE,
            "resource": ARCHIVED,
            "evaluations": [{"subject": ALICE}, {"subject": ADMIN}],
        },
        [False, True],
    ),
    "3.2.5": ({"evaluations": [FIRST, ask(BOB, WRITE, record(1))]}, [True, False]),
    "3.2.6": (
        {
            "subject": ALICE,
            "action": READ,
            "context": {"time": "2025-06-27T18:03-07:00"},
            "evaluations": [
                {"resource": record(1)},
                {
                    "resource": record(2),
                    "context": {"time": "2025-06-27T19:00-07:00", "source": "batch-override"},
                },
            ],
        },
        [True, True],
    ),
    "3.2.7": (
        {**ask(ALICE, WRITE, ACTIVE), "evaluations": [{}, {"resource": ARCHIVED}]},
        [True, False],
    ),
    "3.4.1": (
        {
            "subject": ALICE,
            "action": READ,
            "options": {"evaluations_semantic": "execute_all"},
            "evaluations": [{"resource": record(1)}, {}],
        },
        [True, False],
    ),
}
SEARCHES = {
    "4.2.1": (SUBJECTS, WHO, {"alice", "bob"}),
    "4.2.2": (SUBJECTS, {**WHO, "context": CIRCUMSTANCES}, {"alice", "bob"}),
    "4.2.3": (SUBJECTS, {**WHO, "subject": ALICE}, {"alice", "bob"}),
    "4.2.4": (SUBJECTS, ask(USERS, WRITE, ARCHIVED), {"bob"}),
    "4.3.1": (RESOURCES, WHICH, {"record-1", "record-2"}),
    "4.3.2": (RESOURCES, {**WHICH, "context": CIRCUMSTANCES}, {"record-1", "record-2"}),
    "4.3.3": (RESOURCES, FIRST, {"record-1", "record-2"}),
    "4.3.4": (RESOURCES, ask(ADMIN, WRITE, RECORDS), {"record-2"}),
    "4.4.1": (ACTIONS, WHAT, {"read", "write"}),
    "4.4.2": (ACTIONS, {**WHAT, "context": CIRCUMSTANCES}, {"read", "write"}),
    "4.4.3": (ACTIONS, {"subject": ADMIN, "resource": ARCHIVED}, {"read", "write"}),
    "4.5.1": (SUBJECTS, {**WHO, "page": {"limit": 1}}, {"alice"}),
    "4.6.1": (ACTIONS, {"subject": user("nonexistent-user"), "resource": record(1)}, set()),
    "4.6.2": (SUBJECTS, ask({"type": "spaceship"}, READ, record(1)), set()),
    "unknown resource type": (RESOURCES, ask(ALICE, READ, {"type": "spaceship"}), set()),
}
MALFORMED_SEARCHES = {
    "4.7.1 no action": (SUBJECTS, without(WHO, "action")),
    "4.7.1 no subject": (RESOURCES, without(WHICH, "subject")),
    "4.7.1 no resource": (ACTIONS, without(WHAT, "resource")),
    "4.7.2 no id of resource": (SUBJECTS, ask(USERS, READ, RECORDS)),
    "4.7.2 no id of subject": (RESOURCES, ask(USERS, READ, RECORDS)),
    "4.7.2 no id of subject or action": (ACTIONS, {"subject": USERS, "resource": record(1)}),
}


def rule(name, value, attribute, wanted):
    when = {"attribute": attribute, "op": "eq", "value": wanted}
    return {"name": name, "when": when, "value": value}


@pytest.fixture
def token(app):
    """A key of the tenant that has the scenario's subjects, resources and policy."""
    tenant = create_tenant(plan_name="free")
    writable = {
        **preset_flag("writable", True),
        "rules": [
            rule("by an admin", True, "context.subject_role", "admin"),
            rule("by a known admin", True, "user.meta_data.role", "admin"),
            rule("archived", False, "context.resource_status", "archived"),
        ],
    }
    deletable = {
        **preset_flag("deletable", False),
        "rules": [rule("softly", True, "context.action_soft", True)],
    }
    save(PlanPreset, name="free", flags=[writable, deletable])
    create_permission("read")
    create_permission("write", requires_flag="writable")
    create_permission("delete", requires_flag="deletable")
    reader = create_role(tenant, "reader", ["read"])
    editor = create_role(tenant, "editor", ["write", "delete"], inherits="reader")
    archivist = create_role(tenant, "archivist", ["write"])
    records = [create_resource(tenant, "record", f"record-{n}") for n in (1, 2)]
    _, alice, _ = create_member(tenant, "viewer", idp_user_id="alice")
    _, bob, _ = create_member(tenant, "viewer", idp_user_id="bob", meta_data={"role": "admin"})
    assign(tenant, editor, membership_id=alice.id)
    assign(tenant, reader, membership_id=bob.id)
    assign(tenant, archivist, records[1], membership_id=bob.id)
    return create_api_key(tenant, [Permission.ACCESS_READ])


@pytest.fixture
def post(api, token):
    """Send a body; the answer's status and JSON."""

    def send(path, body, **options):
        answer = api.post(path, token=token, json=body, **options)
        assert answer.content_type == "application/json"
        return answer.status_code, answer.get_json()

    return send


class TestBasic:
    @pytest.mark.parametrize("section", DECISIONS)
    def test_decides(self, post, section):
        body, expected = DECISIONS[section]

        for _ in range(2):
            status, answer = post(EVALUATION, body)
            assert (status, answer["decision"]) == (200, expected)
            assert isinstance(answer.get("context", {}), dict)

    @pytest.mark.parametrize("case", MALFORMED)
    def test_refuses_what_is_malformed(self, post, case):
        status, answer = post(EVALUATION, MALFORMED[case])

        assert status == 400
        assert answer["detail"][0]["loc"][0] == "body"

    @pytest.mark.parametrize(
        ("body", "content_type"),
        [
            ('{"subject": {}}', "text/plain"),
            ('{"subject": ', "application/json"),
            ("", "application/json"),
            ("[]", "application/json"),
        ],
    )
    @pytest.mark.parametrize("path", [EVALUATION, EVALUATIONS, SUBJECTS, RESOURCES, ACTIONS])
    def test_refuses_what_is_not_json(self, api, token, path, body, content_type):
        answer = api.post(path, token=token, data=body, content_type=content_type)

        assert answer.status_code == 400

    def test_echoes_the_id_of_the_request(self, api, token):
        sent = "bfe9eb29-ab87-4ca3-be83-a1d5d8305716"

        echoed = api.post(EVALUATION, token=token, json=FIRST, headers={"X-Request-ID": sent})
        without_one = api.post(EVALUATION, token=token, json=FIRST)

        assert echoed.headers["X-Request-ID"] == sent
        assert without_one.status_code == 200


class TestBatch:
    @pytest.mark.parametrize("section", BATCHES)
    def test_decides_in_order(self, post, section):
        body, expected = BATCHES[section]

        status, answer = post(EVALUATIONS, body)

        assert (status, [one["decision"] for one in answer["evaluations"]]) == (200, expected)
        assert "decision" not in answer

    @pytest.mark.parametrize("body", [FIRST, {**FIRST, "evaluations": []}], ids=["3.4.2", "3.4.3"])
    def test_without_entries_it_is_one_question(self, post, body):
        assert post(EVALUATIONS, body) == (200, {"decision": True})

    @pytest.mark.parametrize("case", MALFORMED)
    def test_a_single_question_has_the_same_errors(self, post, case):
        assert post(EVALUATIONS, MALFORMED[case])[0] == 400


class TestSearch:
    @pytest.mark.parametrize("section", SEARCHES)
    def test_finds(self, post, section):
        path, body, expected = SEARCHES[section]

        status, answer = post(path, body)

        found = answer["results"]
        assert status == 200
        assert {one.get("id", one.get("name")) for one in found} == expected
        if path != ACTIONS:
            kind = body["subject" if path == SUBJECTS else "resource"]["type"]
            assert {one["type"] for one in found} <= {kind}

    def test_leads_to_the_next_page(self, post):
        _, first = post(SUBJECTS, {**WHO, "page": {"limit": 1}})
        status, rest = post(SUBJECTS, {**WHO, "page": {"token": first["page"]["next_token"]}})

        assert [one["id"] for one in (*first["results"], *rest["results"])] == ["alice", "bob"]
        assert (status, rest["page"]["next_token"]) == (200, "")

    @pytest.mark.parametrize("case", MALFORMED_SEARCHES)
    def test_refuses_what_is_malformed(self, post, case):
        assert post(*MALFORMED_SEARCHES[case])[0] == 400


class TestDiscovery:
    def test_names_the_endpoints(self, api, app, monkeypatch):
        monkeypatch.setitem(app.config, "PUBLIC_URL", "https://pdp.example.com/")

        answer = api.get("/.well-known/authzen-configuration")

        assert answer.get_json() == {
            "policy_decision_point": "https://pdp.example.com",
            "access_evaluation_endpoint": f"https://pdp.example.com{EVALUATION}",
            "access_evaluations_endpoint": f"https://pdp.example.com{EVALUATIONS}",
            "search_subject_endpoint": f"https://pdp.example.com{SUBJECTS}",
            "search_resource_endpoint": f"https://pdp.example.com{RESOURCES}",
            "search_action_endpoint": f"https://pdp.example.com{ACTIONS}",
        }

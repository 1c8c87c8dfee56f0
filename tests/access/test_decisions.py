"""Decisions about permissions of the product, their reasons, and what they consume."""

import pytest

from app.auth.permissions import Permission
from app.plans.models import PlanPreset
from tests.authzen.world import assign, create_permission, create_role
from tests.factories import (
    create_api_key,
    create_member,
    create_tenant,
    platform_token,
    preset_flag,
    save,
)
from tests.messages import sent_messages

PATH = "/access/v1/evaluation"
LIMIT = {
    **preset_flag("invoices", 2),
    "flag_type": "limit",
    "metering": {"period": "none", "policy": "hard", "warn_at": []},
}


@pytest.fixture
def tenant(app):
    save(PlanPreset, name="free", flags=[preset_flag("billing-on", True), LIMIT])
    return create_tenant(plan_name="free")


@pytest.fixture
def role(tenant):
    create_permission("pay", requires_flag="billing-on", requires_limit="invoices")
    return create_role(tenant, "payer", ["pay"])


@pytest.fixture
def ada(tenant, role):
    user, membership, _ = create_member(
        tenant, "viewer", idp_user_id="ada", email="ada@example.com"
    )
    assign(tenant, role, membership_id=membership.id)
    return user


@pytest.fixture
def key(tenant):
    return create_api_key(tenant, [Permission.ACCESS_READ, Permission.USAGE_WRITE])


def question(subject="ada", *, type_="user", name="pay", resource=("doc", "1"), **context):
    what = {"type": resource[0], "id": resource[1]}
    who = {"type": type_, "id": str(subject)}
    return {"subject": who, "action": {"name": name}, "resource": what, "context": context}


def reason(answer):
    return answer.get("context", {}).get("reason", {}).get("code", "")


@pytest.fixture
def ask(api, key):
    def send(body, *, token=key, path=PATH):
        answer = api.post(path, token=token, json=body)
        assert answer.status_code == 200, answer.text
        return answer.get_json()

    return send


class TestReasons:
    def test_each_kind_of_subject_is_found(self, ask, ada):
        for type_, name in [
            ("user", ada.id),
            ("user", "ada"),
            ("user", "ADA@example.com"),
            ("identity", "ada"),
            ("email", "ada@example.com"),
        ]:
            assert ask(question(name, type_=type_, resource=("x", "y")))["decision"] is True

    def test_the_first_step_that_refuses_is_the_reason(self, ask, ada, tenant):
        other, _, _ = create_member(tenant, "viewer", idp_user_id="eve")

        assert reason(ask(question("nobody"))) == "subject_not_found"
        assert reason(ask(question(other.id))) == "permission_denied"
        assert reason(ask(question(name="nothing"))) == "permission_not_found"
        assert reason(ask(question(type_="spaceship"))) == "subject_not_found"
        assert ask(question(name="PAY"))["decision"] is True
        assert ask(question(name="users:read"))["decision"] is True
        assert reason(ask(question(name="usage:write"))) == "permission_denied"

    def test_another_tenant_is_not_told(self, ask, ada):
        stranger = create_tenant()
        token = create_api_key(stranger, [Permission.ACCESS_READ])

        unknown = ask(question(ada.id, tenant_id="nowhere"), token=token)

        assert ask(question(ada.id, tenant_id=str(ada.tenant_id)), token=token) == unknown
        assert reason(unknown) == "tenant_not_found"
        assert reason(ask(question(ada.id), token=token)) == "subject_not_found"

    def test_the_platform_names_the_tenant_or_the_user(self, ask, ada, tenant):
        token = platform_token()

        for name in (str(tenant.id), tenant.idp_org_id, tenant.slug):
            assert ask(question(tenant_id=name), token=token)["decision"] is True
        assert ask(question(ada.id), token=token)["decision"] is True
        assert reason(ask(question(), token=token)) == "tenant_not_found"

    def test_one_decision_is_two_round_trips(self, ask, ada):
        ask(question())

        with sent_messages() as names:
            ask({"evaluations": [question()] * 100}, path="/access/v1/evaluations")

        assert names == ["auth.authenticate_key", "access.find_facts", "COMMIT"]


class TestConsumption:
    def test_a_yes_has_counted_and_the_limit_then_refuses(self, ask, ada):
        body = question(consume={"feature": "invoices", "amount": 2})

        first, second = ask(body), ask(body)

        assert (first["decision"], first["context"]["usage"]["used"]) == (True, 2)
        assert (second["decision"], reason(second)) == (False, "limit_reached")

    def test_entries_count_in_their_order(self, ask, ada):
        one = question(consume={"feature": "invoices"})

        answers = ask({"evaluations": [one, one, one, question()]}, path="/access/v1/evaluations")

        made = [each["decision"] for each in answers["evaluations"]]
        assert made == [True, True, False, False]

    def test_entries_count_for_all_who_are_asked_about_by_the_platform(
        self, ask, ada, tenant, role
    ):
        user, membership, _ = create_member(tenant, "viewer")
        assign(tenant, role, membership_id=membership.id)
        entries = [
            question(ada.id, consume={"feature": "invoices", "amount": 2}),
            question(user.id),
        ]
        token = platform_token()

        answers = ask({"evaluations": entries}, path="/access/v1/evaluations", token=token)

        assert [each["decision"] for each in answers["evaluations"]] == [True, False]

    @pytest.mark.parametrize(
        ("semantic", "count"), [("deny_on_first_deny", 2), ("permit_on_first_permit", 1)]
    )
    def test_a_semantic_ends_the_answers(self, ask, ada, semantic, count):
        entries = [question(), question("nobody"), question()]
        body = {"evaluations": entries, "options": {"evaluations_semantic": semantic}}

        assert len(ask(body, path="/access/v1/evaluations")["evaluations"]) == count

    def test_an_unknown_limit_is_a_no(self, ask, ada):
        assert reason(ask(question(consume={"feature": "nothing"}))) == "consume_refused"

    def test_needs_the_permission_to_count(self, api, ada, tenant):
        token = create_api_key(tenant, [Permission.ACCESS_READ])

        answer = api.post(PATH, token=token, json=question(consume={"feature": "invoices"}))

        assert answer.status_code == 403


class TestExplanation:
    def test_shows_the_steps_of_the_decision(self, api, ada):
        query = {"permission": "pay", "user_id": ada.id, "resource_type": "doc", "resource_id": "1"}

        told = api.get("/v1/access/explain", token=platform_token(), query_string=query)

        data = told.get_json()["data"]
        assert (data["allowed"], data["decided_by"]) == (True, "permission")
        assert [step["step"] for step in data["steps"]] == [
            "tenant", "user", "membership", "permission", "flag", "limit"
        ]  # fmt: skip

    def test_names_the_reason(self, api, ada):
        query = {"permission": "nothing", "subject": "ada", "tenant_id": ada.tenant_id}

        told = api.get("/v1/access/explain", token=platform_token(), query_string=query)

        assert told.get_json()["data"]["reason"] == "permission_not_found"


class TestHostileBodies:
    @pytest.mark.parametrize(
        "change",
        [
            {"subject": {"type": "user", "id": "\0"}},
            {"subject": {"type": "user", "id": "x" * 100_000}},
            {"subject": {"type": "user", "id": "\ud800"}},
            {"subject": {"type": "user", "id": None}},
            {"resource": {"type": "doc", "id": 7}},
            {"resource": {"type": "doc", "id": "1", "properties": {"a": "\0"}}},
            {"resource": {"type": "doc", "id": "1", "properties": {str(n): n for n in range(500)}}},
            {"context": []},
            {"context": {"consume": {"feature": "invoices", "amount": -1}}},
        ],
    )
    def test_are_refused_or_a_no(self, api, key, ada, change):
        for path in (PATH, "/access/v1/evaluations"):
            answer = api.post(path, token=key, json={**question(), **change})
            assert answer.status_code == 400
            entry = {**question(), **change}
            batch = api.post("/access/v1/evaluations", token=key, json={"evaluations": [entry]})
            if batch.status_code != 400:  # text that cannot be stored is refused as a whole
                assert batch.get_json()["evaluations"][0]["decision"] is False

    @pytest.mark.parametrize(
        "properties", [{"a": "x" * 65_536}, {"tenant_id": "x" * 65_536}, {"tenant_id": [1]}]
    )
    def test_large_and_odd_properties_are_no_error(self, ask, ada, properties):
        body = question()
        body["resource"]["properties"] = properties

        assert ask(body)["decision"] is ("a" in properties)

    @pytest.mark.parametrize(
        "token", ["x", "W10=", "bnVsbA==", "é", "\0", "WyJhIiwgImIiXQ==", "W1tb" * 1_000]
    )
    def test_a_token_of_another_search_is_refused(self, api, key, token):
        body = {**question(), "page": {"token": token}}

        for kind in ("subject", "resource", "action"):
            assert api.post(f"/access/v1/search/{kind}", token=key, json=body).status_code == 400

"""POST /v1/usage/consume and /v1/usage/check."""

import pytest
from prometheus_client import REGISTRY

from app.audit.models import AuditEvent
from app.core.clock import rfc3339
from app.usage.models import UsageCounter
from tests import database
from tests.factories import (
    create_api_key,
    create_limits,
    create_member,
    create_override,
    create_tenant,
    limit_flag,
    platform_token,
)
from tests.messages import sent_messages
from tests.usage.days import pass_days

CONSUME = "/v1/usage/consume"
CHECK = "/v1/usage/check"


@pytest.fixture
def send(api, key):
    """Consume with the tenant's key."""
    return lambda feature, amount=1, **more: api.post(
        CONSUME, token=key, json={"feature": feature, "amount": amount, **more}
    )


def used(feature):
    return [row.used for row in database.rows(UsageCounter, feature=feature)]


def faults(answer):
    assert answer.status_code == 422, answer.text
    return [(error["type"], error["loc"], error["input"]) for error in answer.json["detail"]]


class TestConsume:
    def test_answers_the_state_of_the_limit(self, send):
        answer = send("calls", 4)

        data = answer.json["data"]
        assert answer.status_code == 200
        assert data | {"resets_at": None} == {
            "allowed": True,
            "feature": "calls",
            "limit": 10,
            "used": 4,
            "remaining": 6,
            "resets_at": None,
            "policy": "hard",
        }

    def test_refuses_more_than_a_hard_limit_and_counts_nothing(self, send):
        send("calls", 8)

        answer = send("calls", 3)

        assert (answer.status_code, answer.json["code"]) == (409, "limit_reached")
        assert list(answer.json) == ["detail", "code", "data"]
        assert answer.json["data"]["allowed"] is False
        assert answer.json["data"]["remaining"] == 2
        assert used("calls") == [8]

    def test_counts_more_than_a_soft_limit(self, send):
        answers = [send("storage", amount).json["data"] for amount in (5, 4)]

        assert [answer["over_by"] for answer in answers] == [0, 4]
        assert [answer["allowed"] for answer in answers] == [True, True]
        assert answers[1]["remaining"] == 0

    def test_refuses_a_count_that_is_too_large(self, send, tenant):
        send("unlimited")
        database.execute("UPDATE usage_counters SET used = 1000000000000000000")

        assert faults(send("unlimited")) == [("value_error", ["body", "amount"], 1)]

    def test_gives_back_but_not_below_zero(self, send):
        send("projects", 3)

        given_back, below = send("projects", -2), send("projects", -2)

        assert given_back.json["data"]["used"] == 1
        assert (below.status_code, below.json["code"]) == (409, "usage_below_zero")
        assert "give back at most `used` of `data`" in below.json["detail"]
        assert below.json["data"]["used"] == 1
        assert used("projects") == [1]

    def test_gives_back_nothing_where_the_count_starts_anew(self, send):
        assert faults(send("calls", -1)) == [("value_error", ["body", "amount"], -1)]

    @pytest.mark.parametrize("feature", ["nope", "seats", "Calls", "x" * 5000])
    def test_refuses_an_unknown_feature_and_seats_with_the_key(self, send, feature):
        assert faults(send(feature)) == [("value_error", ["body", "feature"], feature)]

    def test_refuses_another_period(self, send):
        answer = send("calls", at="2020-01-01T00:00:00Z")

        assert [fault[:2] for fault in faults(answer)] == [("value_error", ["body", "at"])]
        now = database.query("SELECT now()")[0][0].isoformat()
        assert send("calls", at=now).status_code == 200
        assert send("projects", at="2020-01-01T00:00:00Z").status_code == 200

    def test_a_lowered_limit_takes_nothing_away(self, send, tenant, preset):
        send("calls", 8)
        create_override(tenant, preset, "calls", 5)

        answer = send("calls")

        data = answer.json["data"]
        assert answer.status_code == 409
        assert (data["limit"], data["used"], data["remaining"], data["over_by"]) == (5, 8, 0, 3)

    @pytest.mark.parametrize("value", [5.5, "7", True, {"a": 1}, 10**16, -2])
    def test_an_override_of_another_type_has_no_effect(self, send, tenant, preset, value):
        create_override(tenant, preset, "calls", value)

        assert send("calls").json["data"]["limit"] == 10

    def test_sends_three_messages(self, send):
        send("calls")

        with sent_messages() as messages:
            send("calls")

        assert messages == ["auth.authenticate_key", "usage.consume", "COMMIT"]

    def test_needs_a_feature_or_entries(self, api, key):
        neither, both = (
            api.post(CONSUME, token=key, json=body)
            for body in ({}, {"entries": [{"feature": "calls"}], "amount": 2})
        )

        assert faults(neither) == [("missing", ["body", "feature"], {})]
        assert faults(both) == [("extra_forbidden", ["body", "amount"], 2)]


class TestIdempotencyKey:
    def test_with_another_amount_is_refused(self, send):
        send("calls", 1, idempotency_key="a")

        answer = send("calls", 2, idempotency_key="a")

        wanted = [("idempotency_key_reused", ["body", "idempotency_key"], "a")]
        assert faults(answer) == wanted
        assert used("calls") == [1]

    def test_of_a_refused_amount_can_be_sent_again(self, send, tenant, preset):
        send("calls", 9)
        assert send("calls", 5, idempotency_key="a").status_code == 409
        create_override(tenant, preset, "calls", 20)

        assert send("calls", 5, idempotency_key="a").json["data"]["used"] == 14

    def test_counts_again_after_a_day(self, send):
        send("calls", idempotency_key="a")
        database.execute("UPDATE usage_keys SET created_at = now() - interval '24 hours'")

        send("calls", idempotency_key="a")

        assert used("calls") == [2]

    def test_of_the_last_period_is_answered_although_its_time_is_over(self, send):
        at = rfc3339(database.query("SELECT now()")[0][0])
        first = send("unlimited", idempotency_key="a", at=at)
        pass_days()  # the counter's period ends, but the clock does not move
        at = rfc3339(database.query("SELECT now() - interval '1 day'")[0][0])

        retried = send("unlimited", idempotency_key="a", at=at)

        assert (first.status_code, retried.status_code) == (200, 200)
        assert retried.json["data"]["allowed"] is True
        assert sum(used("unlimited")) == 1
        assert [fault[1] for fault in faults(send("unlimited", at=at))] == [["body", "at"]]
        other = send("unlimited", 2, idempotency_key="a", at=at)
        assert faults(other)[0][0] == "idempotency_key_reused"


class TestEntries:
    def send(self, api, key, *entries):
        return api.post(CONSUME, token=key, json={"entries": list(entries)})

    def test_counts_those_that_fit_and_answers_in_their_order(self, api, key):
        answer = self.send(
            api,
            key,
            {"feature": "projects", "amount": 2},
            {"feature": "calls", "amount": 11},
            {"feature": "projects", "amount": 2},
            {"feature": "calls", "amount": 10, "idempotency_key": "a"},
        )

        data = answer.json["data"]
        assert answer.status_code == 200
        assert [entry["allowed"] for entry in data] == [True, False, False, True]
        assert [entry["used"] for entry in data] == [2, 0, 2, 10]
        assert used("calls") + used("projects") == [10, 2]

    def test_a_fault_in_one_refuses_all(self, api, key):
        answer = self.send(
            api, key, {"feature": "calls"}, {"feature": "nope"}, {"feature": "seats"}
        )

        assert faults(answer) == [
            ("value_error", ["body", "entries", 1, "feature"], "nope"),
            ("value_error", ["body", "entries", 2, "feature"], "seats"),
        ]
        assert used("calls") == []

    def test_a_hundred_are_one_statement(self, api, key):
        with sent_messages() as messages:
            answer = self.send(api, key, *[{"feature": "unlimited"}] * 100)

        assert answer.status_code == 200
        assert messages == ["auth.authenticate_key", "usage.consume", "COMMIT"]
        assert used("unlimited") == [100]


class TestThresholds:
    def events(self):
        return [
            (event.action, event.target_id, event.after)
            for event in database.query(
                "SELECT * FROM audit_events WHERE target_type = 'limit' ORDER BY id"
            )
        ]

    def test_are_recorded_once_in_a_period(self, send, api, tenant):
        for _ in range(10):
            send("calls")
        correction = {"used": 1, "reason": "test"}
        query = {"tenant_id": str(tenant.id)}
        api.put("/v1/usage/calls", token=platform_token(), query_string=query, json=correction)
        send("calls", 9)

        resets_at = database.row(UsageCounter, feature="calls").period_end
        state = {"limit": 10, "policy": "hard", "resets_at": rfc3339(resets_at)}
        assert self.events() == [
            ("limit.warning", "calls", {"used": 8, "percent": 80} | state),
            ("limit.reached", "calls", {"used": 10, "percent": 100} | state),
        ]

    def test_are_recorded_with_the_consumer_and_counted(self, send, key):
        name, labels = "limits_crossed_total", {"event": "limit.reached"}
        before = REGISTRY.get_sample_value(name, labels) or 0

        send("storage", 9)

        (actor,) = {event.actor for event in database.rows(AuditEvent)}
        assert actor.startswith("key:")
        assert REGISTRY.get_sample_value(name, labels) == before + 1


class TestWhoMay:
    def test_the_platform_names_the_tenant_in_the_body(self, api, tenant):
        token = platform_token()

        named = api.post(
            CONSUME, token=token, json={"feature": "calls", "tenant_id": str(tenant.id)}
        )
        unnamed = api.post(CONSUME, token=token, json={"feature": "calls"})
        unknown = {"feature": "calls", "tenant_id": "01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f"}

        assert named.json["data"]["used"] == 1
        assert faults(unnamed) == [("missing", ["body", "tenant_id"], None)]
        assert api.post(CONSUME, token=token, json=unknown).status_code == 404

    @pytest.mark.parametrize("path", [CONSUME, CHECK])
    def test_the_tenant_has_three_names(self, api, tenant, path):
        for name in (str(tenant.id), tenant.slug, tenant.idp_org_id):
            answer = api.post(
                path, token=platform_token(), json={"feature": "calls", "tenant_id": name}
            )

            assert answer.status_code == 200, name

    @pytest.mark.parametrize("path", [CONSUME, CHECK])
    def test_a_key_names_its_own_tenant_only(self, api, tenant, key, path):
        other = create_tenant()

        own = [tenant.slug, tenant.idp_org_id]
        others = [other.slug, other.idp_org_id]
        answers = [
            api.post(path, token=key, json={"feature": "calls", "tenant_id": name})
            for name in (*own, *others)
        ]

        assert [answer.status_code for answer in answers] == [200, 200, 404, 404]
        assert all(answer.json["code"] == "tenant_not_found" for answer in answers[2:])

    def test_an_id_is_not_looked_up(self, api, tenant):
        token = platform_token()
        api.post(CONSUME, token=token, json={"feature": "calls", "tenant_id": str(tenant.id)})

        def messages(name):
            with sent_messages() as sent:
                api.post(CONSUME, token=token, json={"feature": "calls", "tenant_id": name})
            return len(sent)

        assert messages(tenant.slug) == messages(str(tenant.id)) + 1

    def test_only_the_platform_grants_it(self, api, tenant):
        body = {"name": "meter", "permissions": ["usage:write"]}
        every = create_api_key(tenant, ["usage:write", "api_keys:write"])
        owner = create_member(tenant, "owner")[2]

        refused = [api.post("/v1/api-keys", token=token, json=body) for token in (owner, every)]
        query = {"tenant_id": str(tenant.id)}
        granted = api.post("/v1/api-keys", token=platform_token(), json=body, query_string=query)

        assert [one.json["code"] for one in refused] == ["permission_beyond_own"] * 2
        secret = granted.json["data"]["secret"]
        assert api.post(CONSUME, token=secret, json={"feature": "calls"}).status_code == 200

    def test_a_suspended_tenant_is_refused_by_the_platform_too(self, api, tenant, key):
        database.execute("UPDATE tenants SET is_active = false")
        named = {"tenant_id": str(tenant.id)}
        token = platform_token()

        answers = [
            api.post(CONSUME, token=key, json={"feature": "calls"}),
            api.post(CONSUME, token=token, json={"feature": "calls", **named}),
            api.post(CHECK, token=token, json={"feature": "calls", **named}),
        ]

        assert [one.json["code"] for one in answers] == ["tenant_suspended"] * 3
        unknown = api.post(CONSUME, token=token, json={"feature": "nope", **named})
        assert unknown.status_code == 422
        assert database.rows(UsageCounter) == []


class TestCheck:
    @pytest.mark.parametrize(
        ("amount", "allowed"), [(2, True), (3, False), (-8, True), (-9, False)]
    )
    def test_answers_what_would_be_and_counts_nothing(self, api, key, send, amount, allowed):
        create_limits("pro", limit_flag("calls", 10))
        database.execute("UPDATE tenants SET plan_name = 'pro'")
        send("calls", 8)

        answer = api.post(CHECK, token=key, json={"feature": "calls", "amount": amount})

        assert answer.status_code == 200
        assert answer.json["data"]["allowed"] is allowed
        assert answer.json["data"]["used"] == 8
        assert used("calls") == [8]

    def test_allows_what_was_counted_already(self, api, key, send):
        send("calls", 10, idempotency_key="a")
        body = {"feature": "calls", "amount": 10, "idempotency_key": "a"}

        assert api.post(CHECK, token=key, json=body).json["data"]["allowed"] is True

    def test_counts_seats_from_the_memberships(self, api, key, tenant):
        create_member(tenant)

        one, two = (
            api.post(CHECK, token=key, json={"feature": "seats", "amount": amount})
            for amount in (1, 2)
        )

        assert one.json["data"]["allowed"] is True
        assert two.json["data"]["allowed"] is False
        assert (two.json["data"]["used"], two.json["data"]["limit"]) == (1, 2)

    def test_checks_each_entry_alone(self, api, key):
        body = {"entries": [{"feature": "calls", "amount": amount} for amount in (11, 10, 9)]}

        answer = api.post(CHECK, token=key, json=body)

        assert [entry["allowed"] for entry in answer.json["data"]] == [False, True, True]

"""A limit ``seats`` bounds the active memberships of active users."""

from collections import Counter
from functools import partial
from itertools import count

import pytest
from prometheus_client import REGISTRY

from app.audit.models import AuditEvent
from app.memberships.models import Membership
from tests import database
from tests.concurrency import at_once
from tests.factories import (
    create_limits,
    create_membership,
    create_override,
    create_tenant,
    create_user,
    limit_flag,
    platform_token,
)
from tests.inbox.sending import Sender
from tests.messages import sent_messages

SEATS = 3


@pytest.fixture
def preset(app):
    return create_limits("free", limit_flag("seats", SEATS))


@pytest.fixture
def tenant(preset):
    return create_tenant(idp_org_id="org_1")


@pytest.fixture
def token(tenant):
    return platform_token(tenant=tenant)


@pytest.fixture
def join(api, token):
    """Create a membership of a user."""
    return lambda user: api.post(
        "/v1/memberships/tenant", token=token, json={"user_id": str(user.id), "role": "member"}
    )


@pytest.fixture
def activate(api, token):
    """Activate a membership or a user."""

    def send(row):
        if isinstance(row, tuple) and hasattr(row, "role"):
            path = f"/v1/memberships/tenant/{row.id}/active?is_active=true"
            return api.patch(path, token=token)
        return api.patch(f"/v1/users/{row.id}", token=token, json={"is_active": True})

    return send


def fill(tenant, number=SEATS):
    for _ in range(number):
        create_membership(tenant, create_user(tenant))


def taken(tenant):
    return database.query("SELECT count_seats(CAST(:id AS uuid))", id=str(tenant.id))[0][0]


def refused(answer):
    return answer.status_code == 409 and answer.json["code"] == "seat_limit"


class TestCreate:
    def test_is_refused_where_no_seat_is_free(self, tenant, join):
        fill(tenant, SEATS - 1)

        last, beyond = join(create_user(tenant)), join(create_user(tenant))

        assert last.status_code == 201
        assert refused(beyond)
        assert taken(tenant) == SEATS
        assert len(database.rows(AuditEvent, action="membership.created")) == 1

    def test_of_an_inactive_user_takes_no_seat(self, tenant, join):
        fill(tenant)

        assert join(create_user(tenant, is_active=False)).status_code == 201

    def test_is_free_of_inactive_memberships_and_users(self, tenant, join):
        fill(tenant, SEATS - 1)
        create_membership(tenant, create_user(tenant), is_active=False)
        create_membership(tenant, create_user(tenant, is_active=False))

        assert join(create_user(tenant)).status_code == 201

    def test_names_a_membership_that_exists(self, tenant, join):
        user = create_user(tenant)
        create_membership(tenant, user)
        fill(tenant)

        assert join(user).json["code"] == "membership_exists"

    @pytest.mark.parametrize("flags", [[], [limit_flag("seats", -1)]])
    def test_has_no_limit_without_one(self, tenant, join, flags):
        create_limits("pro", *(flags or [limit_flag("calls")]))
        database.execute("UPDATE tenants SET plan_name = 'pro'")
        fill(tenant)

        assert join(create_user(tenant)).status_code == 201

    def test_is_not_limited_by_a_soft_limit(self, tenant, join):
        create_limits("pro", limit_flag("seats", 1, policy="soft"))
        database.execute("UPDATE tenants SET plan_name = 'pro'")
        fill(tenant)

        assert join(create_user(tenant)).status_code == 201

    def test_follows_an_override(self, tenant, preset, join):
        fill(tenant)
        create_override(tenant, preset, "seats", SEATS + 1)

        assert join(create_user(tenant)).status_code == 201
        assert refused(join(create_user(tenant)))


class TestActivate:
    def test_a_membership_is_refused_where_no_seat_is_free(self, tenant, activate):
        one, other = (
            create_membership(tenant, create_user(tenant), "member", is_active=False)
            for _ in range(2)
        )
        fill(tenant, SEATS - 1)

        assert activate(one).status_code == 200
        assert refused(activate(other))
        assert activate(one).status_code == 200  # it is active already

    def test_a_user_is_refused_where_no_seat_is_free(self, tenant, activate):
        one, other, no_member = (create_user(tenant, is_active=False) for _ in range(3))
        for user in (one, other):
            create_membership(tenant, user, "member")
        fill(tenant, SEATS - 1)

        assert activate(one).status_code == 200
        assert refused(activate(other))
        assert activate(no_member).status_code == 200
        assert activate(one).status_code == 200
        assert taken(tenant) == SEATS


def recorded():
    """The thresholds that are recorded, in their order."""
    return [
        (event.action, event.after["percent"], event.after["used"])
        for event in database.rows(AuditEvent, target_type="limit")
    ]


def plan_with_seats(tenant, most, **metering):
    """Put the tenant on a plan with another limit of seats."""
    create_limits("pro", limit_flag("seats", most, **metering))
    database.execute("UPDATE tenants SET plan_name = 'pro'")


class TestThresholds:
    def test_are_recorded_when_seats_are_taken(self, tenant, join, activate):
        plan_with_seats(tenant, 4, warn_at=[50, 75, 100])
        create_membership(tenant, create_user(tenant))
        invited = create_membership(tenant, create_user(tenant), "member", is_active=False)
        away = create_user(tenant, is_active=False)
        create_membership(tenant, away, "member")

        join(create_user(tenant))
        activate(invited)
        activate(away)
        assert refused(join(create_user(tenant)))

        assert recorded() == [
            ("limit.warning", 50, 2),
            ("limit.warning", 75, 3),
            ("limit.reached", 100, 4),
        ]

    def test_are_recorded_with_the_state_and_counted(self, tenant, join):
        name, labels = "limits_crossed_total", {"event": "limit.reached"}
        before = REGISTRY.get_sample_value(name, labels) or 0
        fill(tenant, SEATS - 1)

        join(create_user(tenant))

        event = database.row(AuditEvent, action="limit.reached")
        assert event.actor.startswith("platform:")
        assert (event.tenant_id, event.target_type, event.target_id) == (
            tenant.id,
            "limit",
            "seats",
        )
        assert (event.before, event.after) == (
            {},
            {"used": 3, "limit": 3, "percent": 100, "policy": "hard", "resets_at": None},
        )
        assert REGISTRY.get_sample_value(name, labels) == before + 1

    def test_are_recorded_once(self, api, tenant, token, join):
        fill(tenant, SEATS - 1)

        for _ in range(2):
            member = join(create_user(tenant)).json["data"]["id"]
            path = f"/v1/memberships/tenant/{member}/active?is_active=false"
            api.patch(path, token=token)

        assert recorded() == [("limit.warning", 80, 3), ("limit.reached", 100, 3)]

    def test_of_another_limit_are_recorded_again(self, tenant, join):
        fill(tenant, SEATS - 1)
        join(create_user(tenant))
        plan_with_seats(tenant, 5)

        for _ in range(2):
            join(create_user(tenant))

        assert recorded() == [
            ("limit.warning", 80, 3),
            ("limit.reached", 100, 3),
            ("limit.warning", 80, 4),
            ("limit.reached", 100, 5),
        ]

    def test_are_recorded_once_by_concurrent_joins(self, tenant, join):
        plan_with_seats(tenant, 5, warn_at=[20, 40, 60, 80, 100])

        at_once([partial(join, create_user(tenant)) for _ in range(12)])

        assert [percent for _, percent, _ in recorded()] == [20, 40, 60, 80, 100]

    def test_are_recorded_within_six_messages(self, tenant, activate):
        fill(tenant, SEATS - 1)
        ended = create_membership(tenant, create_user(tenant), "member", is_active=False)

        with sent_messages() as messages:
            activate(ended)

        assert messages[2:] == [
            "memberships.update",
            "usage_counters.set_announced_seats",
            "audit_events_event_outbox.insert_many",
            "COMMIT",
        ]

    def test_do_not_show_a_count_after_the_limit_is_gone(self, api, tenant, token, join):
        fill(tenant, SEATS - 1)
        join(create_user(tenant))
        create_limits("pro", limit_flag("calls"))
        database.execute("UPDATE tenants SET plan_name = 'pro'")

        shown = api.get("/v1/usage", token=token).json["data"]

        assert [row["feature"] for row in shown] == ["calls"]


class TestRaces:
    def test_fifty_joins_on_three_free_seats_are_three(self, tenant, join):
        users = [create_user(tenant) for _ in range(50)]

        answers = at_once([partial(join, user) for user in users])

        assert Counter(answer.status_code for answer in answers) == {201: 3, 409: 47}
        assert taken(tenant) == SEATS

    def test_joins_and_activations_take_no_more_either(self, tenant, join, activate):
        for _ in range(5):
            database.execute("DELETE FROM memberships")
            newcomers = [create_user(tenant) for _ in range(4)]
            inactive = [create_user(tenant, is_active=False) for _ in range(4)]
            ended = [
                create_membership(tenant, create_user(tenant), "member", is_active=False)
                for _ in range(4)
            ]
            for user in inactive[:2]:
                create_membership(tenant, user, "member")
            actions = [partial(join, user) for user in [*newcomers, *inactive[2:]]]
            actions += [partial(activate, row) for row in [*inactive, *ended]]

            answers = at_once(actions)

            assert {answer.status_code for answer in answers} <= {200, 201, 409}
            assert taken(tenant) == SEATS


class TestIdentityEvents:
    @pytest.fixture
    def deliver(self, app, monkeypatch):
        sender = Sender(app, monkeypatch)
        seconds = count()

        def send(type_, **data):
            moment = f"2026-01-05T09:45:{next(seconds):02}Z"
            body = {"type": type_, "timestamp": moment, "data": data}
            row = sender.deliver("standard_webhooks", body)
            assert row.status == "succeeded", row.detail

        return send

    def join(self, deliver, name):
        deliver("user.created", id=name, email=f"{name}@acme.example")
        deliver("membership.created", id=f"m{name}", organization_id="org_1", user_id=name)

    def test_are_applied_beyond_the_limit_and_audited(self, tenant, deliver):
        fill(tenant, SEATS - 1)

        for name in ("ada", "bob"):
            self.join(deliver, name)

        assert len(database.rows(Membership)) == SEATS + 1
        event = database.row(AuditEvent, action="tenant.over_seats")
        assert (event.target_id, event.actor) == (str(tenant.id), "system:idp")
        assert (event.before, event.after) == ({"free_seats": 0}, {"free_seats": -1})
        assert recorded() == [("limit.warning", 80, 3), ("limit.reached", 100, 3)]

    def test_that_activate_somebody_beyond_the_limit_are_audited(self, tenant, deliver):
        self.join(deliver, "ada")
        deliver("user.updated", id="ada", active=False)
        fill(tenant)

        deliver("user.updated", id="ada", active=True, email="ada@acme.example")

        assert taken(tenant) == SEATS + 1
        assert len(database.rows(AuditEvent, action="tenant.over_seats")) == 1

    def test_that_take_no_seat_are_not_audited(self, tenant, deliver):
        fill(tenant, SEATS - 1)
        self.join(deliver, "ada")
        fill(tenant, 1)

        deliver("user.updated", id="ada", first_name="Augusta")
        deliver("membership.deleted", id="mada", organization_id="org_1", user_id="ada")

        assert database.rows(AuditEvent, action="tenant.over_seats") == []

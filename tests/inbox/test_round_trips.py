"""How many messages the worker sends to PostgreSQL for one event, BEGIN and COMMIT included.

Each message is a round trip. BEGIN travels with the claim of the event. A job looks once more when
no event is left: two messages for each job, not for each event.
"""

from typing import Any

import pytest

from app.audit.models import AuditEvent
from app.inbox import jobs
from app.inbox.providers import EMAIL
from app.memberships.models import Membership
from app.tenants.models import Tenant
from app.users.models import User
from tests import database
from tests.conformance.webhook_samples import document
from tests.inbox.sending import Sender, event_row, work_off
from tests.messages import sent_messages

APPLICATION = 9
LAST_LOOK = 2
FIRST = [
    "webhook_events.claim_next", "identity_objects.lock", "identity_objects.load",
    "identity_sync.find_rows",
]  # fmt: skip
LAST = ["identity_objects.save", "COMMIT"]
USER, ORGANIZATION = "user_1", "org_1"


@pytest.fixture
def count(app, sender: Sender):
    """Post an event and apply it: the messages of its application, without the last look."""

    def apply(preset: str, body: Any, status: str = "succeeded", **options: Any) -> list[str]:
        answer = sender.post(preset, body, **options)
        with sent_messages() as messages:
            work_off(app)
        assert event_row(answer.get_json()["event_id"]).status == status
        assert messages[-LAST_LOOK:] == ["webhook_events.claim_next", "COMMIT"]
        return messages[:-LAST_LOOK]

    return apply


def workos(event: str, number: int, **data: Any) -> dict[str, Any]:
    """An event of WorkOS, later than those with a lower ``number``."""
    at = f"2026-01-05T09:00:{number:02}.000Z"
    data = {"object": event.partition(".")[0], "created_at": at, "updated_at": at, **data}
    return {"id": f"event_{number}", "event": event, "created_at": at, "data": data}


def organization(change: str, number: int, **data: Any) -> dict[str, Any]:
    return workos(f"organization.{change}", number, **{"id": ORGANIZATION, "name": "Acme", **data})


def user(change: str, number: int, **data: Any) -> dict[str, Any]:
    names = {"first_name": "Ada", "last_name": "Lovelace"}
    values = {"id": USER, "email": "ada@acme.example", **names, **data}
    return workos(f"user.{change}", number, **values)


def membership(change: str, number: int, **data: Any) -> dict[str, Any]:
    pair = {"organization_id": ORGANIZATION, "user_id": USER}
    values = {"id": "om_1", "status": "active", "role": {"slug": "member"}, **pair, **data}
    return workos(f"organization_membership.{change}", number, **values)


class TestIdentityEvents:
    def test_of_one_history_send_nine_messages_at_most(self, count):
        """From the first event to the last, in an order in which nothing waits."""
        for event in (
            organization("created", 1),
            user("created", 2),
            membership("created", 3),
            user("updated", 4, first_name="Augusta"),
            membership("updated", 5, role={"slug": "admin"}),
            organization("updated", 6, name="Acme Inc."),
            membership("deleted", 7),
            user("deleted", 8),
            organization("deleted", 9, name="Acme Inc."),
        ):
            messages = count("workos", event)

            assert len(messages) <= APPLICATION, (event["event"], messages)

    def test_of_an_organization_with_waiting_memberships_send_eight_messages(self, count):
        people = [{"user_id": f"user_{number}", "id": f"om_{number}"} for number in range(3)]
        for number, person in enumerate(people):
            if number:  # the first membership waits on for its user
                count("workos", user("created", 10 + number, id=person["user_id"]))
            count("workos", membership("created", 20 + number, **person))

        messages = count("workos", organization("created", 30))

        assert messages == [
            *FIRST, "tenants.find_similar_slugs",
            "audit_events_event_outbox_memberships_search_terms_tenants_users.insert_many", *LAST,
        ]  # fmt: skip
        assert {one.idp_user_id for one in database.rows(User)} == {"user_1", "user_2"}
        assert len(database.rows(Membership)) == 2
        actions = [one.action for one in database.rows(AuditEvent, actor="system:idp")]
        made = ["membership.created"] * 2 + ["tenant.created"] + ["user.created"] * 2
        assert sorted(actions) == made

    @pytest.mark.parametrize("role", ["owner", "member"])
    @pytest.mark.parametrize("tenants", [1, 3])
    def test_that_delete_a_person_send_nine_messages(self, count, tenants, role):
        count("workos", user("created", 1))
        for number in range(tenants):
            joined = {"id": f"om_{number}", "organization_id": f"org_{number}"}
            count("workos", organization("created", 10 + number, id=f"org_{number}"))
            count("workos", membership("created", 20 + number, role={"slug": role}, **joined))
        waiting = {"id": "om_waiting", "organization_id": "org_unknown"}
        count("workos", membership("created", 30, **waiting))

        messages = count("workos", user("deleted", 31))

        assert messages == [
            *FIRST, "users.update_many", "memberships.update_many",
            "audit_events_event_outbox.insert_many", *LAST,
        ]  # fmt: skip
        ended = [*database.rows(User), *database.rows(Membership)]
        assert [one.is_active for one in ended] == [False] * 2 * tenants

    def test_of_a_rename_with_a_suspension_send_nine_messages(self, count):
        count("workos", organization("created", 1))

        messages = count("workos", organization("deleted", 2, name="Renamed"))

        assert len(messages) == 9, messages  # one of them revokes the setup links
        tenant = database.row(Tenant)
        assert (tenant.name, tenant.is_active) == ("Renamed", False)
        _, *changes = database.rows(AuditEvent, tenant_id=tenant.id)
        assert [(one.action, one.before, one.after) for one in changes] == [
            ("tenant.updated", {"name": "Acme"}, {"name": "Renamed"}),
            ("tenant.suspended", {"is_active": True}, {"is_active": False}),
        ]

    def test_that_are_stale_send_five_messages(self, count):
        count("workos", user("updated", 2))

        messages = count("workos", user("created", 1), status="ignored")

        assert len(messages) == 5, messages


class TestEmailEvents:
    @pytest.mark.parametrize("event", ["email.delivered", "email.opened", "email.bounced"])
    def test_send_nine_messages_at_most(self, count, event):
        messages = count("resend", document("resend", event), receiver=EMAIL)

        assert len(messages) <= APPLICATION, messages


class TestJob:
    def test_looks_once_more_after_the_last_event(self, app, sender):
        for number in range(3):
            sender.post("workos", workos("invitation.accepted", number))

        with app.app_context(), sent_messages() as messages:
            jobs.process_events()

        claims = [name for name in messages if name == "webhook_events.claim_next"]
        assert len(claims) == 3 + 1

"""``DELETE /v1/users/{id}``: one user of one tenant is erased, nobody else."""

from datetime import timedelta

import psycopg2
import pytest
from sqlalchemy import Engine, func, select
from sqlalchemy import event as sqlalchemy_event

from app.audit.models import AuditEvent
from app.core.clock import utcnow
from app.core.db.statements import Statement
from app.core.http.idempotency import IdempotencyKey
from app.core.jobs.queues import Queue
from app.core.jobs.worker import make_worker
from app.events.models import Event
from app.inbox.models import WebhookEvent
from app.memberships.models import Membership
from app.privacy.jobs import erase_users
from app.subscriptions.models import Subscription
from app.tenants.models import Tenant
from app.users.models import User, UserErasure
from tests import database
from tests.custom_fields.fields import build_index, create_field
from tests.database import platform_transaction
from tests.factories import (
    create_member,
    create_subscription,
    create_tenant,
    create_user,
    platform_token,
    save,
)
from tests.privacy.life import AT, CANARY


def run_job(app):
    """Erase all users whose erasure is requested."""
    with app.app_context():
        erase_users()


def ask(api, user, token, **options):
    return api.delete(f"/v1/users/{user.id}", token=token, **options)


def request(user, **values):
    row = {"tenant_id": user.tenant_id, "user_id": user.id, "is_everywhere": False}
    save(UserErasure, **row, requested_by="x", **values)


@pytest.fixture
def tenant(app):
    return create_tenant(idp_org_id="org_here")


@pytest.fixture
def person(app, api, tenant, owner, sender):
    """A person with traces of every kind, whom the identity provider knows."""
    build_index(app, create_field(tenant, field_key="note", is_searchable=True))
    create_subscription(tenant, billing_email=f"{CANARY}@x.zz", billing_contact_name=CANARY)
    pair = {"organization_id": "org_here", "user_id": CANARY, "role": "member", "name": CANARY}
    sender.tell("user.created", id=CANARY, email=f"{CANARY}@x.zz", first_name=CANARY)
    sender.tell("membership.created", **pair)
    mail = {"recipient": f"{CANARY}@x.zz", "message_id": "m", "bounce_type": "hard"}
    sender.tell("email.bounced", **mail)
    user = database.row(User, idp_user_id=CANARY)
    patches = {"patches": {"note": CANARY, "free": CANARY}}
    path, headers = f"/v1/users/{user.id}/meta_data", {"Idempotency-Key": "1"}
    assert api.patch(path, token=owner, json=patches, headers=headers).status_code == 200
    return database.row(User, id=user.id)


class TestRequestErasure:
    def test_deactivates_at_once_and_erases_soon(self, app, api, tenant, owner):
        user, _, token = create_member(tenant)

        answer = ask(api, user, owner)

        refused = api.get("/v1/users", token=token)
        waiting = api.get(f"/v1/users/{user.id}", token=owner)
        make_worker(app, [Queue.MAINTENANCE]).work(burst=True, logging_level="WARNING")
        gone = api.get(f"/v1/users/{user.id}", token=owner)
        data = answer.get_json()["data"]
        assert answer.status_code == 202
        assert (data["user_id"], data["is_everywhere"]) == (str(user.id), False)
        assert (refused.status_code, refused.get_json()["code"]) == (403, "no_membership")
        assert waiting.get_json()["data"]["is_active"] is False
        assert gone.status_code == 404
        assert database.rows(UserErasure) == database.rows(Membership, user_id=user.id) == []

    def test_a_second_time_answers_the_same(self, api, tenant, owner):
        user = create_user(tenant)

        first, second = ask(api, user, owner), ask(api, user, owner)

        assert (first.status_code, second.status_code) == (202, 202)
        assert first.get_json() == second.get_json()
        assert len(database.rows(AuditEvent, action="user.erasure_requested")) == 1

    def test_after_a_tenants_the_platforms_counts(self, app, api, person, owner, dump):
        ask(api, person, owner)
        answer = ask(api, person, platform_token())
        run_job(app)

        assert answer.get_json()["data"]["is_everywhere"] is True
        assert [line for line in dump().splitlines() if CANARY in line.lower()] == []

    def test_keeps_the_user_inactive_until_it_is_done(self, app, api, tenant, owner):
        user = create_user(tenant, email="")
        ask(api, user, owner)

        path = f"/v1/users/{user.id}"
        activated = api.patch(path, token=owner, json={"is_active": True})
        renamed = api.patch(path, token=owner, json={"first_name": "Ada", "email": "a@b.example"})

        assert (activated.status_code, activated.get_json()["code"]) == (409, "erasure_requested")
        assert renamed.status_code == 200
        assert database.row(User, id=user.id).is_active is False

    def test_lets_only_owners_erase_an_owner_but_not_the_last_one(self, api, tenant):
        first, _, token = create_member(tenant, role="owner")
        second, _, _ = create_member(tenant, role="owner")
        _, _, admin = create_member(tenant, role="admin")

        answers = [ask(api, second, admin), ask(api, second, token), ask(api, first, token)]

        assert [(one.status_code, one.get_json().get("code")) for one in answers] == [
            (403, "owner_only"), (202, None), (409, "last_owner"),
        ]  # fmt: skip
        assert [row.user_id for row in database.rows(UserErasure)] == [second.id]


class TestErasure:
    def test_by_the_platform_leaves_nothing_of_somebody_who_is_nowhere_else(
        self, app, api, person, dump
    ):
        assert dump().lower().count(CANARY) > 10

        ask(api, person, platform_token())
        run_job(app)

        left = [line for line in dump().splitlines() if CANARY in line.lower()]
        (event,) = database.rows(AuditEvent, action="user.erased")
        assert left == []
        assert event.target_id == str(person.id)
        assert event.actor == "platform:platform-operator"

    def test_by_the_tenant_leaves_nothing_of_theirs_in_the_tenant(
        self, app, api, person, owner, dump
    ):
        ask(api, person, owner)
        run_job(app)

        lines = [line for line in dump().splitlines() if CANARY in line.lower()]
        terms = [line for line in lines if line.startswith("search_terms ")]
        assert {line.split(" ")[0] for line in lines} == {
            "event_outbox", "email_events", "email_messages", "suppressions", "identity_objects", "webhook_events",
            "search_terms",
        }  # fmt: skip
        events = [line for line in lines if line.startswith("event_outbox ")]
        assert [line for line in terms if "email_message" not in line] == []
        assert [line for line in events if " | email." not in line] == []
        assert database.row(Subscription).billing_contact_name == ""

    def test_changes_nothing_of_the_same_person_elsewhere(self, app, api, sender, person, dump):
        other = create_tenant(idp_org_id="org_other", primary_contact_email=f"{CANARY}@x.zz")
        pair = {"organization_id": "org_other", "user_id": CANARY, "role": "member"}
        sender.tell("membership.created", delivery="other", **pair)
        kept = [
            line
            for line in dump().splitlines()
            if str(other.id) in line or line.startswith(("email", "suppr", "identity_objects"))
        ]

        ask(api, person, platform_token())
        run_job(app)

        after = set(dump().splitlines())
        lost = [line for line in kept if line not in after]
        (elsewhere,) = database.rows(User, idp_user_id=CANARY)
        assert [line.split(" | ")[0] for line in lost] == ["identity_objects generic"]  # here
        assert "org_here" in lost[0]
        assert (elsewhere.tenant_id, elsewhere.is_active) == (other.id, True)
        assert database.row(Tenant, id=other.id).primary_contact_email == f"{CANARY}@x.zz"

    def test_waits_for_events_about_the_person(self, app, api, sender, person):
        data = {"id": CANARY, "first_name": "Late"}
        event = {"type": "user.updated", "timestamp": AT, "data": data}
        sender.post("standard_webhooks", event)
        ask(api, person, platform_token())

        run_job(app)

        assert len(database.rows(UserErasure)) == 1
        assert database.row(User, id=person.id).email != ""

    def test_that_lost_its_job_is_made_by_the_next_one(self, app, tenant):
        user = create_user(tenant)
        request(user, worked_at=utcnow() - timedelta(days=365))

        run_job(app)

        assert database.rows(User, id=user.id) == []


class TestManyErasures:
    def test_search_the_inbox_once(self, app, api, tenant, owner, sender):
        users = [create_user(tenant) for _ in range(5)]
        for user in users:
            data = {"id": user.idp_user_id, "organization_id": "org_here"}
            sender.tell("user.created", delivery=user.idp_user_id, **data)
            assert ask(api, user, owner).status_code == 202
        searches = []

        def note(connection, cursor, statement, *_):
            if "FROM webhook_events" in statement and "WHERE" not in statement:
                searches.append(statement)

        sqlalchemy_event.listen(Engine, "before_cursor_execute", note)
        try:
            run_job(app)
        finally:
            sqlalchemy_event.remove(Engine, "before_cursor_execute", note)

        assert len(searches) == 1
        assert [database.rows(User, id=user.id) for user in users] == [[]] * 5
        assert {row.body for row in database.rows(WebhookEvent)} == {None}

    def test_go_on_where_one_has_to_wait(self, app, api, tenant, owner, sender):
        users = [create_user(tenant) for _ in range(3)]
        for user in users:
            assert ask(api, user, owner).status_code == 202
        data = {"id": users[0].idp_user_id, "organization_id": "org_here"}
        sender.post("standard_webhooks", {"type": "user.updated", "timestamp": AT, "data": data})

        run_job(app)

        assert [len(database.rows(User, id=user.id)) for user in users] == [1, 0, 0]


class TestRights:
    """What the functions of the database refuse without a requested erasure."""

    @pytest.mark.parametrize(
        "call",
        [
            func.redact_audit_event(None, None, None),
            func.redact_email_event(None, None),
            func.delete_email_events(None, None, 1),
        ],
        ids=str,
    )
    def test_to_the_applications_role(self, app, call):
        with pytest.raises(psycopg2.errors.InsufficientPrivilege), platform_transaction():
            Statement("tests.call", select(call), prepare=False).first()

    def test_another_tenants_trail(self, app, tenant):
        user, other = create_user(tenant), create_tenant()
        request(user)
        call = select(func.redact_audit_event(other.id, user.id, None))

        with pytest.raises(psycopg2.errors.InsufficientPrivilege), platform_transaction():
            Statement("tests.call", call, prepare=False).first()


class TestOthers:
    """What is about somebody else stays as it is."""

    def test_contacts_before_and_after_the_person_stay_in_the_history(self, app, api, tenant):
        operator = platform_token()
        ada = create_user(tenant, email="ada@example.com")
        for name in ("bob", "ada", "cem"):
            contact = {"primary_contact_email": f"{name}@example.com", "primary_contact_name": name}
            api.patch(f"/v1/tenants/{tenant.id}", token=operator, json=contact)
        api.sequence()

        ask(api, ada, operator)
        run_job(app)

        trail = database.rows(AuditEvent, action="tenant.updated")
        feed = database.rows(Event, type="tenant.updated")
        for rows in (trail, feed):
            before, after = (
                [getattr(row, side)["primary_contact_name"] for row in rows]
                for side in ("before", "after")
            )
            assert before == ["", "bob", "[erased]"]
            assert after == ["bob", "[erased]", "cem"]

    @pytest.mark.parametrize("elsewhere", [False, True])
    def test_a_membership_whose_id_is_the_persons_id_stays(self, app, api, tenant, elsewhere):
        ada = create_user(tenant, idp_user_id="7")
        theirs = save_membership(api, tenant, ada, "5")
        other = create_tenant() if elsewhere else tenant
        ids = ["7", "5"] if elsewhere else ["7"]
        others = [save_membership(api, other, create_user(other), id_) for id_ in ids]

        ask(api, ada, platform_token())
        run_job(app)

        shown = {
            row.target_id: row.after["idp_membership_id"]
            for row in database.rows(AuditEvent, action="membership.created")
        }
        assert shown == {theirs: "[erased]", **dict(zip(others, ids, strict=True))}

    def test_the_contact_of_another_tenant_stays(self, app, api, tenant):
        """The person is known elsewhere, so only this tenant's data is erased."""
        ada = create_user(tenant, email="ada@example.com")
        other = create_tenant(primary_contact_email="ada@example.com")
        subscription = create_subscription(other, billing_email="ada@example.com")

        ask(api, ada, platform_token())
        run_job(app)

        assert database.rows(User, id=ada.id) == []
        assert database.row(Tenant, id=other.id) == other
        assert database.row(Subscription, id=subscription.id) == subscription


def save_membership(api, tenant, user, idp_membership_id):
    """The id of a new membership with this ``idp_membership_id``."""
    body = {"user_id": str(user.id), "role": "member", "idp_membership_id": idp_membership_id}
    token = platform_token(tenant=tenant)
    answer = api.post("/v1/memberships/tenant", token=token, json=body)
    return answer.get_json()["data"]["id"]


class TestStoredAnswers:
    def test_of_rows_whose_contact_they_are_go(self, app, api, tenant, owner):
        ada = create_user(tenant, email="ada@example.com")
        subscription = create_subscription(tenant)
        for path, body in (
            (f"/v1/tenants/{tenant.id}", {"primary_contact_email": ada.email}),
            (f"/v1/billing/subscriptions/{subscription.id}", {"billing_email": ada.email}),
            (f"/v1/users/{create_user(tenant).id}", {"first_name": "Bob"}),
        ):
            headers = {"Idempotency-Key": "1"}
            assert api.patch(path, token=owner, json=body, headers=headers).status_code == 200

        ask(api, ada, owner)
        run_job(app)

        (kept,) = database.rows(IdempotencyKey)
        assert b'"Bob"' in kept.body

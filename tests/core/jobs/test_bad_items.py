"""One bad item never stops others: in each job and each part of the background process.

A new one needs an entry in :data:`CASES`, whose test puts a failing item first, or a reason in
:data:`WITHOUT_ITEMS`.
"""

from datetime import timedelta
from uuid import UUID

import pytest

from app.audit.models import PastBase
from app.core.clock import utcnow
from app.core.jobs import queues
from app.core.jobs.queues import JOBS
from app.credits import jobs as credits
from app.credits import service as credit_service
from app.credits.models import CreditLot
from app.domains import challenges, checks
from app.domains import jobs as domains
from app.domains.models import Domain
from app.history import bases
from app.history import jobs as history
from app.imports import jobs as imports
from app.imports import service as import_service
from app.imports.models import Import, ImportPiece
from app.inbox import jobs as webhooks
from app.inbox import processing
from app.inbox.models import WebhookEvent
from app.memberships.models import Membership
from app.operations import background, scheduler
from app.plans import assignments
from app.plans import jobs as plans
from app.plans.models import PlanAssignment
from app.privacy import jobs as privacy
from app.privacy.people import erasure_requests
from app.users.models import User, UserErasure
from app.webhooks.deliveries.models import WebhookDelivery
from tests import database
from tests.factories import (
    create_domain,
    create_lot,
    create_member,
    create_membership,
    create_preset,
    create_tenant,
    create_user,
    platform_token,
    save,
)
from tests.imports.files import as_file, post, tenant_line, user_line
from tests.inbox.sending import Sender
from tests.webhooks.deliveries.receiving import receiver, sender, wait_until
from tests.webhooks.endpoints.support import create_endpoint

AT = "2026-01-05T09:45:05.123Z"
STATEMENTS = "a statement changes the rows, and depends on no row's content"
PUSHES = "it queues a job for each item, and a push that fails is logged (tested below)"
ONE_ITEM = "a run works on one item; the periodic job queues those that have waited longest"
WITHOUT_ITEMS = {
    "app.billing.jobs.apply_waiting_events": STATEMENTS,
    "app.billing.jobs.compare": ONE_ITEM,
    "app.billing.jobs.compare_with_providers": PUSHES,
    "app.billing.jobs.follow_prices": "tests/billing: one that fails is left, and tried again",
    "billing": "tests/billing/test_reader.py: one that fails does not stop the others",
    "app.custom_fields.jobs.resume_search_indexes": PUSHES,
    "app.custom_fields.jobs.sync_search_index": ONE_ITEM,
    "app.events.jobs.order_older_audit_rows": STATEMENTS,
    "app.events.jobs.remove_old_events": STATEMENTS,
    "app.flags.jobs.announce_expiries": STATEMENTS,
    "app.imports.jobs.resume_imports": PUSHES,
    "app.invitations.jobs.remove_old_invitations": STATEMENTS,
    "app.invitations.jobs.send_mails": "an attempt is claimed first: the next run goes on after it",
    "app.log_streams.jobs.test_log_stream": ONE_ITEM,
    "app.log_streams.jobs.warn_behind": STATEMENTS,
    "app.operations.jobs.count_over_limits": STATEMENTS,
    "app.operations.jobs.forget_console_sessions": STATEMENTS,
    "app.operations.jobs.forget_idempotency_keys": STATEMENTS,
    "app.operations.jobs.keep_partitions": STATEMENTS,
    "app.operations.jobs.remove_old_email_events": STATEMENTS,
    "app.privacy.jobs.delete_due_tenants": PUSHES,
    "app.privacy.jobs.delete_tenant": ONE_ITEM,
    "app.rewinds.jobs.resume_rewinds": PUSHES,
    "app.rewinds.jobs.rewind": "tests/rewinds: a row that is refused is left out",
    "app.roles.jobs.remove_ended": STATEMENTS,
    "app.search.jobs.build_search_terms": ONE_ITEM,
    "app.search.jobs.resume_search_builds": PUSHES,
    "app.sso_connections.jobs.announce_certificates": STATEMENTS,
    "app.usage.jobs.forget_old_usage": STATEMENTS,
    "app.usage.jobs.store_counts": STATEMENTS,
    "app.usage.jobs.sweep_holds": STATEMENTS,
    "app.webhooks.deliveries.jobs.remove_old_deliveries": STATEMENTS,
    "app.inbox.jobs.remove_old_webhook_events": STATEMENTS,
    "app.inbox.jobs.remove_payloads": STATEMENTS,
    "app.inbox.jobs.sweep": "it counts events, and queues one job",
    "log_streams": "tests/log_streams/test_writing.py: an error counts as a failed attempt",
    "sequencer": STATEMENTS,
}


class Broken(Exception):
    """What the bad item raises."""


@pytest.fixture
def bad(monkeypatch):
    """Call it to have a function raise for each call of which the condition holds."""

    def replace(module, name, is_bad):
        original = getattr(module, name)

        def fail(*args, **options):
            if is_bad(*args):
                raise Broken
            return original(*args, **options)

        monkeypatch.setattr(module, name, fail)

    return replace


def process_events(app, api, bad, monkeypatch):
    inbox = Sender(app, monkeypatch)
    for name in ("bad", "good"):
        data = {"id": name, "email": f"{name}@example.com"}
        event = {"type": "user.created", "timestamp": AT, "data": data}
        inbox.post("standard_webhooks", event, message_id=name)
    bad(processing.sync, "apply", lambda events, *_: events[0].object_id == "bad")
    monkeypatch.setattr(webhooks, "WORKING_TIME", 1)

    webhooks.process_events()

    return [
        (row.external_id, row.status)
        for row in sorted(database.rows(WebhookEvent), key=lambda row: row.external_id)
    ] == [("bad", "pending"), ("good", "succeeded")]


def apply_waiting_memberships(app, api, bad, monkeypatch):
    """Another user has the id of the first waiting membership; the second one's tenant is free."""
    inbox = Sender(app, monkeypatch)
    for number in ("1", "2"):
        data = {"organization_id": f"o{number}", "user_id": f"u{number}", "id": f"om_{number}"}
        event = {"type": "membership.created", "timestamp": AT, "data": {**data, "role": "member"}}
        inbox.deliver("standard_webhooks", event, message_id=number)
    for number in ("1", "2"):
        tenant = create_tenant(idp_org_id=f"o{number}")
        create_user(tenant, idp_user_id=f"u{number}")
        if number == "1":
            other = create_user(tenant)
            create_membership(tenant, other, "member", idp_membership_id="om_1")

    webhooks.apply_waiting_memberships()

    return len(database.rows(Membership, idp_membership_id="om_2")) == 1


def refresh_credits(app, api, bad, monkeypatch):
    tenants = [create_tenant() for _ in range(3)]
    for tenant in tenants:
        create_lot(tenant.id)
    database.execute("UPDATE credit_lots SET expires_at = now()")
    database.execute("UPDATE credit_balances SET due_at = now()")
    bad(credit_service, "refresh", lambda tenant_id, *_: tenant_id == tenants[0].id)

    credits.refresh_credits()

    left = {lot.tenant_id: lot.remaining for lot in database.rows(CreditLot)}
    return [left[tenant.id] for tenant in tenants] == [1000, 0, 0]


def follow_plans(app, api, bad, monkeypatch):
    create_preset("free")
    create_preset("pilot")
    tenants = [create_tenant(plan_name="pilot") for _ in range(3)]
    for number, tenant in enumerate(tenants):
        until = utcnow() - timedelta(hours=9 - number)
        save(
            PlanAssignment, tenant_id=tenant.id, plan_name="pilot", until=until, reason="", next_plan_name="free",
            created_by="cli:x",
        )  # fmt: skip
    bad(assignments, "end", lambda tenant_id: tenant_id == tenants[0].id)
    bad(assignments, "announce_endings", lambda limit: True)

    plans.follow_plans()

    return [row.tenant_id for row in database.rows(PlanAssignment)] == [tenants[0].id]


def erase_users(app, api, bad, monkeypatch):
    tenant = create_tenant()
    owner = create_member(tenant, role="owner")[2]
    users = [create_user(tenant) for _ in range(3)]
    for user in users:
        assert api.delete(f"/v1/users/{user.id}", token=owner).status_code == 202
    bad(erasure_requests, "erase", lambda _, person, *__: users[0].id in person.user_ids)

    privacy.erase_users()

    left = [row.user_id for row in database.rows(UserErasure)]
    return left == [users[0].id]


def apply_import(app, api, bad, monkeypatch):
    lines = [tenant_line(), user_line("bad", email=1), user_line("good")]
    import_id = post(api, as_file(*lines)).get_json()["data"]["id"]

    imports.apply_import(import_id)

    return [row.idp_user_id for row in database.rows(User)] == ["good"]


def remove_old_imports(app, api, bad, monkeypatch):
    old = {"created_by_user_id": "cli:x", "created_at": utcnow() - timedelta(days=8)}
    first, second = (save(Import, **old) for _ in range(2))
    for one in (first, second):
        save(ImportPiece, import_id=one.id, number=0, body=b"{}")
    bad(import_service, "finish", lambda found, *_: found.id == first.id)

    imports.remove_old_imports()

    states = {row.id: row.state for row in database.rows(Import)}
    return states == {first.id: "pending", second.id: "failed"} and not database.rows(ImportPiece)


def deliveries(app, api, bad, monkeypatch):
    """The first endpoint's secret cannot be read."""
    with receiver() as hook:
        tenant = create_tenant()
        for _ in range(2):
            create_endpoint(api, url=hook.url, types=["user.*"], tenant_id=str(tenant.id))
        database.execute(
            "UPDATE webhook_endpoint_states SET secret = 'broken' WHERE endpoint_id ="
            " (SELECT id FROM webhook_endpoints ORDER BY created_at, id LIMIT 1)"
        )
        user = create_user(tenant)
        path = f"/v1/users/{user.id}"
        assert api.patch(path, token=platform_token(), json={"first_name": "N"}).status_code == 200
        api.sequence()
        with sender(app):
            wait_until(
                lambda: (
                    sorted(row.status for row in database.rows(WebhookDelivery))
                    == ["pending", "succeeded"]
                )
            )
    return True


def schedule(app, api, bad, monkeypatch):
    """Redis refuses the first job that is due."""
    pushed = []

    def refuse_first(self):
        pushed.append(self.name)
        return len(pushed) > 1

    monkeypatch.setattr(queues.Job, "push_periodically", refuse_first)
    scheduler.run_scheduler(app, stop=lambda: bool(pushed))
    return set(pushed) == {job.name for job in JOBS.values() if job.every}


def check_domains(app, api, bad, monkeypatch):
    monkeypatch.setattr(challenges, "check", lambda *_: None)
    made = [create_domain(create_tenant(), next_check_at=utcnow()) for _ in range(3)]
    bad(checks, "store", lambda domain_id, _: domain_id == made[0].id)

    domains.check_domains()

    return [database.row(Domain, id=one.id).state for one in made] == [
        "pending",
        "verified",
        "verified",
    ]


def add_bases(app, api, bad, monkeypatch):
    ids = []
    for name in ("bad", "good", "last"):
        body = {"name": name, "idp_org_id": f"org_{name}"}
        answer = api.post("/v1/tenants", token=platform_token(), json=body)
        ids.append(UUID(answer.get_json()["data"]["id"]))
    api.sequence()
    database.execute("UPDATE event_feed SET ordered_position = last_position")
    add = bases.add
    monkeypatch.setattr(bases, "add", lambda tenant_id: add(tenant_id, 1))
    bad(bases, "add", lambda tenant_id: tenant_id == ids[0])

    history.add_bases()

    based = {row.tenant_id for row in database.rows(PastBase)}
    return ids[0] not in based and ids[1] in based


CASES = {
    "app.history.jobs.add_bases": add_bases,
    "app.domains.jobs.check_domains": check_domains,
    "app.credits.jobs.refresh_credits": refresh_credits,
    "app.imports.jobs.apply_import": apply_import,
    "app.imports.jobs.remove_old_imports": remove_old_imports,
    "app.privacy.jobs.erase_users": erase_users,
    "app.plans.jobs.follow_plans": follow_plans,
    "app.inbox.jobs.apply_waiting_memberships": apply_waiting_memberships,
    "app.inbox.jobs.process_events": process_events,
    "scheduler": schedule,
    "sender": deliveries,
}


def test_each_job_and_part_has_a_case_or_a_reason(app):
    assert CASES.keys() | WITHOUT_ITEMS.keys() == JOBS.keys() | set(background.PARTS)
    assert not CASES.keys() & WITHOUT_ITEMS.keys()


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_others_are_done(app, api, bad, monkeypatch, name):
    with app.app_context():
        assert CASES[name](app, api, bad, monkeypatch)


def test_a_push_that_fails_does_not_stop_the_next(app, monkeypatch):
    pushed = []

    class Queue:
        def enqueue(self, name, *ids, **_):
            pushed.append(ids)
            if ids == ("1",):
                raise Broken

    monkeypatch.setattr(queues, "queue_named", lambda *_: Queue())
    with app.app_context():
        for number in ("1", "2"):
            JOBS["app.search.jobs.build_search_terms"].push(number)

    assert pushed == [("1",), ("2",)]

"""``flask users erase``: nothing of the person is left, everything else is."""

import json
from dataclasses import replace

from app.audit.models import AuditEvent, AuditPosition
from app.core.actors import SYSTEM_IDP
from app.domains.joining import Newcomer, admit_to
from app.inbox.models import WebhookEvent
from app.tenants.models import Tenant
from app.users.models import User
from tests.database import platform_transaction, rows
from tests.factories import (
    create_assignment,
    create_domain,
    create_member,
    create_tenant,
    create_user,
    platform_token,
)
from tests.history import exports
from tests.inbox.sending import all_rows, work_off
from tests.privacy.life import AT, CANARY, SUBJECT, live, mail, word

# The columns that can hold a text, but nothing about a person: names of things, states, digests,
# ids of other rows, and what is known of a company.
IMPERSONAL = {
    "access_resources": "attributes id parent_id parent_type type",
    "alembic_version": "version_num",
    "api_keys": "digest name permissions prefix",
    "audit_events": "action target_id target_type",
    "audit_positions": "target_type",
    "billing_comparisons": "counts cursor error provider",
    "billing_customers": "customer_id provider",
    "console_sessions": "digest org_id",
    "console_tickets": "data digest org_id",
    "custom_field_indexes": "error state",
    "custom_fields": "entity_type field_key field_type idp_org_id label options",
    "deleted_organizations": "idp_org_id",
    "domains": '"join" display_name error join_role name record_name record_value state',
    "email_events": "kind source",
    "email_messages": "source state",
    "event_feed": "cursor_key",
    "event_outbox": "target_type traceparent type",
    "events": "traceparent type",
    "feature_overrides": "flag_key flag_value reason",
    "idempotency_keys": "fingerprint headers scope",
    "identity_objects": "kind organization_id source verified_domain",
    "import_faults": "idp_org_id type",
    "imports": "counts error state",
    "invitations": "acts_as digest role source",
    "join_requests": "domain state",
    "memberships": "idp_org_id role",
    "past_bases": "target_type",
    "plan_assignments": "next_plan_name plan_name reason",
    "plan_presets": "display_name flags name",
    "plan_prices": "limit_key lookup_key plan_name price_id provider",
    "product_permissions": "description group_name key requires_flag requires_limit",
    "rewinds": '"only" counts created_by_user_id error kinds last_id left_out state',
    "role_assignments": "resource_id resource_type source",
    "roles": "assignable_by inherits key name permissions",
    "scim_access_tokens": "assertion_digest digest",
    "scim_connections": (
        "acts_as deactivate default_role digest group_roles last_error name old_digest prefix"
        " provider public_keys status"
    ),
    "scim_groups": "display_name display_name_key external_id",
    "scim_requests": "detail method path",
    "search_builds": "entity_type",
    "search_terms": "entity_type",
    "sso_connections": "domains idp_connection_id name provider source state type",
    "setup_links": "digest scopes session_digest",
    "subscriptions": (
        "billing_address_line_1 billing_city billing_country billing_cycle billing_state"
        " billing_zip bp_customer_id bp_plan_id bp_provider bp_status bp_subscription_id"
        " cancel_reason currency items limits plan_name status_class"
    ),
    "suppressions": "cause scope source",
    "tenant_notes": "text updated_by",
    "tenant_deletions": "deleted_rows stage",
    "tenants": (
        "idp_org_id mailing_address_line_1 mailing_address_line_2 mailing_city mailing_country"
        " mailing_state mailing_zipcode meta_data name plan_name slug suspension_reason"
    ),
    "credit_balances": "feature told",
    "credit_entries": "feature kind reason",
    "credit_holds": "feature",
    "credit_lots": "feature reference source",
    "usage_counters": "feature",
    "usage_days": "day feature",
    "usage_holds": "credits feature kind reference state",
    "users": "idp_org_id",
    "webhook_deliveries": "body error status type",
    "log_stream_progress": ("batch_name last_error last_object last_position secrets test_error"),
    "log_streams": "config description error format kind state types",
    "webhook_endpoint_states": "headers old_secret secret",
    "webhook_endpoints": "description disabled_reason header_names public_key signing types url",
    "webhook_events": "bp_subscription_id detail digest replay_key source status",
}


def run(app, *words):
    return app.test_cli_runner().invoke(args=["users", *words])


def erase(app, *words):
    result = run(app, "erase", *words, "--yes", "--json")
    assert result.exit_code == 0, result.output
    return {row["table"]: row["rows"] for row in json.loads(result.stdout)}


def columns_with_canary(tables):
    return {
        (table, name)
        for table, texts in tables.items()
        for row in map(json.loads, texts)
        for name, value in row.items()
        if CANARY in str(value).lower()
    }


class TestErase:
    def test_leaves_nothing_but_an_anonymous_inactive_user_and_a_row_about_the_erasure(
        self, app, api, sender, dump, columns_without
    ):
        """A new column needs a trace in :mod:`tests.privacy.life`, or a place in IMPERSONAL."""
        user_id = live(app, api, sender)
        impersonal = {table: set(names.split()) for table, names in IMPERSONAL.items()}
        assert columns_without(CANARY) == impersonal

        erase(app, user_id)
        again = run(app, "erase", SUBJECT, "--yes")

        assert [line for line in dump().splitlines() if CANARY in line.lower()] == []
        users = [row for row in all_rows(User) if row.idp_user_id.startswith("erased:")]
        erasures = all_rows(AuditEvent, action="user.erased")
        assert len(users) == len(erasures) == 2
        assert {row.target_id for row in erasures} == {str(row.id) for row in users}
        assert {(row.email, row.first_name, row.is_active) for row in users} == {("", "", False)}
        assert (users[0].email_key, users[0].meta_data) == ("", {})
        assert (again.exit_code, again.stdout) == (1, "")
        assert "nobody" in again.stderr

    def test_leaves_nothing_in_the_past_of_any_kind(self, app, api, sender):
        """What the present has of the person is in the past too, before the erasure."""
        user_id = live(app, api, sender)
        api.sequence()
        positions = sorted({row.position for row in rows(AuditPosition)})
        tenants = [str(row.id) for row in all_rows(Tenant) if row.slug in ("first", "second")]
        for tenant in tenants:
            now, past = (exports.read(tenant, as_of) for as_of in (None, str(positions[-1])))
            assert columns_with_canary(past) == columns_with_canary(now)

        erase(app, user_id)

        api.sequence()
        for position in positions[::-5]:
            assert CANARY not in str(exports.read_all(position)).lower()
        for tenant in tenants:
            assert CANARY not in str(exports.read(tenant, str(positions[-1]))).lower()
            path = f"/v1/tenants/{tenant}/changes?from={positions[0]}"
            changes = api.get(path, token=platform_token())
            assert changes.status_code == 200
            assert CANARY not in changes.text.lower()

    def test_the_end_of_assigned_roles_is_audited_and_an_event(self, app, api):
        tenant = create_tenant()
        user, membership, *_ = create_member(tenant, role="member")
        made = create_assignment(tenant, "viewer", membership_id=membership.id)

        erased = erase(app, str(user.id))
        api.sequence()

        (audited,) = all_rows(AuditEvent, action="role_assignment.deleted")
        assert (audited.target_id, audited.before["role"]) == (str(made.id), "viewer")
        path = "/v1/events?types=role_assignment.deleted"
        (event,) = api.get(path, token=platform_token()).get_json()["data"]
        assert event["data"]["membership_id"] == str(membership.id)
        assert erased["role_assignments"] == 1

    def test_an_address_that_is_known_only_from_an_invitation(self, app, api, dump):
        address = f"{CANARY}@example.com"
        tenant = create_tenant()
        body = {"email": address.upper(), "role": "member", "tenant_id": str(tenant.id)}
        assert api.post("/v1/invitations", token=platform_token(), json=body).status_code == 201
        api.sequence()

        found = run(app, "export", address)
        erased = erase(app, address)

        assert (found.exit_code, address in found.output.lower()) == (0, True)
        assert erased["invitations"] == 1
        assert [line for line in dump().splitlines() if CANARY in line.lower()] == []

    def test_keeps_the_trails_structure_and_everybody_else(self, app, api, sender):
        user_id = live(app, api, sender)
        body = {"type": "user.created", "timestamp": AT, "data": {"id": "x", "email": "x@y.zz"}}
        sender.deliver("standard_webhooks", body, message_id="other")
        before = all_rows(AuditEvent)
        others = [
            (row.id, row.email, row.version)
            for row in all_rows(User)
            if CANARY not in row.email.lower()
        ]

        erase(app, SUBJECT)

        after = all_rows(AuditEvent)[: len(before)]
        kept = ("id", "tenant_id", "created_at", "action", "target_type")
        for old, new in zip(before, after, strict=True):
            assert [getattr(old, name) for name in kept] == [getattr(new, name) for name in kept]
            assert list(old.after) == list(new.after)
        created = next(row for row in after if row.target_id == user_id)
        assert created.action == "user.created"
        assert created.after["email"] == created.after["meta_data"] == "[erased]"
        assert created.after["id"] == user_id
        (event,) = all_rows(WebhookEvent, external_id="other")
        assert {*others} <= {(row.id, row.email, row.version) for row in all_rows(User)}
        assert json.loads(event.body) == body

    def test_erases_somebody_who_was_never_a_member(self, app, sender, dump):
        data = {"id": SUBJECT, "email": mail("aside"), "first_name": word("first")}
        sender.tell("user.created", **data)

        erase(app, mail("aside"))

        assert CANARY not in dump().lower()

    def test_erases_somebody_whom_a_domain_suggests(self, app, dump):
        domain = create_domain(create_tenant(), name="example.com", join="suggest")
        person = Newcomer(SUBJECT, mail("suggested"), word("first"), word("last"))
        with platform_transaction():
            admit_to(domain, person, actor=SYSTEM_IDP)

        erase(app, mail("suggested"))

        assert CANARY not in dump().lower()

    def test_an_address_that_somebody_else_has_now_stays_theirs(self, app, api, sender):
        tenant = create_tenant()
        create_member(tenant, role="owner")
        gone = create_user(tenant, email="shared@example.com", idp_user_id="gone")
        kept = create_user(tenant, email="shared@example.com", idp_user_id="kept")
        bounce = {"recipient": "shared@example.com", "message_id": "m", "bounce_type": "hard"}
        sender.tell("email.bounced", **bounce)

        done = erase(app, str(gone.id))

        assert set(done) == {"event_outbox", "users"}  # the event of the deactivation
        assert {row.email for row in all_rows(User, id=kept.id)} == {"shared@example.com"}


class TestRefusals:
    def test_asks_first(self, app):
        user = create_user(create_tenant())

        result = app.test_cli_runner().invoke(args=["users", "erase", user.email], input="n\n")

        assert result.exit_code == 1
        assert "for good?" in result.stderr
        assert [row.email for row in all_rows(User)] == [user.email]

    def test_keeps_the_last_owner_unless_told_otherwise(self, app):
        owner, _, _ = create_member(create_tenant(), role="owner")

        refused = run(app, "erase", owner.email, "--yes")
        erased = run(app, "erase", owner.email, "--yes", "--allow-ownerless")

        assert (refused.exit_code, erased.exit_code) == (1, 0)
        assert "at least one active owner" in refused.stderr

    def test_waits_for_events_about_the_person_to_be_applied(self, app, sender):
        user = create_user(create_tenant())
        data = {"id": user.idp_user_id, "first_name": "Late"}
        sender.post("standard_webhooks", {"type": "user.updated", "timestamp": AT, "data": data})

        early = run(app, "erase", str(user.id), "--yes")
        work_off(app)
        later = run(app, "erase", str(user.id), "--yes")

        assert (early.exit_code, later.exit_code) == (1, 0)
        assert "still to be applied" in early.stderr

    def test_says_who_may(self, app, monkeypatch):
        config = app.extensions["config"]
        plain = replace(config, migration_database_url=config.database_url)
        monkeypatch.setitem(app.extensions, "config", plain)

        result = run(app, "erase", "anybody", "--yes")

        assert result.exit_code == 1
        assert "MIGRATION_DATABASE_URL" in result.stderr


class TestNaming:
    def test_by_an_address_that_several_people_have_is_refused(self, app):
        for name in "ab":
            create_user(create_tenant(slug=name), email="shared@example.com", idp_user_id=name)

        result = run(app, "erase", "shared@example.com", "--yes")
        told = "Several people are called shared@example.com: add --tenant SLUG, or give one of the ids"

        assert (result.exit_code, result.stderr) == (1, f"Error: {told} a, b.\n")
        assert run(app, "export", "shared@example.com").stderr == result.stderr

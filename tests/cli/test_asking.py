"""A command that does harm finds the row first, then asks with its name."""

import dataclasses
import uuid

import click
import pytest

from app.auth.models import ApiKey, PlatformAdmin
from app.core.clock import utcnow
from app.core.db import transactions
from app.emails.models import Suppression
from app.plans.models import PlanAssignment
from app.roles.models import AccessRole
from tests.cli.test_help import HARMFUL
from tests.custom_fields.fields import create_field
from tests.database import row
from tests.database import rows as stored
from tests.factories import (
    create_api_key,
    create_assignment,
    create_domain,
    create_hold,
    create_invitation,
    create_join_request,
    create_log_stream,
    create_lot,
    create_member,
    create_membership,
    create_override,
    create_permission,
    create_preset,
    create_resource,
    create_role,
    create_setup_link,
    create_subscription,
    create_tenant,
    create_user,
    create_webhook_endpoint,
    save,
)
from tests.scim.directory import create_connection

NAMES = {
    "api-keys revoke": "Revoke an API key: billing \N{GREEK SMALL LETTER ALPHA} of acme?",
    "billing customers delete": "cus_1",
    "billing prices delete": "Delete a price: ",
    "credits revoke": "Take back credits of a lot: at most what is left of it: ",
    "custom-fields delete": "team of acme?",
    "domains delete": "Delete a domain, and the join requests that wait because of it: ",
    "emails lift": "suppression list: ada@acme.example?",
    "flags delete-override": "beta of acme?",
    "invitations revoke": "Revoke an invitation that nobody has accepted: ",
    "join-requests decline": "Decline a join request: eve@acme.example of acme?",
    "log-streams delete": "Delete a log stream",
    "memberships deactivate": "End a membership: ada@acme.example of acme?",
    "permissions delete": "Delete a permission of the product: ",
    "plans delete": "growth?",
    "platform-admins remove": "of root-1",
    "resources delete": "Delete a resource: ",
    "role-assignments delete": "Delete an assignment of a role: ",
    "roles delete": "Delete a role: ",
    "scim delete": "Delete a SCIM connection: Directory of acme?",
    "setup-links revoke": "Revoke a setup link: ",
    "subscriptions cancel": "Record a cancellation: sub_1 of acme?",
    "tenants delete": "Delete closed with all its data after 30 day(s)",
    "tenants plan clear": "assigned plan: acme?",
    "tenants suspend": "Suspend a tenant: acme?",
    "usage holds release": "End a hold of which nothing was used: ",
    "users deactivate": "Deactivate a user: ada@acme.example of acme?",
    "users delete": "Erase a user in one tenant, which cannot be undone: ada@acme.example of acme?",
    "users erase": "ada@acme.example, known in 1 tenant(s)",
    "users update": "Update a user (--no-active): ada@acme.example of acme?",
    "webhook-endpoints delete": "https://hooks.example.com/",
    "webhook-endpoints update": "Update a webhook endpoint (--no-active): https://hooks.example.com/",
}
UNNAMED = {"billing customers delete", "billing prices delete", "resources delete"}
"""These ask before they look, or need more than one name."""
assert HARMFUL - NAMES.keys() == {"rewinds create"}  # tests/rewinds has its question


@pytest.fixture
def rows(app):
    """What to name for each command: the row that its question has the name of."""
    tenant = create_tenant(slug="acme", idp_org_id="org_acme")
    create_tenant(slug="closed", is_active=False)
    preset = create_preset("growth", beta=False)
    create_api_key(tenant, name="billing\N{ESCAPE}\N{GREEK SMALL LETTER ALPHA}")
    user = create_user(tenant, email="ada@acme.example")
    endpoint = create_webhook_endpoint(tenant.id)
    save(PlatformAdmin, subject="root-1")
    save(
        Suppression, address="ada@acme.example", cause="bounced", scope="", source="resend",
        suppressed_at=utcnow(), lifted_at=None, is_active=True,
    )  # fmt: skip
    save(
        PlanAssignment,
        tenant_id=tenant.id,
        plan_name="growth",
        next_plan_name="free",
        until=None,
        reason="",
        created_by="cli:test",
    )
    return {
        "api-keys revoke": row(ApiKey).id,
        "billing customers delete": ("stripe", "cus_1"),
        "billing prices delete": uuid.uuid4(),
        "credits revoke": create_lot(tenant.id).id,
        "custom-fields delete": create_field(tenant, field_key="team").id,
        "domains delete": create_domain(tenant).id,
        "emails lift": "ada@acme.example",
        "flags delete-override": create_override(tenant, preset, "beta", True).id,
        "invitations revoke": create_invitation(tenant.id).id,
        "join-requests decline": create_join_request(tenant, email="eve@acme.example").id,
        "log-streams delete": create_log_stream(tenant.id).id,
        "memberships deactivate": create_membership(tenant, user).id,
        "permissions delete": create_permission("invoices:approve").key,
        "plans delete": "growth",
        "platform-admins remove": "root-1",
        "resources delete": ("x", create_resource(tenant, "x", "1").id, "--tenant", "acme"),
        "role-assignments delete": create_assignment(
            tenant, "viewer", membership_id=create_member(tenant)[1].id
        ).id,
        "roles delete": create_role(tenant).id,
        "scim delete": create_connection(tenant)[0].id,
        "setup-links revoke": create_setup_link(tenant.id).id,
        "subscriptions cancel": create_subscription(tenant, bp_subscription_id="sub_1").id,
        "tenants delete": "closed",
        "tenants plan clear": tenant.id,
        "tenants suspend": tenant.id,
        "usage holds release": create_hold(tenant.id).id,
        "users deactivate": "ada@acme.example",
        "users delete": "ada@acme.example",
        "users erase": "ada@acme.example",
        "users update": "ada@acme.example",
        "webhook-endpoints delete": endpoint.id,
        "webhook-endpoints update": endpoint.id,
    }


@pytest.fixture
def questions(monkeypatch):
    """The questions that were asked; each is answered with no."""
    asked = []

    def confirm(question, **options):
        assert options == {"abort": True, "err": True}
        assert not transactions.is_open()  # PostgreSQL would end it while a person thinks
        asked.append(question)
        raise click.Abort

    monkeypatch.setattr(click, "confirm", confirm)
    return asked


REQUIRED = {
    "credits revoke": ("--reason", "Refunded"),
    "rewinds create": ("1m", "--no-dry-run"),
    "tenants suspend": ("--reason", "Unpaid"),
    "users update": ("--no-active",),
    "webhook-endpoints update": ("--no-active",),
}


def invoke(app, words, named, **options):
    names = named if isinstance(named, tuple) else (str(named),)
    args = [*words.split(), *names, *REQUIRED.get(words, ())]
    return app.test_cli_runner().invoke(args=args, **options)


class TestHarmfulCommands:
    @pytest.mark.parametrize("words", sorted(NAMES))
    def test_name_the_row_in_the_question(self, app, rows, questions, words):
        ended = invoke(app, words, rows[words])

        (question,) = questions
        assert NAMES[words] in question
        assert question.isprintable()
        assert (ended.exit_code, ended.stdout) == (1, "")

    @pytest.mark.parametrize("words", sorted(HARMFUL))
    def test_do_not_ask_about_a_row_that_is_missing(self, app, questions, words):
        if words in UNNAMED:
            return
        ended = invoke(app, words, uuid.uuid4())

        assert questions == []
        assert (ended.exit_code, ended.stdout) == (1, "")
        assert ended.stderr.startswith("Error: There is no")


class TestWithoutTenant:
    """What a platform's credential creates without a tenant concerns all tenants."""

    WORDS = (
        "roles",
        "create",
        "--key",
        "auditor",
        "--name",
        "Auditor",
        "--permission",
        "users:read",
    )

    def test_asks_first(self, app, questions):
        ended = app.test_cli_runner().invoke(args=self.WORDS)

        assert questions == ["Without --tenant this concerns all tenants. Go on?"]
        assert (ended.exit_code, stored(AccessRole, key="auditor")) == (1, [])

    @pytest.mark.parametrize("added", [("--yes",), ("--tenant", "acme")])
    def test_does_not_ask_with_yes_or_a_tenant(self, app, rows, questions, added):
        ended = app.test_cli_runner().invoke(args=[*self.WORDS, *added])

        assert (ended.exit_code, questions) == (0, [])


class TestAnswers:
    def test_are_not_asked_about_a_change_that_ends_nothing(self, app, rows, questions):
        named = rows["users update"]
        run = app.test_cli_runner().invoke

        renamed = run(args=["users", "update", named, "--first-name", "Augusta"])
        activated = run(args=["users", "activate", named])

        assert (renamed.exit_code, activated.exit_code, questions) == (0, 0, [])

    @pytest.mark.parametrize("reply", ["n\n", ""])
    def test_does_nothing_without_a_yes(self, app, rows, reply):
        ended = invoke(app, "api-keys revoke", rows["api-keys revoke"], input=reply)

        assert (ended.exit_code, ended.stdout) == (1, "")
        assert ended.stderr.endswith("Error: Nothing was changed. With --yes nothing is asked.\n")
        assert row(ApiKey).revoked_at is None

    def test_does_it_after_a_yes(self, app, rows):
        ended = invoke(app, "api-keys revoke", rows["api-keys revoke"], input="y\n")

        assert ended.exit_code == 0
        assert row(ApiKey).revoked_at is not None

    def test_are_not_asked_about_an_active_tenant_that_would_be_deleted(self, app, rows, questions):
        ended = invoke(app, "tenants delete", "acme")

        assert (ended.exit_code, questions) == (1, [])
        assert ended.stderr == "Error: This tenant is active; suspend it first.\n"

    def test_are_not_asked_about_an_assigned_plan_that_is_missing(self, app, questions):
        create_tenant(slug="acme")

        ended = invoke(app, "tenants plan clear --yes", "acme")

        assert (ended.exit_code, questions) == (1, [])

    def test_the_days_of_a_deletion_are_those_of_the_configuration(
        self, app, rows, questions, monkeypatch
    ):
        config = app.extensions["config"]
        monkeypatch.setitem(
            app.extensions, "config", dataclasses.replace(config, tenant_grace_days=7)
        )

        invoke(app, "tenants delete", "closed")
        invoke(app, "tenants delete --now", "closed")

        assert questions == [
            "Delete closed with all its data after 7 day(s)?",
            "Delete closed with all its data now, for good?",
        ]

"""Erasing a person whom a tenant made up changes nothing but what is stored about that person."""

import pytest

from app.audit.models import AuditEvent
from app.events.models import Event
from app.inbox.models import WebhookEvent
from app.privacy.identifiers import Identifiers
from app.subscriptions.models import Subscription
from app.tenants.models import Tenant
from app.users.models import User
from tests import database
from tests.factories import (
    PLATFORM_SUBJECT,
    create_member,
    create_subscription,
    create_tenant,
    platform_token,
)
from tests.privacy.test_user_erasure import run_job
from tests.scim.directory import Directory, create_connection


@pytest.fixture
def tenant(app):
    return create_tenant(idp_org_id="org_here")


@pytest.fixture
def admin(tenant):
    create_member(tenant, role="owner")
    return create_member(tenant, role="admin")


@pytest.fixture
def history(api, tenant, admin):
    """The admin makes a key and changes a role, then somebody else's; the trail and the feed."""
    _, _, token = admin
    _, membership, _ = create_member(tenant, role="member")
    key = {"name": "k", "permissions": ["users:read"]}
    assert api.post("/v1/api-keys", token=token, json=key).status_code == 201
    path = f"/v1/memberships/tenant/{membership.id}/role"
    assert api.patch(path, token=token, query_string={"role": "billing"}).status_code == 200
    api.sequence()

    def read():
        return [
            {row.id: row._asdict() for row in database.rows(model) if row.tenant_id == tenant.id}
            for model in (AuditEvent, Event)
        ]

    return read


def plant(app, api, token, subject, *, by=None, email="ghost@example.org"):
    """Make a user with this id, and erase them."""
    body = {"idp_user_id": subject, "email": email}
    made = api.post("/v1/users", token=token, json=body)
    assert made.status_code == 201, made.text
    user = database.row(User, id=made.get_json()["data"]["id"])
    assert api.delete(f"/v1/users/{user.id}", token=by or token).status_code == 202
    run_job(app)
    assert database.rows(User, id=user.id) == []


def is_unchanged(before, after):
    return all(now.items() >= then.items() for then, now in zip(before, after, strict=True))


@pytest.mark.parametrize("subject", ["<me>", "billing", "member", "platform:platform-operator"])
@pytest.mark.parametrize("by_platform", [False, True])
def test_the_trail_and_the_feed_stay(app, api, admin, history, subject, by_platform):
    user, _, token = admin
    before = history()

    subject = str(user.id) if subject == "<me>" else subject
    plant(app, api, token, subject, by=platform_token() if by_platform else None)

    assert is_unchanged(before, history())


@pytest.mark.parametrize(
    ("operator", "ghost"),
    [
        (PLATFORM_SUBJECT, {"subject": PLATFORM_SUBJECT}),
        ("ops@corp.example", {"subject": "x", "email": "ops@corp.example"}),
    ],
)
def test_the_actions_of_superadmins_stay(app, api, tenant, admin, history, operator, ghost):
    """Also where the address of a user is that of a superadmin."""
    body = {"name": "by us", "permissions": ["users:read"]}
    query, token = {"tenant_id": str(tenant.id)}, platform_token(subject=operator)
    made = api.post("/v1/api-keys", token=token, json=body, query_string=query)
    assert made.status_code == 201
    before = history()

    plant(app, api, admin[2], **ghost)

    assert is_unchanged(before, history())


def test_received_events_of_the_organization_keep_their_payload(app, api, tenant, admin, sender):
    data = {"organization_id": "org_here", "user_id": "real", "role": "member", "id": "m1"}
    sender.tell("organization.updated", id="org_here", name="Here")
    sender.tell("membership.created", **data)

    for subject in ("org_here", "member", "membership.created", "generic"):
        plant(app, api, admin[2], subject)

    assert all(row.body is not None and row.headers for row in database.rows(WebhookEvent))


def test_other_tenants_keep_their_trail_and_their_contacts(app, api, admin):
    victim = create_tenant(primary_contact_email="billing@victim.example")
    create_subscription(victim, billing_email="billing@victim.example", billing_contact_name="Vera")
    _, membership, _ = create_member(victim, role="viewer")
    owner = create_member(victim, role="owner")[2]
    path = f"/v1/memberships/tenant/{membership.id}/role"
    assert api.patch(path, token=owner, query_string={"role": "member"}).status_code == 200
    before = {row.id: row for row in database.rows(AuditEvent, tenant_id=victim.id)}

    for subject, email in (("viewer", "x@x.example"), ("y", "billing@victim.example")):
        plant(app, api, admin[2], subject, by=platform_token(), email=email)

    assert {row.id: row for row in database.rows(AuditEvent, tenant_id=victim.id)} == before
    assert database.row(Tenant, id=victim.id).primary_contact_email == "billing@victim.example"
    assert database.row(Subscription, tenant_id=victim.id).billing_contact_name == "Vera"


def test_an_address_that_a_tenant_gave_counts_only_there(app, api, tenant, admin, sender):
    """The user is the provider's, so the platform erases them everywhere."""
    victim = create_tenant(primary_contact_email="billing@victim.example")
    pair = {"organization_id": "org_here", "user_id": "known", "role": "member"}
    sender.tell("user.created", id="known", email="known@example.com")
    sender.tell("membership.created", **pair)
    user = database.row(User, idp_user_id="known")
    body = {"email": "billing@victim.example"}
    assert api.patch(f"/v1/users/{user.id}", token=admin[2], json=body).status_code == 200

    assert api.delete(f"/v1/users/{user.id}", token=platform_token()).status_code == 202
    run_job(app)

    assert database.rows(User, id=user.id) == []
    assert database.row(Tenant, id=victim.id).primary_contact_email == "billing@victim.example"
    assert all(row.body is None for row in database.rows(WebhookEvent))


def test_a_directorys_users_count_as_the_tenants(app, api, tenant):
    victim = create_tenant(primary_contact_email="billing@victim.example")
    create_member(tenant, role="owner")
    directory = Directory(app, create_connection(tenant)[1])
    emails = [{"value": "billing@victim.example", "primary": True}]
    made = directory.add_user("ghost", externalId="viewer", emails=emails)
    user = database.row(User, id=made["id"])

    assert api.delete(f"/v1/users/{user.id}", token=platform_token()).status_code == 202
    run_job(app)

    assert database.rows(User, id=user.id) == []
    assert database.row(Tenant, id=victim.id).primary_contact_email == "billing@victim.example"


def test_the_command_erases_a_tenants_user_only_there(app, api, admin):
    victim = create_tenant(primary_contact_email="billing@victim.example")
    body = {"idp_user_id": "ghost", "email": "billing@victim.example"}
    assert api.post("/v1/users", token=admin[2], json=body).status_code == 201

    result = app.test_cli_runner().invoke(args=["users", "erase", "ghost", "--yes"])

    assert result.exit_code == 0, result.output
    assert database.rows(User, email="billing@victim.example") == []
    assert database.row(Tenant, id=victim.id).primary_contact_email == "billing@victim.example"


@pytest.mark.parametrize(
    ("fields", "is_found"),
    [
        ("idp_user_id idp_membership_id userId removedUserIds sub id", True),
        ("organization_id idp_org_id role_id role actor created_by_user_id_of name", False),
    ],
)
def test_an_id_is_found_only_in_fields_that_hold_one(fields, is_found):
    who = Identifiers(frozenset({"1"}), frozenset())

    for field in fields.split():
        assert who.are_in({"data": {field: "1"}}) is is_found, field
        assert who.are_in({"data": {field: ["1"]}}) is is_found, field


def test_of_an_id_the_object_counts():
    who = Identifiers(frozenset({"1"}), frozenset())

    assert who.are_in({"data": {"user": {"id": "1"}, "id": "2"}})
    assert not who.are_in({"data": {"organization": {"id": "1"}, "roles": [{"id": "1"}]}})

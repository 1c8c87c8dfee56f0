"""The pages about who joins a tenant: invitations, domains, join requests, setup links, SSO."""

import html
import re
from contextlib import contextmanager
from datetime import timedelta

import pytest

from app import create_app
from app.auth import sessions
from app.core.clock import utcnow
from app.domains.models import Domain, JoinRequest
from app.extensions import db
from app.invitations.models import Invitation
from app.memberships.models import Membership
from app.setup_links.models import SetupLink
from tests import database
from tests.console.conftest import Browser
from tests.console.world import ATTACK, RULE, know
from tests.database import platform_transaction
from tests.factories import (
    create_domain,
    create_invitation,
    create_join_request,
    create_member,
    create_sso_connection,
    create_tenant,
)

INVITE = {"email": "ada@example.com", "role": "viewer", "expires_in_days": "3"}


@pytest.fixture
def tenant(app):
    return create_tenant(name="Acme", slug="acme")


@pytest.fixture
def members(tenant):
    return f"/console/tenants/{tenant.id}/members"


@pytest.fixture
def domains(tenant):
    return f"/console/tenants/{tenant.id}/domains"


@pytest.fixture(params=["operator", "admin"])
def writer(request, signed_in, tenant):
    """A browser of each kind of person who may change what these pages show."""
    if request.param == "operator":
        return signed_in()
    return signed_in(create_member(tenant, request.param)[0])


@pytest.fixture
def owner(signed_in, tenant):
    return signed_in(create_member(tenant, "owner")[0])


@pytest.fixture
def viewer(signed_in, tenant):
    return signed_in(create_member(tenant, "viewer")[0])


@contextmanager
def changed(environment, settings, user):
    """A browser of a user at an application with other settings."""
    made = create_app({**environment, **settings}, with_commands=False)
    with platform_transaction():
        secret = sessions.start(user.idp_user_id, user.idp_org_id)
    yield Browser(made, secret)
    with made.app_context():
        db.engine.dispose()


def secret_of(page):
    found = re.search(r'<code id="secret">(.*?)</code>', page)
    assert found is not None
    return html.unescape(found[1])


class TestInvitations:
    def test_are_made_and_show_their_link_once(self, writer, members):
        sent = writer.send(f"{members}/invitations/new", **INVITE)
        listed = writer.get(f"{members}/invitations").text

        token = secret_of(sent.text)
        invitation = database.row(Invitation)
        assert sent.status_code == 201
        assert token.startswith("inv_")
        assert "This is the token of ada@example.com" in sent.text
        assert "data-copy" in sent.text
        assert (invitation.role, invitation.email) == ("viewer", "ada@example.com")
        assert "ada@example.com" in listed
        assert token not in listed

    def test_show_the_address_of_the_product(self, environment, tenant, members):
        settings = {"INVITATION_URL": "https://app.example.com/join?t={token}"}
        with changed(environment, settings, create_member(tenant, "owner")[0]) as browser:
            sent = browser.send(f"{members}/invitations/new", **INVITE)

        assert secret_of(sent.text).startswith("https://app.example.com/join?t=inv_")
        assert "This is the link of ada@example.com" in sent.text

    def test_show_no_link_where_the_service_mails_it(self, environment, tenant, members):
        settings = {
            "SMTP_URL": "smtp+plain://127.0.0.1:9",
            "MAIL_FROM": "service@example.com",
            "INVITATION_URL": "https://app.example.com/join?t={token}",
        }
        with changed(environment, settings, create_member(tenant, "owner")[0]) as browser:
            sent = browser.send(f"{members}/invitations/new", **INVITE)
            listed = browser.get(f"{members}/invitations").text

        assert (sent.status_code, sent.location) == (303, f"{members}/invitations")
        assert "The invitation is sent to ada@example.com." in listed
        assert "inv_" not in sent.text + listed

    def test_offer_no_role_above_the_persons_own(self, signed_in, tenant, members):
        admin = signed_in(create_member(tenant, "admin")[0])

        page = admin.get(f"{members}/invitations/new").text

        assert 'value="admin"' in page
        assert 'value="owner"' not in page

    def test_are_resent_with_another_link(self, writer, tenant, members):
        now = utcnow()
        invitation = create_invitation(tenant.id, digest="x", expires_at=now - timedelta(days=1))

        sent = writer.send(f"{members}/invitations/{invitation.id}/resend")

        assert secret_of(sent.text).startswith("inv_")
        assert database.row(Invitation).expires_at > now

    def test_are_revoked(self, writer, tenant, members):
        invitation = create_invitation(tenant.id, digest="x")
        path = f"{members}/invitations"

        sent = writer.send(f"{path}/{invitation.id}/revoke")
        listed = writer.get(path).text

        assert (sent.status_code, sent.location) == (303, path)
        assert database.row(Invitation).revoked_at is not None
        assert "The invitation was revoked." in listed
        assert "/resend" not in listed

    def test_say_their_states_and_are_filtered_by_them(self, owner, tenant, members):
        now = utcnow()
        for name, values in {
            "waits": {},
            "late": {"expires_at": now - timedelta(days=1)},
            "here": {"accepted_at": now},
            "gone": {"revoked_at": now},
        }.items():
            create_invitation(tenant.id, email=f"{name}@example.com", digest=name, **values)

        every = owner.get(f"{members}/invitations").text
        expired = owner.get(f"{members}/invitations?state=expired").text

        for state in ("pending", "expired", "accepted", "revoked"):
            assert re.search(rf'class="badge[^"]*">{state}<', every), state
        assert "late@example.com" in expired
        assert "waits@example.com" not in expired

    def test_of_the_identity_provider_are_only_shown(self, owner, tenant, members):
        create_invitation(tenant.id, source="workos", idp_invitation_id="invitation_1")

        listed = owner.get(f"{members}/invitations").text

        assert "from workos" in listed
        assert "/resend" not in listed
        assert "/revoke" not in listed


class TestJoinRequests:
    def test_are_accepted(self, writer, tenant, members):
        asked = create_join_request(tenant, first_name="Ada")
        path = f"{members}/join-requests"
        before = len(database.rows(Membership))

        listed = writer.get(path).text
        sent = writer.send(f"{path}/{asked.id}/accept")

        assert asked.email in listed
        assert (sent.status_code, sent.location) == (303, path)
        assert database.row(JoinRequest).state == "accepted"
        assert len(database.rows(Membership)) == before + 1

    def test_are_declined(self, writer, tenant, members):
        asked = create_join_request(tenant)

        writer.send(f"{members}/join-requests/{asked.id}/decline")
        listed = writer.get(f"{members}/join-requests").text

        assert database.row(JoinRequest).state == "declined"
        assert "The request was declined." in listed
        assert "/accept" not in listed

    def test_that_were_answered_meanwhile_say_so(self, owner, tenant, members):
        asked = create_join_request(tenant, state="declined")

        answer = owner.send(f"{members}/join-requests/{asked.id}/accept")

        assert answer.status_code == 409
        assert "accepted or declined already" in answer.text

    def test_want_attention_of_the_tenant_and_of_operators(self, browser, tenant, members):
        create_join_request(tenant, email="ada@example.com")

        overview = browser.get(f"/console/tenants/{tenant.id}").text
        work = browser.get("/console/work").text
        listed = browser.get("/console/members/join-requests?state=pending").text

        assert "ada@example.com</a> wants to join" in overview
        assert "People who want to join" in work
        assert "/console/members/join-requests?state=pending" in work
        assert f"{members}/join-requests/" in listed
        assert "Acme</a>" in listed


class TestDomains:
    def test_are_added_with_the_record_to_set(self, writer, domains):
        sent = writer.send(f"{domains}/new", name="bücher.example", **RULE)
        shown = writer.get(sent.location).text

        domain = database.row(Domain)
        assert sent.location == f"{domains}/{domain.id}"
        assert "bücher.example" in shown
        assert "Set the record below" in shown
        assert "_controlplane-challenge.xn--bcher-kva.example" in shown
        assert "It is looked for during 72 hours" in shown

    @pytest.mark.parametrize("name", ["co.uk", "gmail.com", "10.0.0.1", ATTACK])
    def test_that_nobody_owns_are_refused_beside_the_field(self, owner, domains, name):
        answer = owner.send(f"{domains}/new", name=name, **RULE)

        assert answer.status_code == 422
        assert 'id="field-name-error"' in answer.text
        assert "<script>alert" not in answer.text

    def test_are_checked(self, writer, tenant, domains):
        domain = create_domain(tenant, state="failed")

        sent = writer.send(f"{domains}/{domain.id}/verify")
        shown = writer.get(sent.location).text

        assert database.row(Domain).state == "pending"
        assert "The record is looked for now." in shown
        assert 'id="follow" class="quiet" hx-get' in shown

    @pytest.mark.parametrize(
        ("values", "said"),
        [
            ({"state": "verified"}, "keep it: it is checked every week"),
            ({"state": "failed", "error": "no_record"}, "There is no such record."),
            ({"state": "lapsed", "error": "no_answer"}, "Nobody joins by the domain any more"),
            ({"state": "pending", "error": "domain_taken"}, "another tenant has verified"),
        ],
    )
    def test_explain_their_state(self, owner, tenant, domains, values, said):
        domain = create_domain(tenant, **values)

        assert said in owner.get(f"{domains}/{domain.id}").text

    def test_have_a_rule_for_joining(self, writer, tenant, domains):
        domain = create_domain(tenant, state="verified")

        sent = writer.send(f"{domains}/{domain.id}/edit", **{**RULE, "join": "auto"})

        assert sent.location == f"{domains}/{domain.id}"
        assert database.row(Domain).join == "auto"
        assert "join at once while a seat is free" in writer.get(sent.location).text

    def test_take_in_known_people_after_a_preview(self, writer, tenant, domains):
        know("ada@acme.example")
        domain = create_domain(tenant, name="acme.example", state="verified", **RULE)
        path = f"{domains}/{domain.id}/sweep"

        preview = writer.send(path, form_preview="1")
        before = database.rows(JoinRequest)
        sent = writer.send(path)
        told = writer.get(sent.location).text

        assert "ada@acme.example" in preview.text
        assert "Nothing is saved yet" in preview.text
        assert before == []
        assert database.row(JoinRequest).email == "ada@acme.example"
        assert sent.location == f"{domains}/{domain.id}"
        assert "Joined: 0. Waiting for an answer: 1." in told

    def test_take_in_many_people_part_by_part(self, owner, tenant, domains):
        know(*(f"person{number:03}@acme.example" for number in range(101)))
        domain = create_domain(tenant, name="acme.example", state="verified", **RULE)

        first = owner.send(f"{domains}/{domain.id}/sweep")
        second = owner.send(first.location)

        assert first.location.startswith(f"{domains}/{domain.id}/sweep?after=")
        assert second.location == f"{domains}/{domain.id}"
        assert len(database.rows(JoinRequest)) == 101

    def test_that_lapsed_want_attention(self, browser, tenant, domains):
        domain = create_domain(tenant, name="acme.example", state="lapsed")

        overview = browser.get(f"/console/tenants/{tenant.id}").text
        work = browser.get("/console/work").text
        listed = browser.get("/console/domains?state=lapsed").text

        assert "acme.example</a> lapsed" in overview
        assert "Domains that lapsed" in work
        assert f"{domains}/{domain.id}" in listed


class TestSetupLinks:
    def test_are_made_and_shown_once(self, writer, domains):
        path = f"{domains}/setup-links"

        sent = writer.send(
            f"{path}/new",
            scopes=["scim", "domains"],
            contact="it@acme.example",
            expires_in_hours="24",
        )
        listed = writer.get(path).text

        url = secret_of(sent.text)
        assert sent.status_code == 201
        assert "/console/setup" in url
        assert "data-copy" in sent.text
        assert "it@acme.example" in listed
        assert "directory (SCIM)" in listed
        assert url.rpartition("=")[2] not in listed

    def test_are_revoked(self, writer, domains):
        path = f"{domains}/setup-links"
        writer.send(f"{path}/new", scopes=["scim"], expires_in_hours="24")

        sent = writer.send(f"{path}/{database.row(SetupLink).id}/revoke")
        listed = writer.get(path).text

        assert sent.location == path
        assert database.row(SetupLink).revoked_at is not None
        assert "The setup link was revoked." in listed
        assert "/revoke" not in listed


class TestSsoConnections:
    def test_are_shown_with_the_end_of_the_certificate(self, writer, tenant, domains):
        ends = utcnow() + timedelta(days=10)
        create_sso_connection(tenant.id, name="Acme's Okta", certificate_ends_at=ends)

        listed = writer.get(f"{domains}/sso").text

        assert "Acme&#39;s Okta" in listed
        assert "acme.example" in listed
        assert re.search(r"ends <time[^>]*>in (9|10) days", listed)

    def test_whose_certificate_ends_soon_want_attention(self, browser, tenant):
        for name, days in (("Soon", 20), ("Later", 40)):
            ends = utcnow() + timedelta(days=days)
            create_sso_connection(tenant.id, name=name, certificate_ends_at=ends)

        overview = browser.get(f"/console/tenants/{tenant.id}").text
        work = browser.get("/console/work").text
        link = re.search(r'href="(/console/domains/sso[^"]+)"', work)
        listed = browser.get(html.unescape(link[1])).text

        assert "Soon</a>: the certificate" in overview
        assert "Later</a>" not in overview
        assert "SSO certificates that end within 30 days" in work
        assert "Soon" in listed
        assert "Later" not in listed

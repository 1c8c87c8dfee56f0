"""One person by several ways at once: events, a directory, and an invitation."""

import pytest

from app.invitations.models import Invitation
from app.memberships.models import Membership
from app.users.models import User
from tests import database
from tests.concurrency import at_once
from tests.inbox.sending import all_events
from tests.invitations.test_accept import EMAIL, accept, invite, seats
from tests.scim.directory import Directory, create_connection

__all__ = ["accept", "invite"]
SUBJECT = "user_ada"


class TestOnePerson:
    @pytest.fixture
    def directory(self, app, tenant):
        return Directory(app, create_connection(tenant)[1])

    @pytest.fixture
    def ways(self, sender, directory, tenant, invite, accept):
        invitation = invite()

        def tell():
            sender.tell("user.created", id=SUBJECT, email=EMAIL, email_verified=True)
            pair = {"organization_id": tenant.idp_org_id, "user_id": SUBJECT, "role": "member"}
            sender.tell("membership.created", **pair)

        def provision():
            emails = [{"value": EMAIL, "primary": True}]
            return directory.add_user(EMAIL, externalId=SUBJECT, emails=emails)

        def join():
            answer = accept(invitation)
            assert answer.status_code == 200, answer.text

        return [tell, provision, join]

    def test_is_one_user_with_one_membership(self, tenant, ways):
        at_once(ways)

        (user,), (membership,) = database.rows(User), database.rows(Membership)
        assert (user.idp_user_id, user.is_active) == (SUBJECT, True)
        assert (membership.user_id, membership.is_active) == (user.id, True)
        assert [event.status for event in all_events()] == ["succeeded"] * 2
        assert database.row(Invitation).user_id == user.id
        assert seats(tenant) == 1

    @pytest.mark.parametrize("order", ["012", "021", "102", "120", "201", "210"])
    def test_one_after_the_other_is_one_user_too(self, tenant, ways, order):
        for number in order:
            ways[int(number)]()

        (user,) = database.rows(User)
        (membership,) = database.rows(Membership)
        assert (membership.user_id, membership.is_active) == (user.id, True)
        assert database.row(Invitation).user_id == user.id
        assert seats(tenant) == 1

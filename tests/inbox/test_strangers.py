"""A tenant that makes a user under somebody else's id learns nothing about them from the provider."""

import pytest

from app.users.models import User
from tests import factories
from tests.inbox.sending import Sender, all_rows

PATH = "/v1/users"


@pytest.fixture
def generic(sender: Sender):
    return lambda kind, minute, **data: sender.tell(kind, f"09:{minute:02}", **data)


@pytest.fixture
def curious(generic):
    """A tenant; Ada, an owner in another one, is "u1" at the provider."""
    generic("organization.created", 0, id="o1", name="Acme")
    generic("user.created", 0, id="u1", email="ada@acme.example", name="Ada Lovelace")
    generic("membership.created", 0, organization_id="o1", user_id="u1", role="owner")
    return factories.create_tenant(idp_org_id="o2")


@pytest.fixture(params=["an admin", "a key"])
def claimed(request, api, curious):
    """The row of "u1" that somebody in the tenant has made."""
    if request.param == "an admin":
        token = factories.create_member(curious, role="admin")[2]
    else:
        token = factories.create_api_key(curious, ["users:write"])
    made = api.post(PATH, token=token, json={"idp_user_id": "u1", "email": "who@example.com"})
    assert made.status_code == 201
    return made.get_json()["data"]["id"]


def row(user_id):
    (found,) = (user for user in all_rows(User) if str(user.id) == user_id)
    return found


class TestClaimedUser:
    def test_does_not_follow_what_the_provider_says_of_the_person(self, generic, claimed):
        generic("user.updated", 1, id="u1", email="secret@acme.example", first_name="Augusta")

        assert (row(claimed).email, row(claimed).first_name) == ("who@example.com", "")

    def test_ends_with_the_person(self, generic, claimed):
        generic("user.deleted", 1, id="u1")

        assert not row(claimed).is_active

    @pytest.mark.parametrize("joins_first", [True, False])
    def test_follows_once_the_provider_says_they_belong_here(self, generic, claimed, joins_first):
        told = [
            lambda: generic("membership.created", 2, organization_id="o2", user_id="u1"),
            lambda: generic("user.updated", 1, id="u1", email="new@acme.example"),
        ]

        for tell in told if joins_first else reversed(told):
            tell()

        assert (row(claimed).email, row(claimed).first_name) == ("new@acme.example", "Ada")

    def test_made_by_the_platform_follows(self, api, generic, curious):
        body = {"idp_user_id": "u1", "email": "who@example.com"}
        key = factories.create_api_key(permissions=["users:write"])
        made = api.post(f"{PATH}?tenant_id={curious.id}", token=key, json=body)

        generic("user.updated", 1, id="u1", email="new@acme.example")

        assert row(made.get_json()["data"]["id"]).email == "new@acme.example"

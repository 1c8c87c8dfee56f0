"""The audit rows and events of what only a directory stores: of a person, and its groups."""

import pytest

from app.audit.models import AuditEvent
from app.events.models import OutboxEvent
from tests.database import row, rows
from tests.factories import create_member
from tests.scim.directory import (
    ENTERPRISE,
    GROUP,
    USER,
    add_members,
    as_members,
    remove_member,
    replace,
)

ACTION = "user.directory_updated"
DEPARTMENT, MANAGER = f"{ENTERPRISE}:department", f"{ENTERPRISE}:manager"
ADA = {
    "externalId": "okta-1",
    "title": "Analyst",
    "name": {"givenName": "Ada", "formatted": "Ada L."},
    ENTERPRISE: {"department": "Sums", "manager": {"value": "m-1"}},
}


@pytest.fixture
def ada(directory):
    return directory.add_user("ada@example.com", **ADA)


def changes(user):
    """Before and after of each row about the user, the oldest first."""
    found = rows(AuditEvent, action=ACTION, target_type="user", target_id=user["id"])
    return [(one.before["directory"], one.after["directory"]) for one in found]


@pytest.mark.parametrize(
    ("operation", "before", "after"),
    [
        (replace("title", "Countess"), {"title": "Analyst"}, {"title": "Countess"}),
        ({"op": "remove", "path": "title"}, {"title": "Analyst"}, {"title": None}),
        (replace(DEPARTMENT, "Engines"), {DEPARTMENT: "Sums"}, {DEPARTMENT: "Engines"}),
        (replace(MANAGER, "m-2"), {MANAGER: {"value": "m-1"}}, {MANAGER: {"value": "m-2"}}),
        ({"op": "add", "path": "phoneNumbers", "value": [{"value": "1"}]},
         {"phoneNumbers": None}, {"phoneNumbers": [{"value": "1"}]}),
        (replace("name.formatted", "A"), {"name.formatted": "Ada L."}, {"name.formatted": "A"}),
        (replace(None, {"userName": "Ada", "externalId": "okta-2"}),
         {"externalId": "okta-1", "userName": "ada@example.com"},
         {"externalId": "okta-2", "userName": "Ada"}),
    ],
    ids=["changed", "removed", "extension", "complex", "added", "part", "names"],
)  # fmt: skip
def test_tell_what_differs(directory, connection, ada, operation, before, after):
    answer = directory.patch(f"/Users/{ada['id']}", operation)

    assert answer.status_code == 200, answer.text
    assert changes(ada) == [(before, after)]
    event = row(AuditEvent, action=ACTION)
    sent = row(OutboxEvent, type=ACTION)
    assert event.actor == f"scim:{connection[0].id}"
    assert (sent.before, sent.after) == (event.before, event.after)
    assert sent.data["id"] == ada["id"]
    assert "email_key" not in sent.data


def test_of_the_same_values_there_are_none(directory, ada):
    for _ in range(2):
        directory.patch(f"/Users/{ada['id']}", replace("title", "Analyst"))
        directory.put(
            f"/Users/{ada['id']}", {"schemas": [USER], "userName": "ada@example.com", **ADA}
        )

    assert changes(ada) == []


def test_of_what_the_user_has_are_the_users(directory, ada):
    directory.patch(
        f"/Users/{ada['id']}", replace("name.givenName", "Augusta"), replace("active", "False")
    )

    assert changes(ada) == []
    assert row(AuditEvent, action="user.updated").after == {"first_name": "Augusta"}
    assert row(AuditEvent, action="membership.deactivated").after == {"is_active": False}


def test_of_a_refused_request_there_are_none(directory, ada):
    directory.add_user("bob")

    answer = directory.patch(
        f"/Users/{ada['id']}", replace("title", "Countess"), replace("userName", "bob")
    )

    assert answer.status_code == 409
    assert changes(ada) == []


def test_tell_when_a_user_comes_under_the_directory_and_leaves_it(directory, tenant):
    member, _, _ = create_member(tenant, email="eve@example.com")
    eve = directory.add_user("eve@example.com", title="Countess")
    directory.delete(f"/Users/{eve['id']}")

    assert eve["id"] == str(member.id)
    assert changes(eve) == [
        ({"title": None, "userName": None}, {"title": "Countess", "userName": "eve@example.com"}),
        ({"userName": "eve@example.com"}, {"userName": None}),
    ]


class TestGroups:
    def trail(self, group):
        """Action, before and after of each row about the group, the oldest first."""
        found = rows(AuditEvent, target_type="scim_group", target_id=group["id"])
        return [(one.action, one.before, one.after) for one in found]

    def test_tell_who_made_changed_and_deleted_one(self, directory, connection, ada):
        bob = directory.add_user("bob")
        group = directory.add_group("All", ada["id"], externalId="g-1")
        path = f"/Groups/{group['id']}"

        directory.patch(path, add_members(bob["id"]), remove_member(ada["id"]))
        directory.patch(path, replace("displayName", "Everybody"))
        directory.delete(path)

        names = {"display_name": "All", "external_id": "g-1"}
        named = {**names, "display_name": "Everybody"}
        assert self.trail(group) == [
            ("scim_group.created", {}, {**names, "members": [ada["id"]]}),
            ("scim_group.updated", {"members": [ada["id"]]}, {"members": [bob["id"]]}),
            ("scim_group.updated", {"display_name": "All"}, {"display_name": "Everybody"}),
            ("scim_group.deleted", {**named, "members": [bob["id"]]}, {}),
        ]
        actors = {one.actor for one in rows(AuditEvent, target_type="scim_group")}
        assert actors == {f"scim:{connection[0].id}"}

    def test_of_the_same_values_and_of_strangers_there_are_none(self, directory, ada):
        group = directory.add_group("All", ada["id"])
        members = [
            {"value": ada["id"], "display": "Ada"},
            *as_members("01890000-0000-7000-8000-000000000000"),
        ]

        for _ in range(2):
            body = {"schemas": [GROUP], "displayName": "All", "members": members}
            assert directory.put(f"/Groups/{group['id']}", body).status_code == 200

        assert [action for action, *_ in self.trail(group)] == ["scim_group.created"]

    def test_of_a_refused_request_there_are_none(self, directory, ada):
        group = directory.add_group("All", ada["id"])
        directory.add_group("Taken")

        answer = directory.patch(f"/Groups/{group['id']}", replace("displayName", "Taken"))

        assert answer.status_code == 409
        assert len(self.trail(group)) == 1

"""What directories send beside the standard: what is ignored, what is refused, and how it is told."""

import pytest

from app.connections.models import ScimRequest
from app.scim.models import ScimUser
from app.users.models import User
from tests.database import row, rows
from tests.scim.directory import BULK, ERROR, USER, patch_body, replace

CUSTOM = "urn:ietf:params:scim:schemas:extension:custom:2.0:User"


def last_detail():
    return max(rows(ScimRequest), key=lambda one: one.sent_at).detail


@pytest.fixture
def ada(directory):
    return directory.add_user("ada@example.com", displayName="Ada")


class TestFilters:
    @pytest.mark.parametrize("at", ["/Users", "/Groups"])
    @pytest.mark.parametrize("moment", ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59"])
    def test_with_a_moment_beyond_the_calendar_are_refused(self, directory, at, moment):
        scim_filter = f'meta.lastModified gt "{moment}"'

        answer = directory.get(at, query_string={"filter": scim_filter})

        assert (answer.status_code, answer.get_json()["scimType"]) == (400, "invalidFilter")


class TestMoments:
    def test_of_a_new_resource_are_the_same(self, directory, ada):
        group = directory.add_group("G", ada["id"])
        user = row(User, id=ada["id"])

        for made in (ada, group):
            assert made["meta"]["created"] == made["meta"]["lastModified"]
        assert user.created_at == user.updated_at


class TestRoles:
    @pytest.mark.parametrize(
        "operation",
        [
            {"op": "Add", "path": 'roles[primary eq "True"].value', "value": "x"},
            {"op": "Add", "path": "roles", "value": [{"value": "admin"}]},
            {"op": "Add", "path": f"{USER}:roles", "value": [{"value": "admin"}]},
            {"op": "remove", "path": "roles"},
            replace(None, {"roles": [{"value": "admin"}], "groups": []}),
        ],
        ids=str,
    )
    def test_in_a_patch_are_ignored_and_shown_in_the_log(self, directory, ada, operation):
        answer = directory.patch(f"/Users/{ada['id']}", operation, replace("displayName", "New"))

        assert answer.status_code == 200
        assert answer.get_json()["displayName"] == "New"
        assert answer.get_json()["roles"] == ada["roles"]
        assert "roles" in last_detail()
        assert last_detail().startswith("ignored ")

    def test_in_a_bulk_request_are_ignored(self, directory, ada):
        data = patch_body({"op": "Add", "path": "roles", "value": [{"value": "x"}]})

        answer = directory.bulk({"method": "PATCH", "path": f"/Users/{ada['id']}", "data": data})

        assert [one["status"] for one in answer.get_json()["Operations"]] == ["200"]


class TestUnknownAttributes:
    @pytest.mark.parametrize(
        ("operation", "name"),
        [
            (replace("nonExistentAttr", 1), "nonExistentAttr"),
            (replace("name.foo", "x"), "name.foo"),
            (replace(f"{CUSTOM}:tier", "gold"), f"{CUSTOM}:tier"),
            (replace(None, {"shoeSize": 7}), "shoeSize"),
        ],
    )
    def test_in_a_patch_are_shown_in_the_log(self, directory, ada, operation, name):
        answer = directory.patch(f"/Users/{ada['id']}", operation, replace("displayName", "New"))

        assert answer.get_json()["displayName"] == "New"
        assert last_detail() == f"ignored {name}"


class TestSelections:
    @pytest.mark.parametrize(
        "path",
        ['emails[value eq "zzz@x.example"].type', 'emails[type co "work"].value',
         'emails[type eq "work" and primary eq true].value'],
    )  # fmt: skip
    def test_without_a_match_have_no_target(self, directory, ada, path):
        answer = directory.patch(f"/Users/{ada['id']}", replace(path, "new@example.com"))

        assert (answer.status_code, answer.get_json()["scimType"]) == (400, "noTarget")


class TestMembers:
    @pytest.mark.parametrize("value", ["a", 1, ["a"], [{"foo": 1}], [{"display": "x"}]], ids=str)
    @pytest.mark.parametrize("op", ["add", "replace"])
    def test_without_an_id_are_refused_in_our_words(self, directory, op, value):
        path = f"/Groups/{directory.add_group('G')['id']}"
        patch = {"op": op, "path": "members", "value": value}

        answer = directory.patch(path, patch)
        bulk = directory.bulk({"method": "PATCH", "path": path, "data": patch_body(patch)})

        assert (answer.status_code, answer.get_json()["scimType"]) == (400, "invalidValue")
        assert bulk.get_json()["Operations"][0]["status"] == "400"
        for word in ("pydantic", "validation error", "GroupMember"):
            assert word not in answer.text + bulk.text


class TestBulk:
    @pytest.mark.parametrize(
        "schemas", [{}, *({"schemas": one} for one in ([], [USER], True, -1, 1.5, BULK))], ids=str
    )
    def test_needs_its_schema(self, directory, schemas):
        answer = directory.post("/Bulk", {**schemas, "Operations": []})

        assert answer.status_code == 400


class TestCollisions:
    @pytest.fixture
    def eve(self, directory):
        directory.add_user("eve", externalId="x-1", emails=[{"value": "eve@example.com"}])

    def check(self, answer, named):
        error = answer.get_json()
        assert (answer.status_code, error["status"], error["scimType"]) == (
            409,
            "409",
            "uniqueness",
        )
        assert error["schemas"] == [ERROR]
        assert named in error["detail"]

    @pytest.mark.parametrize(
        ("sent", "named"),
        [
            ({"userName": "b", "externalId": "x-1"}, "externalId"),
            ({"userName": "x-1"}, "userName"),
            ({"userName": "b", "emails": [{"value": "eve@example.com"}]}, "emails"),
            ({"userName": "EVE", "externalId": "y"}, "userName"),
        ],
    )
    def test_name_the_attribute(self, directory, eve, sent, named):
        self.check(directory.post("/Users", {"schemas": [USER], **sent}), named)

        assert len(rows(ScimUser)) == 1
        assert len(rows(User)) == 2  # with the owner: nothing is partly applied

    @pytest.mark.parametrize(
        ("method", "body", "named"),
        [
            ("PUT", {"schemas": [USER], "userName": "EVE"}, "userName"),
            (
                "PATCH",
                patch_body(replace('emails[type eq "work"].value', "EVE@example.com")),
                "address",
            ),
        ],
    )
    def test_of_a_change_leave_the_person(self, directory, eve, method, body, named):
        bob = directory.add_user("bob@example.com")

        self.check(directory.request(method, f"/Users/{bob['id']}", body), named)

        assert directory.get(f"/Users/{bob['id']}").get_json() == bob

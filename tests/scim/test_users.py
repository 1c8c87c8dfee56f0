"""/scim/v2/Users: the mapping onto users and memberships, and the protocol around it."""

from functools import partial

import pytest

from app.audit.models import AuditEvent
from app.memberships.models import Membership
from app.scim.models import ScimUser
from app.search.models import SearchTerm
from app.users.models import User, UserErasure
from tests.concurrency import at_once
from tests.database import execute, row, rows
from tests.factories import (
    create_limits,
    create_member,
    create_membership,
    create_tenant,
    create_user,
    limit_flag,
    save,
    user_token,
)
from tests.scim.directory import (
    ENTERPRISE,
    ERROR,
    USER,
    Directory,
    create_connection,
    patch_body,
    replace,
)

ADA = {
    "externalId": "okta-1",
    "name": {"givenName": "Ada", "familyName": "Lovelace"},
    "emails": [{"value": "Ada@Example.com", "type": "work", "primary": True}],
}


def membership_of(user_id):
    return row(Membership, user_id=user_id)


class TestCreate:
    def test_makes_a_user_and_a_membership(self, directory, connection):
        made = directory.add_user("ada@example.com", **ADA)

        user, membership = row(User, id=made["id"]), membership_of(made["id"])
        actor = f"scim:{connection[0].id}"
        assert (user.idp_user_id, user.email) == ("okta-1", "Ada@Example.com")
        assert (user.first_name, user.last_name) == ("Ada", "Lovelace")
        assert (membership.role, membership.is_active) == ("member", True)
        assert (user.created_by_user_id, membership.created_by_user_id) == (actor, actor)
        assert {event.action for event in rows(AuditEvent, actor=actor)} == {
            "user.created",
            "membership.created",
        }
        assert "ada lovelace" in {one.term for one in rows(SearchTerm, entity_id=user.id)}

    def test_answers_the_resource(self, directory):
        answer = directory.post("/Users", {"schemas": [USER], "userName": "ada@example.com", **ADA})

        made = answer.get_json()
        assert answer.status_code == 201
        assert answer.content_type == "application/scim+json"
        assert answer.headers["Location"] == made["meta"]["location"]
        assert answer.headers["Location"].endswith(f"/scim/v2/Users/{made['id']}")
        assert answer.headers["ETag"] == made["meta"]["version"]
        assert made["roles"] == [{"value": "member", "primary": True}]
        assert made["active"] is True

    def test_keeps_what_else_is_sent(self, directory):
        extension = {"department": "Engines", "manager": {"value": "m-1", "displayName": "Charles"}}
        sent = {
            "schemas": [USER, ENTERPRISE],
            "displayName": "Ada L.",
            "phoneNumbers": [{"value": "+44 20 7946 0000", "type": "work"}],
            "emails": [{"value": "ada@corp.example"}],
            ENTERPRISE: extension,
        }

        made = directory.add_user("ada", **sent)

        shown = directory.get(f"/Users/{made['id']}").get_json()
        assert {name: shown[name] for name in sent} == sent

    @pytest.mark.parametrize("reference", ["http://[", "//[", "Users/", "a:b", ""])
    def test_keeps_a_reference_that_is_no_url(self, directory, reference):
        manager = {"value": "m-1", "$ref": reference}

        made = directory.add_user("ada", **{ENTERPRISE: {"manager": manager}})

        found = directory.get("/Users").get_json()["Resources"]
        assert found == [made]
        assert directory.get(f"/Users/{made['id']}").status_code == 200

    def test_stores_no_password(self, directory):
        directory.add_user("ada", password="Tr0ub4dor", emails=[])

        assert "Tr0ub4dor" not in repr(rows(ScimUser)) + repr(rows(User)) + repr(rows(AuditEvent))

    def test_links_the_user_with_the_id_of_the_identity_provider(self, directory, tenant):
        user = create_user(tenant, idp_user_id="okta-1", meta_data={"color": "blue"})
        membership = create_membership(tenant, user, role="admin")

        made = directory.add_user("ada", **ADA)

        changed = row(User, id=user.id)
        assert made["id"] == str(user.id)
        assert (changed.first_name, changed.email) == ("Ada", "Ada@Example.com")
        assert changed.meta_data == {"color": "blue"}
        assert row(Membership, id=membership.id).role == "admin"

    def test_links_the_user_with_the_address_of_this_tenant_only(self, directory, tenant):
        create_user(create_tenant(), email="ada@example.com")
        user = create_user(tenant, email="ADA@example.com", idp_user_id="someone")

        made = directory.add_user("ada", emails=[{"value": "ada@example.com"}])

        assert made["id"] == str(user.id)
        assert row(User, id=user.id).idp_user_id == "someone"
        assert membership_of(user.id).role == "member"

    def test_of_two_at_once_makes_one(self, directory):
        body = {"schemas": [USER], "userName": "ada@example.com", **ADA}

        answers = at_once([lambda: directory.post("/Users", body)] * 4)

        assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409]
        assert len(rows(ScimUser)) == 1

    def test_of_two_connections_at_once_makes_one_user(self, app, directory, tenant):
        other = Directory(app, create_connection(tenant, name="Other")[1])
        body = {"schemas": [USER], "userName": "ada@example.com", **ADA}

        answers = at_once([lambda one=one: one.post("/Users", body) for one in (directory, other)])

        assert sorted(answer.status_code for answer in answers) == [201, 409]
        assert len(rows(User, idp_user_id="okta-1")) == 1

    def test_beyond_the_seats_is_forbidden_without_a_type(self, directory, tenant):
        create_limits("free", limit_flag("seats", 1))

        answer = directory.post("/Users", {"schemas": [USER], "userName": "ada"})

        error = answer.get_json()
        assert (answer.status_code, "scimType" in error) == (403, False)
        assert error["detail"].startswith("No seat is free")
        assert rows(ScimUser) == []

    def test_whose_erasure_is_requested_is_forbidden_without_a_type(self, directory, tenant):
        user = create_user(tenant, idp_user_id="ada", is_active=False)
        values = {"user_id": user.id, "requested_by": "x", "is_everywhere": False}
        save(UserErasure, tenant_id=tenant.id, **values)

        answer = directory.post("/Users", {"schemas": [USER], "userName": "ada"})

        assert (answer.status_code, "scimType" in answer.get_json()) == (403, False)
        assert rows(ScimUser) == []

    @pytest.mark.parametrize("body", [b"{", b"[" * 200 + b"]" * 200, b"\xff", []])
    def test_refuses_what_is_no_json_object(self, directory, body):
        answer = directory.post("/Users", body)

        assert (answer.status_code, answer.get_json()["scimType"]) == (400, "invalidSyntax")
        assert answer.get_json()["schemas"] == [ERROR]

    @pytest.mark.parametrize(
        "values",
        [
            {}, *({"userName": name} for name in ("", " ", 5, "a\0", "a" * 1001, "\ud800")),
            {"userName": "a", "active": "perhaps"}, {"userName": "a", "emails": "a@b.co"},
        ],
    )  # fmt: skip
    def test_refuses_what_is_not_valid(self, directory, values):
        answer = directory.post("/Users", {"schemas": [USER], **values})

        assert answer.status_code == 400
        assert answer.get_json()["scimType"] in ("invalidValue", "invalidSyntax")


class TestActive:
    def test_false_ends_the_membership_at_once(self, api, directory):
        made = directory.add_user("ada", **ADA)
        token = user_token(row(User, id=made["id"]))

        before = api.get("/v1/users", token=token)
        directory.patch(f"/Users/{made['id']}", replace("active", False))

        assert before.status_code == 200
        assert api.get("/v1/users", token=token).status_code == 403
        assert row(User, id=made["id"]).is_active
        assert directory.get(f"/Users/{made['id']}").get_json()["active"] is False

    def test_can_end_the_user_as_well(self, app, tenant, owner):
        directory = Directory(app, create_connection(tenant, deactivate="user")[1])
        made = directory.add_user("ada")

        directory.patch(f"/Users/{made['id']}", replace("active", False))
        ended = row(User, id=made["id"]).is_active
        directory.patch(f"/Users/{made['id']}", replace("active", True))

        assert (ended, row(User, id=made["id"]).is_active) == (False, True)
        assert membership_of(made["id"]).is_active

    def test_is_read_from_the_membership(self, directory):
        made = directory.add_user("ada")
        before = directory.get(f"/Users/{made['id']}")

        execute(
            "UPDATE memberships SET is_active = false, version = version + 1 WHERE role = 'member'"
        )
        after = directory.get(f"/Users/{made['id']}")

        assert after.get_json()["active"] is False
        assert after.headers["ETag"] != before.headers["ETag"]

    def test_of_all_owners_at_once_leaves_one(self, directory, tenant, owner):
        other = create_member(tenant, role="owner", email="other@example.com")[0]
        ids = [
            directory.add_user("first", externalId=owner[0].idp_user_id)["id"],
            directory.add_user("other@example.com")["id"],
        ]
        assert ids == [str(owner[0].id), str(other.id)]
        end = replace("active", False)

        answers = at_once([lambda one=one: directory.patch(f"/Users/{one}", end) for one in ids])

        assert sorted(answer.status_code for answer in answers) == [200, 409]
        assert [membership_of(one).is_active for one in ids].count(True) == 1

    def test_of_an_owner_needs_a_connection_that_acts_as_one(self, app, tenant, owner):
        second, _, _ = create_member(tenant, role="owner")
        directory = Directory(app, create_connection(tenant, acts_as="admin")[1])
        made = directory.add_user("second", externalId=second.idp_user_id)

        answer = directory.patch(f"/Users/{made['id']}", replace("active", False))

        assert answer.status_code == 403
        assert membership_of(second.id).is_active

    def test_is_kept_by_a_put_without_it(self, directory):
        made = directory.add_user("ada", active=False)

        directory.put(f"/Users/{made['id']}", {"schemas": [USER], "userName": "ada"})

        assert not membership_of(made["id"]).is_active


class TestReplace:
    def test_changes_the_user(self, directory):
        made = directory.add_user("ada", **ADA)
        body = {
            "schemas": [USER],
            "userName": "augusta",
            "name": {"givenName": "Augusta"},
            "emails": [{"value": "augusta@example.com"}],
        }

        answer = directory.put(f"/Users/{made['id']}", body)

        user = row(User, id=made["id"])
        assert answer.status_code == 200
        assert (user.first_name, user.last_name, user.email) == (
            "Augusta",
            "",
            "augusta@example.com",
        )
        assert user.idp_user_id == "okta-1"
        assert directory.find('userName eq "ada"')["totalResults"] == 0
        assert directory.find('userName eq "AUGUSTA"')["totalResults"] == 1

    def test_with_what_is_there_changes_nothing(self, directory):
        made = directory.add_user("ada", **ADA)
        audited = len(rows(AuditEvent))

        answer = directory.put(
            f"/Users/{made['id']}", {"schemas": [USER], "userName": "ada", **ADA}
        )

        assert answer.headers["ETag"] == made["meta"]["version"]
        assert row(User, id=made["id"]).version == 1
        assert len(rows(AuditEvent)) == audited

    def test_ignores_roles(self, directory):
        made = directory.add_user("ada", roles=[{"value": "owner"}])

        directory.put(
            f"/Users/{made['id']}",
            {"schemas": [USER], "userName": "ada", "roles": [{"value": "owner"}]},
        )

        assert membership_of(made["id"]).role == "member"


class TestDelete:
    def test_leaves_a_tombstone_without_personal_data_until_the_person_comes_back(self, directory):
        made = directory.add_user("ada", **ADA)
        path = f"/Users/{made['id']}"

        statuses = [
            request(path).status_code
            for request in (directory.delete, directory.get, directory.delete)
        ]

        tombstone = row(ScimUser)
        assert statuses == [204, 404, 404]
        assert not membership_of(made["id"]).is_active
        assert directory.find('userName eq "ada"')["totalResults"] == 0
        assert tombstone.deleted_at is not None
        assert (tombstone.user_name, tombstone.external_id, tombstone.attributes) == ("", "", {})
        assert directory.add_user("ada", **ADA)["id"] == made["id"]
        assert membership_of(made["id"]).is_active


class TestConditions:
    def test_if_match_is_checked(self, directory):
        made = directory.add_user("ada")
        path, tag = f"/Users/{made['id']}", made["meta"]["version"]

        stale = directory.patch(path, replace("title", "x"), headers={"If-Match": 'W/"9.9"'})
        first = directory.patch(path, replace("title", "x"), headers={"If-Match": tag})
        second = directory.delete(path, headers={"If-Match": tag})

        assert [stale.status_code, first.status_code, second.status_code] == [412, 200, 412]
        assert stale.get_json()["schemas"] == [ERROR]

    def test_of_writers_with_one_tag_one_wins(self, directory):
        made = directory.add_user("ada")

        def write(number):
            headers = {"If-Match": made["meta"]["version"]}
            operation = replace("title", f"{number}")
            return directory.patch(f"/Users/{made['id']}", operation, headers=headers).status_code

        assert sorted(at_once([partial(write, number) for number in range(4)])) == [200, *[412] * 3]

    def test_writers_without_a_tag_all_succeed(self, directory):
        path, names = f"/Users/{directory.add_user('ada')['id']}", ["title", "nickName", "locale"]

        answers = at_once([partial(directory.patch, path, replace(name, "x")) for name in names])

        shown = directory.get(path).get_json()
        assert [answer.status_code for answer in answers] == [200] * 3
        assert [shown[name] for name in names] == ["x"] * 3

    def test_a_known_tag_is_304(self, directory):
        made = directory.add_user("ada")

        answer = directory.get(
            f"/Users/{made['id']}", headers={"If-None-Match": made["meta"]["version"]}
        )

        assert (answer.status_code, answer.data) == (304, b"")


class TestAttributes:
    def test_are_chosen(self, directory):
        made = directory.add_user("ada", **ADA)

        only = directory.get(f"/Users/{made['id']}", query_string={"attributes": "name.givenName"})
        without = directory.get(
            f"/Users/{made['id']}", query_string={"excludedAttributes": "emails,name"}
        )

        assert only.get_json().keys() == {"schemas", "id", "name"}
        assert only.get_json()["name"] == {"givenName": "Ada"}
        assert not {"emails", "name"} & without.get_json().keys()


class TestPages:
    @pytest.fixture
    def names(self, directory):
        for number in range(7):
            directory.add_user(f"user{number}")
        return [f"user{number}" for number in range(7)]

    def test_by_index(self, directory, names):
        pages = [
            directory.get("/Users", query_string={"startIndex": start, "count": 3}).get_json()
            for start in (1, 4, 7, 10)
        ]

        found = [[one["userName"] for one in page.get("Resources", [])] for page in pages]
        assert found == [names[:3], names[3:6], names[6:], []]
        assert {page["totalResults"] for page in pages} == {7}
        assert [page["startIndex"] for page in pages] == [1, 4, 7, 10]

    def test_of_another_search_is_no_cursor(self, directory, names):
        query = {"cursor": "", "count": 3}
        cursor = directory.get("/Users", query_string=query).get_json()["nextCursor"]

        for other in ({"filter": 'userName sw "u"'}, {"cursor": "AAAA"}):
            query = {"cursor": cursor, "count": 3, **other}
            answer = directory.get("/Users", query_string=query)
            assert answer.status_code == 400
            assert answer.get_json()["scimType"] == "invalidCursor"


class TestSorting:
    @pytest.fixture
    def made(self, directory):
        """Users in an order that is none of their names' nor of their last changes."""
        made = [directory.add_user(name) for name in ("cara", "Ada", "eve", "bob", "dan")]
        directory.patch(f"/Users/{made[1]['id']}", {"op": "replace", "path": "title", "value": "x"})
        return made

    def names(self, directory, **query):
        """The names of all pages of two."""
        found, cursor = [], ""
        while cursor is not None:
            page = directory.get("/Users", query_string={"cursor": cursor, "count": 2, **query})
            found += [one["userName"] for one in page.get_json()["Resources"]]
            cursor = page.get_json().get("nextCursor")
        return found

    @pytest.mark.parametrize(
        ("key", "expected"),
        [
            ("userName", ["Ada", "bob", "cara", "dan", "eve"]),
            ("meta.created", ["cara", "Ada", "eve", "bob", "dan"]),
            ("meta.lastModified", ["cara", "eve", "bob", "dan", "Ada"]),
        ],
    )
    def test_by_each_key_in_both_directions(self, directory, made, key, expected):
        assert self.names(directory, sortBy=key) == expected
        assert self.names(directory, sortBy=key, sortOrder="descending") == expected[::-1]

    def test_beside_a_filter_and_by_index(self, directory, made):
        query = {"sortBy": "userName", "filter": 'userName co "a"'}

        page = directory.get(
            "/Users", query_string={**query, "startIndex": 2, "count": 2}
        ).get_json()

        assert self.names(directory, **query) == ["Ada", "cara", "dan"]
        assert [one["userName"] for one in page["Resources"]] == ["cara", "dan"]

    def test_of_groups(self, directory):
        for name in ("b", "a"):
            directory.add_group(name)

        page = directory.get("/Groups", query_string={"sortBy": "displayName"}).get_json()

        assert [one["displayName"] for one in page["Resources"]] == ["a", "b"]

    @pytest.mark.parametrize("key", ["name.familyName", "emails", "active", "nothing", "id"])
    def test_by_anything_else_is_refused(self, directory, key):
        answer = directory.get("/Users", query_string={"sortBy": key})

        assert (answer.status_code, answer.get_json()["scimType"]) == (400, "invalidPath")


class TestSchemas:
    def test_describe_every_attribute(self, directory):
        def undescribed(attributes, place=""):
            for one in attributes:
                name = place + one["name"]
                if not one.get("description"):
                    yield name
                yield from undescribed(one.get("subAttributes", ()), f"{name}.")

        schemas = directory.get("/Schemas").get_json()["Resources"]

        found = [name for one in schemas for name in undescribed(one["attributes"])]
        assert found == ["members.display"]  # scim2-models has no text for it


class TestSuspendedTenant:
    @pytest.fixture
    def user_id(self, directory, tenant):
        made = directory.add_user("ada", **ADA)
        directory.add_user("bob", active=False)
        execute("UPDATE tenants SET is_active = false WHERE id = :id", id=tenant.id)
        return made["id"]

    @pytest.mark.parametrize("method", ["PATCH", "PUT"])
    def test_may_end_people(self, directory, user_id, method):
        body = {"schemas": [USER], "userName": "ada", "active": False, **ADA}
        if method == "PATCH":
            body = patch_body(replace("active", "False"))

        assert directory.request(method, f"/Users/{user_id}", body).status_code == 200
        assert not membership_of(user_id).is_active

    def test_may_do_nothing_else(self, directory, user_id):
        answers = [
            directory.get("/Users"),
            directory.get(f"/Users/{user_id}"),
            directory.get("/ServiceProviderConfig"),
            directory.get("/Schemas"),
            directory.post("/Users", {"schemas": [USER], "userName": "eve"}),
            directory.post("/Users/.search", {}),
            directory.patch(f"/Users/{user_id}", replace("title", "x")),
            directory.put(f"/Users/{user_id}", {"schemas": [USER], "userName": "ada"}),
        ]

        assert [answer.status_code for answer in answers] == [403] * len(answers)
        assert all(answer.get_json()["schemas"] == [ERROR] for answer in answers)


class TestErrors:
    """Whatever goes wrong below /scim has SCIM's body."""

    @pytest.mark.parametrize(
        ("method", "path", "status"),
        [
            *(("GET", f"/scim{path}", 404) for path in ("", "/", "/v1/Users", "/v2/Nothing")),
            *(("GET", f"/scim/v2/Users/{name}", 404) for name in ("1/2", "%00", "%ff")),
            *((name, "/scim/v2/Users", 405) for name in ("DELETE", "TRACE", "PROPFIND", "OPTIONS")),
            ("GET", "/scim/v2/Me", 501),
        ],
    )
    def test_is_scims(self, app, connection, method, path, status):
        headers = {"Authorization": f"Bearer {connection[1]}"}

        answer = app.test_client().open(path, method=method, headers=headers)

        assert (answer.status_code, answer.content_type) == (status, "application/scim+json")
        assert answer.get_json()["schemas"] == [ERROR]
        assert answer.get_json()["status"] == str(status)
        assert status != 405 or answer.headers["Allow"] == "GET, POST"

    def test_of_a_token_elsewhere_is_401(self, api, connection):
        assert api.get("/v1/users", token=connection[1]).status_code == 401

    @pytest.mark.parametrize(
        ("body", "media_type", "status"),
        [(b" " * (1024 * 1024 + 1), "application/scim+json", 413), (b"a=b", "text/plain", 415)],
        ids=["large", "another type"],
    )
    def test_of_a_body_is_scims(self, directory, body, media_type, status):
        answer = directory.post("/Users", body, content_type=media_type)

        assert (answer.status_code, answer.get_json()["schemas"]) == (status, [ERROR])

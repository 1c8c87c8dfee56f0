"""What a directory can cost: filters, members and texts are bounded, and the bounds hold."""

import random
import time

import pytest

from app.memberships.models import Membership
from app.scim.models import ScimEmail, ScimMember, ScimUser
from tests.concurrency import at_once
from tests.database import execute, query, rows
from tests.factories import create_limits, limit_flag
from tests.scim.directory import GROUP, PATCH_OP, USER, replace

BULK = "urn:ietf:params:scim:api:messages:2.0:BulkRequest"
MAX_SECONDS = 5  # of the processor in a request
RANDOM = random.Random(1)


def incompressible(length):
    """Characters of four bytes that PostgreSQL cannot compress."""
    return "".join(chr(RANDOM.randrange(0x20000, 0x2A000)) for _ in range(length))


class TestFilters:
    @pytest.mark.parametrize(
        "scim_filter",
        [
            "(" * 1500 + 'userName eq "a"' + ")" * 1500,
            "not (" * 800 + 'userName eq "a"' + ")" * 800,
            " or ".join(['userName eq "a"'] * 200),
            " and ".join(['emails[type eq "work"]'] * 150),
            " or ".join(['emails co "a"'] * 200),
            "emails[" + " or ".join(['value co "a"'] * 200) + "]",
            'userName co "' + "a" * 4000 + '"',
            'userName eq "' + "a" * 100_000 + '"',
        ],
    )
    def test_end_soon(self, directory, scim_filter):
        directory.get("/Users")  # the first request loads the library
        started = time.thread_time()

        answer = directory.post("/Users/.search", {"filter": scim_filter})

        assert answer.status_code in (200, 400), answer.text[:300]
        assert time.thread_time() - started < MAX_SECONDS


class TestBodies:
    """Without bounds each of these takes from 3 s to minutes."""

    @pytest.mark.parametrize(
        ("method", "path", "name", "entry", "status"),
        [
            ("POST", "/Users", "emails", "{}", 400),
            ("POST", "/Users", "phoneNumbers", "1", 400),
            ("PUT", "/Users/{user}", "x509Certificates", "{}", 400),
            ("POST", "/Groups", "members", "{}", 400),
            ("POST", "/Groups", "members", "1", 400),
            ("PATCH", "/Users/{user}", "Operations", "{}", 413),
            ("PATCH", "/Users/{user}", "Operations", '{"op": "remove", "path": "title"}', 413),
            ("POST", "/Bulk", "Operations", "{}", 413),
            ("POST", "/Bulk", "operations", '{"method": "DELETE", "path": "/Users/x"}', 413),
            ("POST", "/Users/.search", "attributes", '"userName"', 400),
        ],
    )
    def test_with_long_lists_are_refused_soon(self, directory, method, path, name, entry, status):
        user = directory.add_user("ada")["id"]
        number = 15_000 if ":" in entry else 1_000_000 // (len(entry) + 1)
        body = f'{{"{name}": [{",".join([entry] * number)}]}}'.encode()
        started = time.thread_time()

        answer = directory.request(method, path.format(user=user), body)

        assert answer.status_code == status, answer.text[:300]
        assert time.thread_time() - started < MAX_SECONDS

    @pytest.mark.parametrize(
        "value",
        [
            {f"name{number}": 1 for number in range(201)},
            {"emails": [{"value": "a", "type": f"{number}"} for number in range(101)]},
            {"x509Certificates": [[1] * 101]},
        ],
        ids=["names", "entries", "entries of a list"],
    )
    def test_with_many_values_are_refused(self, directory, value):
        user = directory.add_user("ada")["id"]
        data = {"schemas": [USER], "userName": "bob", **value}
        bulk = {"method": "POST", "path": "/Users", "bulkId": "a", "data": data}

        for answer in (
            directory.post("/Users", data),
            directory.patch(f"/Users/{user}", {"op": "add", "value": value}),
            directory.post("/Bulk", {"schemas": [BULK], "Operations": [bulk]}),
        ):
            assert (answer.status_code, answer.get_json()["scimType"]) == (400, "invalidValue")

    def test_of_the_largest_group_are_read(self, directory):
        rest = {"type": "User", "display": "", "$ref": ""}
        members = [{"value": f"00000000-0000-7000-8000-{n:012x}", **rest} for n in range(10_000)]
        group = directory.add_group("All")["id"]

        answers = [
            directory.put(
                f"/Groups/{group}", {"schemas": [GROUP], "displayName": "A", "members": members}
            ),
            directory.patch(f"/Groups/{group}", {"op": "add", "path": "members", "value": members}),
        ]

        assert [answer.status_code for answer in answers] == [200, 200]

    def test_with_many_paths_are_refused(self, directory):
        user = directory.add_user("ada")["id"]
        value = {f'emails[type eq "{number}"].value': "a" for number in range(199)}

        answer = directory.patch(f"/Users/{user}", *[{"op": "add", "value": value}] * 11)

        assert answer.status_code == 400
        assert answer.get_json()["detail"] == "A request has at most 2000 paths."

    def test_of_a_user_are_stored_up_to_32_kib(self, directory):
        user = directory.add_user("ada", title="x" * 30_000)["id"]

        answers = [
            directory.patch(f"/Users/{user}", {"op": "add", "path": "locale", "value": "x" * 5000}),
            directory.post("/Users", {"schemas": [USER], "userName": "b", "title": "x" * 50_000}),
        ]

        assert [answer.get_json().get("scimType") for answer in answers] == ["invalidValue"] * 2
        assert len(rows(ScimUser)) == 1


class TestConditions:
    @pytest.mark.parametrize("name", ["If-Match", "If-None-Match"])
    def test_that_are_long_are_refused(self, directory, name):
        user = directory.add_user("ada")["id"]

        answer = directory.get(f"/Users/{user}", headers={name: "a" + " " * 30_000 + "a"})

        assert (answer.status_code, answer.get_json()["scimType"]) == (400, "invalidValue")


class TestParameters:
    @pytest.mark.parametrize("name", ["attributes", "excludedAttributes"])
    def test_have_at_most_a_hundred_attributes(self, directory, name):
        texts = [",".join(["title"] * number) for number in (100, 101)]

        answers = [directory.get("/Users", query_string={name: text}) for text in texts]

        assert [answer.status_code for answer in answers] == [200, 400]


class TestTexts:
    @pytest.mark.parametrize("length", [255, 512, 600, 1000, 1001, 5000])
    @pytest.mark.parametrize("name", ["userName", "externalId", "displayName", "email"])
    def test_of_any_length_are_stored_or_refused(self, directory, name, length):
        text = incompressible(length)
        sent = {"emails": [{"value": text}]} if name == "email" else {name: text}

        user = directory.post("/Users", {"schemas": [USER], "userName": "ada", **sent})
        group = directory.post("/Groups", {"schemas": [GROUP], "displayName": "G", **sent})

        for answer in (user, group):
            assert answer.status_code in (201, 400), answer.text[:300]

    def test_of_addresses_are_bounded_in_number(self, directory):
        emails = [{"value": f"{number}@example.com"} for number in range(101)]

        answer = directory.post("/Users", {"schemas": [USER], "userName": "ada", "emails": emails})
        directory.add_user("bob", emails=emails[:100])

        assert (answer.status_code, answer.get_json()["scimType"]) == (400, "invalidValue")
        assert len(rows(ScimEmail)) == 100

    def test_of_user_names_collide_without_case(self, directory):
        for one, other in (("Straße", "STRASSE"), ("ΣΑΣ", "σας"), ("café", "CAFE\u0301")):
            directory.add_user(one)

            answer = directory.post("/Users", {"schemas": [USER], "userName": other})

            assert (answer.status_code, answer.get_json()["scimType"]) == (409, "uniqueness")
            assert directory.find(f'userName eq "{other}"')["totalResults"] == 1


class TestMembers:
    @pytest.fixture
    def ids(self, directory, connection):
        """The ids of 10,000 people of the directory."""
        ada = directory.add_user("ada")["id"]
        for table, columns in (
            ("users", "idp_user_id, email, email_key"),
            ("scim_users", "user_name, user_name_key"),
        ):
            copy_rows(table, columns, ada, 9_999)
        return [str(one.id) for one in rows(ScimUser)]

    def test_of_a_group_can_be_ten_thousand(self, directory, ids):
        group = directory.add_group("All")["id"]
        body = {"op": "add", "path": "members", "value": [{"value": one} for one in ids]}
        started = time.thread_time()

        added = directory.patch(f"/Groups/{group}?excludedAttributes=members", body)

        assert added.status_code == 200, added.text[:300]
        assert time.thread_time() - started < 6 * MAX_SECONDS
        assert len(rows(ScimMember)) == 10_000

        removed = directory.patch(
            f"/Groups/{group}", {"op": "remove", "path": f'members[value eq "{ids[0]}"]'}
        )
        assert removed.status_code == 200
        assert len(rows(ScimMember)) == 9_999

        started = time.thread_time()
        many = [{"value": one} for one in ids[1:5001]]
        left = {"op": "remove", "path": "members", "value": many}
        assert directory.patch(f"/Groups/{group}", left).status_code == 200
        assert time.thread_time() - started < 6 * MAX_SECONDS
        assert len(rows(ScimMember)) == 4_999

    @pytest.fixture
    def group(self, directory):
        """A group of 700 members."""
        ada = directory.add_user("ada")["id"]
        for table, columns in (
            ("users", "idp_user_id, email, email_key"),
            ("scim_users", "user_name, user_name_key"),
        ):
            copy_rows(table, columns, ada, 699)
        return directory.add_group("All", *(str(one.id) for one in rows(ScimUser)))["id"]

    def test_of_a_large_group_are_changed_by_few_operations(self, directory, group):
        before = rows(ScimMember)
        operation = {"op": "remove", "path": 'members[display eq "x"]'}

        few = directory.patch(f"/Groups/{group}", *[operation] * 10)
        many = directory.patch(f"/Groups/{group}", *[operation] * 100)

        assert (few.status_code, many.status_code) == (200, 413)
        assert many.get_json()["detail"].startswith("The request goes through too many members")
        assert rows(ScimMember) == before

    def test_of_large_groups_are_bounded_in_a_bulk_request(self, directory, group):
        patches = [
            {"schemas": [PATCH_OP], "Operations": [replace("displayName", f"Name {number}")]}
            for number in range(100)
        ]
        operations = [
            {"method": "PATCH", "path": f"/Groups/{group}", "data": data} for data in patches
        ]

        answer = directory.post("/Bulk", {"schemas": [BULK], "Operations": operations})

        statuses = [one["status"] for one in answer.get_json()["Operations"]]
        changed = statuses.count("200")
        assert 20 < changed < 100
        assert statuses == ["200"] * changed + ["413"] * (100 - changed)
        name = directory.get(f"/Groups/{group}").get_json()["displayName"]
        assert name == f"Name {changed - 1}"

    def test_of_a_group_are_no_more(self, directory):
        members = [{"value": f"00000000-0000-7000-8000-{n:012x}"} for n in range(10_001)]

        answer = directory.post(
            "/Groups", {"schemas": [GROUP], "displayName": "All", "members": members}
        )

        assert (answer.status_code, answer.get_json()["scimType"]) == (400, "invalidValue")


def copy_rows(table, columns, row_id, times):
    """Copy a row so often, with other ids and other texts in these columns."""
    names = [one.name for one in columns_of(table)]
    changed = {name: f"{name} || number" for name in columns.split(", ")}
    changed["id"] = "('00000000-0000-7000-8000-' || lpad(number::text, 12, '0'))::uuid"
    values = ", ".join(changed.get(name, name) for name in names)
    execute(
        f"INSERT INTO {table} ({', '.join(names)}) SELECT {values}"
        f" FROM {table}, generate_series(1, :times) number WHERE id = :id",
        id=row_id,
        times=times,
    )


def columns_of(table):
    return query(
        "SELECT column_name AS name FROM information_schema.columns"
        " WHERE table_name = :name AND is_generated = 'NEVER'",
        name=table,
    )


class TestBulk:
    def send(self, directory, *operations):
        return directory.post("/Bulk", {"schemas": [BULK], "Operations": list(operations)})

    def group(self, bulk_id, *members):
        values = [{"value": f"bulkId:{one}"} for one in members]
        data = {"schemas": [GROUP], "displayName": bulk_id, "members": values}
        return {"method": "POST", "path": "/Groups", "bulkId": bulk_id, "data": data}

    def test_of_circular_references_ends(self, directory):
        answer = self.send(directory, self.group("a", "b"), self.group("b", "a"))

        assert answer.status_code in (200, 409), answer.text
        assert answer.status_code == 200 or answer.get_json()["status"] == "409"

    def test_of_one_id_twice_is_refused(self, directory):
        answer = self.send(directory, self.group("a"), self.group("a"))

        assert answer.status_code < 500


class TestSeats:
    def test_of_a_plan_hold_when_many_come_at_once(self, directory):
        create_limits("free", limit_flag("seats", 4))  # the owner has one
        bodies = [{"schemas": [USER], "userName": f"person{number}"} for number in range(8)]

        answers = at_once([lambda body=body: directory.post("/Users", body) for body in bodies])

        statuses = sorted(answer.status_code for answer in answers)
        assert statuses == [201] * 3 + [403] * 5
        assert len(rows(Membership)) == 4


class TestPatch:
    def patched(self, directory, group, *operations):
        answer = directory.patch(f"/Groups/{group['id']}", *operations)
        assert answer.status_code == 200, answer.text
        return {one["value"] for one in answer.get_json().get("members", ())}

    @pytest.fixture
    def ids(self, directory):
        return [directory.add_user(f"person{number}")["id"] for number in range(4)]

    def test_removes_members_in_every_form(self, directory, ids):
        one, two, three, four = ids
        for operations, left in (
            ([{"op": "remove", "path": f'members[value eq "{one}"]'}], {two, three, four}),
            ([{"op": "Remove", "path": f'MEMBERS[VALUE eq "{one.upper()}"]'}], {two, three, four}),
            ([{"op": "remove", "path": f'{GROUP}:members[value eq "{one}"]'}], {two, three, four}),
            (
                [{"op": "remove", "path": f'members[value eq "{one}" or value eq "{two}"]'}],
                {three, four},
            ),
            ([{"op": "remove", "path": f'members[not (value eq "{one}")]'}], {one}),
            (
                [{"op": "remove", "path": "members", "value": [{"value": one}, {"value": two}]}],
                {three, four},
            ),
            ([{"op": "remove", "path": "members"}], set()),
            (
                [
                    {"op": "remove", "path": "members"},
                    {"op": "add", "path": "members", "value": [{"value": one}]},
                    {"op": "add", "path": "members", "value": {"value": two}},
                    {"op": "remove", "path": f'members[value eq "{one}"]'},
                    {"op": "add", "value": {"members": [{"value": four}]}},
                ],
                {two, four},
            ),
        ):
            group = directory.add_group("All", *ids)

            assert self.patched(directory, group, *operations) == left, operations
            directory.delete(f"/Groups/{group['id']}")

    def test_of_nothing_keeps_the_version(self, directory, ids):
        group = directory.add_group("All", ids[0])

        answer = directory.patch(
            f"/Groups/{group['id']}", {"op": "remove", "path": f'members[value eq "{ids[1]}"]'}
        )

        assert answer.get_json()["meta"]["version"] == group["meta"]["version"]

    def test_has_at_most_a_hundred_operations(self, directory, ids):
        group = directory.add_group("All")
        add = [{"op": "add", "path": "members", "value": [{"value": one}]} for one in ids] * 50
        rename = [{"op": "replace", "path": "displayName", "value": "A"}] * 101

        assert self.patched(directory, group, *add) == set(ids)
        for path in (f"/Groups/{group['id']}", f"/Users/{ids[0]}"):
            answer = directory.patch(path, *rename)
            assert (answer.status_code, answer.get_json()["scimType"]) == (400, "tooMany")

    @pytest.mark.parametrize("place", ["path", "value", "filter", "bulk"])
    def test_with_a_long_expression_is_refused_before_it_is_parsed(self, directory, ids, place):
        text = "emails[" + " or ".join(['value eq "a"'] * 50_000) + "].value"
        operation = {
            "path": {"op": "add", "path": text, "value": "a"},
            "value": {"op": "add", "value": {text: "a"}},
        }.get(place, {"op": "add", "path": text, "value": "a"})
        started = time.thread_time()

        if place == "filter":
            answer = directory.post("/Users/.search", {"filter": text})
        elif place == "bulk":
            data = {"schemas": [PATCH_OP], "Operations": [operation]}
            one = {"method": "PATCH", "path": f"/Users/{ids[0]}", "data": data}
            answer = directory.post("/Bulk", {"schemas": [BULK], "Operations": [one]})
        else:
            answer = directory.patch(f"/Users/{ids[0]}", operation)

        assert (answer.status_code, answer.get_json()["scimType"]) == (400, "invalidFilter")
        assert time.thread_time() - started < MAX_SECONDS

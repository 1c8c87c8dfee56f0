"""What a directory can cost: filters, members and texts are bounded, and the bounds hold."""

import json
import random
import time
from itertools import product

import pytest

from app.memberships.models import Membership
from app.scim.models import ScimEmail, ScimMember, ScimUser
from tests.concurrency import at_once
from tests.database import execute, query, rows
from tests.factories import create_limits, limit_flag
from tests.scim.directory import (
    BULK,
    GROUP,
    PATCH_OP,
    USER,
    add_members,
    as_members,
    patch_body,
    remove_member,
    replace,
)

MAX_SECONDS = 10  # of the processor in a request
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
            directory.bulk(bulk),
        ):
            assert (answer.status_code, answer.get_json()["scimType"]) == (400, "invalidValue")

    def test_of_the_largest_group_are_read(self, directory):
        rest = {"type": "User", "display": "", "$ref": ""}
        members = [{"value": f"00000000-0000-7000-8000-{n:012x}", **rest} for n in range(10_001)]
        path, body = f"/Groups/{directory.add_group('All')['id']}", {"schemas": [GROUP]}

        def put(members):
            return directory.put(path, {**body, "displayName": "A", "members": members})

        most, more = members[:-1], put(members)
        added = directory.patch(path, {"op": "add", "path": "members", "value": most})

        assert [put(most).status_code, added.status_code] == [200, 200]
        assert (more.status_code, more.get_json()["scimType"]) == (400, "invalidValue")

    def test_with_many_paths_are_refused(self, directory):
        user = directory.add_user("ada")["id"]
        value = {f'emails[type eq "{number}"].value': "a" for number in range(199)}

        answer = directory.patch(f"/Users/{user}", *[{"op": "add", "value": value}] * 11)

        assert answer.status_code == 400
        assert answer.get_json()["detail"] == "A request has at most 2000 paths."

    @pytest.mark.parametrize("form", ["added", "selected", "removed", "named"])
    def test_of_a_bulk_request_end_soon_whatever_they_do_to_lists(self, directory, form):
        """Without bounds these take 10 s to minutes."""
        user = directory.add_user("ada")["id"]
        entries = [{"type": f"{number}", "country": "c"} for number in range(99)]
        comparisons = ['type eq ""'] * 24
        selection = f"addresses[{' or '.join(comparisons)} or type pr].country"
        removed = [{"type": "", "country": "", "region": "", "locality": ""}] * 99
        added = [[{"value": f"{one}-{number}"} for number in range(99)] for one in range(90)]
        operations = {
            "added": [{"op": "add", "path": "ims", "value": one} for one in added],
            "selected": [replace(selection, "c")] * 97,
            "removed": [{"op": "remove", "path": "addresses", "value": removed}] * 55,
            "named": [replace(None, {selection: "c"})] * 97,
        }
        data = {"schemas": [PATCH_OP], "Operations": operations[form]}
        patch = {"method": "PATCH", "path": f"/Users/{user}", "data": data}
        requests = [patch] * {"added": 2, "removed": 2}.get(form, 20)
        directory.patch(f"/Users/{user}", replace("addresses", entries))
        started = time.thread_time()

        answer = directory.post("/Bulk", {"schemas": [BULK], "Operations": requests})

        assert answer.status_code in (200, 400, 413), answer.text[:300]
        assert time.thread_time() - started < MAX_SECONDS

    def test_of_a_user_have_a_hundred_entries_of_an_attribute_at_most(self, directory):
        path = f"/Users/{directory.add_user('ada')['id']}"
        entries = [{"type": f"{number}", "country": "c"} for number in range(101)]

        answers = [
            directory.patch(path, {"op": "add", "path": "addresses", "value": entries[:100]}),
            directory.patch(path, {"op": "add", "path": "addresses", "value": entries[100:]}),
        ]

        assert [answer.status_code for answer in answers] == [200, 400]
        assert len(directory.get(path).get_json()["addresses"]) == 100

    def test_of_a_user_with_more_entries_from_before_can_be_changed(self, directory):
        user = directory.add_user("ada")["id"]
        entries = json.dumps([{"country": f"{number}"} for number in range(120)])
        execute(
            "UPDATE scim_users SET attributes ="
            f" jsonb_set(attributes::jsonb, '{{addresses}}', '{entries}')"
        )

        answer = directory.patch(f"/Users/{user}", replace("active", False))

        assert (answer.status_code, len(answer.get_json()["addresses"])) == (200, 120)

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
    def test_of_any_length_are_stored_or_refused(self, directory):
        names = ("userName", "externalId", "displayName", "email")
        for name, length in product(names, (255, 512, 600, 1000, 1001, 5000)):
            text, unique = incompressible(length), f"{name} {length}"
            sent = {"emails": [{"value": text}]} if name == "email" else {name: text}

            user = directory.post("/Users", {"schemas": [USER], "userName": unique, **sent})
            group = directory.post("/Groups", {"schemas": [GROUP], "displayName": unique, **sent})

            for answer in (user, group):
                assert answer.status_code in (201, 400), answer.text[:300]

    def test_of_a_hundred_addresses_are_stored(self, directory):
        directory.add_user("bob", emails=[{"value": f"{n}@example.com"} for n in range(100)])

        assert len(rows(ScimEmail)) == 100

    def test_of_user_names_collide_without_case(self, directory):
        for one, other in (("Straße", "STRASSE"), ("ΣΑΣ", "σας"), ("café", "CAFE\u0301")):
            directory.add_user(one)

            answer = directory.post("/Users", {"schemas": [USER], "userName": other})

            assert (answer.status_code, answer.get_json()["scimType"]) == (409, "uniqueness")
            assert directory.find(f'userName eq "{other}"')["totalResults"] == 1


class TestMembers:
    @pytest.fixture
    def people(self, directory):
        """Call it for the ids of so many people of the directory."""

        def create(number):
            ada = directory.add_user("ada")["id"]
            copy_rows("users", "idp_user_id, email, email_key", ada, number - 1)
            copy_rows("scim_users", "user_name, user_name_key", ada, number - 1)
            return [str(one.id) for one in rows(ScimUser)]

        return create

    def test_of_a_group_can_be_ten_thousand(self, directory, people):
        ids, group = people(10_000), directory.add_group("All")["id"]

        def patch(operation, left):
            started = time.thread_time()
            answer = directory.patch(f"/Groups/{group}?excludedAttributes=members", operation)
            assert answer.status_code == 200, answer.text[:300]
            assert time.thread_time() - started < 6 * MAX_SECONDS
            assert len(rows(ScimMember)) == left

        patch(add_members(*ids), 10_000)
        patch(remove_member(ids[0]), 9_999)
        patch({"op": "remove", "path": "members", "value": as_members(*ids[1:5001])}, 4_999)

    @pytest.fixture
    def group(self, directory, people):
        """A group of 700 members."""
        return directory.add_group("All", *people(700))["id"]

    def test_of_a_large_group_are_changed_by_few_operations(self, directory, group):
        before = rows(ScimMember)
        operation = {"op": "remove", "path": 'members[display eq "x"]'}

        few = directory.patch(f"/Groups/{group}", *[operation] * 10)
        many = directory.patch(f"/Groups/{group}", *[operation] * 100)

        assert (few.status_code, many.status_code) == (200, 413)
        assert many.get_json()["detail"].startswith("The request goes through too many entries")
        assert rows(ScimMember) == before

    def test_of_large_groups_are_bounded_in_a_bulk_request(self, directory, group):
        path = f"/Groups/{group}"
        names = [f"Name {number}" for number in range(100)]

        answer = directory.bulk(
            *(
                {"method": "PATCH", "path": path, "data": patch_body(replace("displayName", name))}
                for name in names
            )
        )

        statuses = [one["status"] for one in answer.get_json()["Operations"]]
        changed = statuses.count("200")
        assert 20 < changed < 100
        assert statuses == ["200"] * changed + ["413"] * (100 - changed)
        assert directory.get(path).get_json()["displayName"] == names[changed - 1]


def copy_rows(table, columns, row_id, times):
    """Copy a row so often, with other ids and other texts in these columns."""
    names = [one.name for one in columns_of(table)]
    changed = {name: f"{name} || number" for name in columns.split(", ")}
    changed["id"] = "('00000000-0000-7000-8000-' || lpad(number::text, 12, '0'))::uuid"
    values = ", ".join(changed.get(name, name) for name in names)
    # A plan that was made for an empty table would read all of it for each foreign key.
    execute(
        f"DISCARD PLANS; INSERT INTO {table} ({', '.join(names)}) SELECT {values}"
        f" FROM {table}, generate_series(1, :times) number WHERE id = :id",
        id=row_id,
        times=times,
    )


def columns_of(table):
    return query(
        "SELECT column_name AS name FROM information_schema.columns"
        " WHERE table_schema = 'public' AND table_name = :name AND is_generated = 'NEVER'",
        name=table,
    )


class TestBulk:
    def group(self, bulk_id, *members):
        values = as_members(*(f"bulkId:{one}" for one in members))
        data = {"schemas": [GROUP], "displayName": bulk_id, "members": values}
        return {"method": "POST", "path": "/Groups", "bulkId": bulk_id, "data": data}

    @pytest.mark.parametrize("references", ["a:b b:a", "a a"], ids=["circular", "one id twice"])
    def test_of_references_that_cannot_be_followed_ends(self, directory, references):
        groups = [self.group(*one.split(":")) for one in references.split()]

        answer = directory.bulk(*groups)

        assert answer.status_code in (200, 400, 409), answer.text


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
        either = f'value eq "{one}" or value eq "{two}"'
        remove_all = {"op": "remove", "path": "members"}
        for operations, left in (
            ([remove_member(one)], {two, three, four}),
            ([{"op": "Remove", "path": f'MEMBERS[VALUE eq "{one.upper()}"]'}], {two, three, four}),
            ([{"op": "remove", "path": f'{GROUP}:members[value eq "{one}"]'}], {two, three, four}),
            ([{"op": "remove", "path": f"members[{either}]"}], {three, four}),
            ([{"op": "remove", "path": f'members[not (value eq "{one}")]'}], {one}),
            ([{**remove_all, "value": as_members(one, two)}], {three, four}),
            ([remove_all], set()),
            (
                [
                    remove_all, add_members(one), remove_member(one),
                    {"op": "add", "path": "members", "value": {"value": two}},
                    {"op": "add", "value": {"members": as_members(four)}},
                ],
                {two, four},
            ),
        ):  # fmt: skip
            group = directory.add_group("All", *ids)

            assert self.patched(directory, group, *operations) == left, operations
            directory.delete(f"/Groups/{group['id']}")

    def test_has_at_most_a_hundred_operations(self, directory, ids):
        group = directory.add_group("All")
        add = [add_members(one) for one in ids] * 50
        rename = [{"op": "replace", "path": "displayName", "value": "A"}] * 101

        assert self.patched(directory, group, *add) == set(ids)
        for path in (f"/Groups/{group['id']}", f"/Users/{ids[0]}"):
            answer = directory.patch(path, *rename)
            assert (answer.status_code, answer.get_json()["scimType"]) == (400, "tooMany")

    @pytest.mark.parametrize("place", ["path", "value", "filter", "bulk"])
    def test_with_a_long_expression_is_refused_before_it_is_parsed(self, directory, ids, place):
        path, comparisons = f"/Users/{ids[0]}", " or ".join(['value eq "a"'] * 50_000)
        text = f"emails[{comparisons}].value"
        operation = {"op": "add", "path": text, "value": "a"}
        bulk = {"method": "PATCH", "path": path, "data": patch_body(operation)}
        started = time.thread_time()

        match place:
            case "filter":
                answer = directory.post("/Users/.search", {"filter": text})
            case "bulk":
                answer = directory.bulk(bulk)
            case "value":
                answer = directory.patch(path, {"op": "add", "value": {text: "a"}})
            case "path":
                answer = directory.patch(path, operation)

        assert (answer.status_code, answer.get_json()["scimType"]) == (400, "invalidFilter")
        assert time.thread_time() - started < MAX_SECONDS

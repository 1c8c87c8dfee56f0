"""Filters: what finds whom, and what is refused."""

from itertools import chain, product

import pytest

from tests.messages import sent_messages

SEARCH = "urn:ietf:params:scim:api:messages:2.0:SearchRequest"


@pytest.fixture
def people(directory):
    people = {
        "ada": {
            "externalId": "E-1",
            "displayName": "Ada Lovelace",
            "emails": [
                {"value": "Ada@Work.com", "type": "work", "primary": True},
                {"value": "ada@home.org", "type": "home"},
            ],
        },
        "Bob": {"externalId": "e-2", "displayName": "Bob 100%_", "active": False},
        "cyd": {"emails": [{"value": "cyd@work.com", "type": "other"}]},
    }
    return {name: directory.add_user(name, **values)["id"] for name, values in people.items()}


FOUND = {
    "ada": [
        'userName eq "ADA"', 'urn:ietf:params:scim:schemas:core:2.0:User:userName eq "ada"',
        'USERNAME Eq "ada"', 'userName sw "a"', 'externalId eq "E-1"',
        'displayName eq "ada lovelace"', "displayName pr and active eq true",
        'userName eq "ada" and (active eq false or externalId sw "E")',
        'emails eq "ada@work.com"', 'emails.value eq "ADA@home.org"',
        'emails[type eq "work"].value eq "ada@work.com"',
        'emails[type eq "work" and value ew "work.com"]', "emails[primary eq true]",
    ],
    "Bob cyd": [
        'userName ne "ada"', 'userName gt "ada"', 'externalId ne "E-1"',
        'not (displayName eq "ada lovelace")', 'emails.value ne "ada@home.org"',
    ],
    "Bob": [
        'userName co "B"', "active eq false", "active ne true", 'displayName co "100%_"',
    ],
    "cyd": [
        'userName ew "D"', "externalId eq null", 'emails.type eq "other"',
    ],
    "ada Bob": [
        'userName le "bob"', "externalId pr",
    ],
    "": [
        'userName eq "nobody"', 'userName eq "%"', 'userName eq "\' OR true --"',
        'externalId eq "e-1"', 'displayName co "0_%"',
        'emails[type eq "home"].value eq "ada@work.com"',
        'meta.lastModified lt "2020-01-01T00:00:00+01:00"',
    ],
    "ada cyd": [
        "active eq true", 'userName eq "ada" or userName eq "cyd"', 'emails co "work.com"',
        "emails pr", 'emails[not (type eq "work")]',
    ],
    "ada Bob cyd": [
        'meta.lastModified gt "2020-01-01T00:00:00Z"',
    ],
}  # fmt: skip
REFUSED = [
    'title eq "x"', 'name.familyName eq "x"', 'nothing eq "x"', 'userName eq "a" and title pr',
    'emails[nothing eq "x"]', "emails[value eq 5]", 'groups eq "x"',
    'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department eq "x"',
    "userName eq 5", "userName", "userName eq", "", "active gt true", 'active eq "maybe"',
    'meta.lastModified gt "yesterday"', 'userName eq "\\u0000"',
    'userName eq "' + "a" * 5000 + '"  and active eq true',
    "(" * 3000 + 'userName eq "a"' + ")" * 3000, "not (" * 300 + 'userName eq "a"' + ")" * 300,
    " and ".join(['not (emails[value ew "x"])'] * 130),
]  # fmt: skip


class TestUsers:
    def test_finds(self, directory, people):
        by_id = {"cyd": [f'id eq "{people["cyd"]}"']}
        for names, filters in chain(FOUND.items(), by_id.items()):
            for scim_filter in filters:
                found = directory.find(scim_filter)

                shown = [one["userName"] for one in found.get("Resources", [])]
                assert shown == names.split(), scim_filter
                assert found["totalResults"] == len(shown)

    def test_refuses(self, directory, people):
        for scim_filter in REFUSED:
            answer = directory.get("/Users", query_string={"filter": scim_filter})

            assert answer.status_code == 400, scim_filter
            assert answer.get_json()["scimType"] == "invalidFilter"

    def test_by_name_is_one_statement(self, directory, people):
        directory.find('userName eq "ada"')

        with sent_messages() as sent:
            directory.find('userName eq "ada"')

        names = [one for one in sent if "scim_users" in one]
        assert len(names) == 1


class TestGroups:
    @pytest.fixture
    def groups(self, directory, people):
        return {
            "Engineers": directory.add_group("Engineers", people["ada"], people["cyd"]),
            "Empty": directory.add_group("Empty", externalId="g-2"),
        }

    def test_finds(self, directory, groups, people):
        matches = {
            'displayName eq "ENGINEERS"': ["Engineers"],
            'displayName sw "e"': ["Engineers", "Empty"],
            'externalId eq "g-2"': ["Empty"],
            f'members.value eq "{people["ada"]}"': ["Engineers"],
            f'members[value eq "{people["Bob"]}"]': [],
            "members pr": ["Engineers"],
            f'id eq "{groups["Empty"]["id"]}"': ["Empty"],
        }

        for scim_filter, names in matches.items():
            found = directory.find(scim_filter, at="/Groups")
            assert [one["displayName"] for one in found.get("Resources", [])] == names

    def test_refuses(self, directory, groups):
        answer = directory.get("/Groups", query_string={"filter": 'members.display eq "x"'})

        assert (answer.status_code, answer.get_json()["scimType"]) == (400, "invalidFilter")


class TestRoot:
    """Searches of users and groups at once: users come first."""

    @pytest.fixture
    def ids(self, directory):
        users = [directory.add_user(name)["id"] for name in ("ada", "bob")]
        return [*users, *(directory.add_group(name)["id"] for name in ("G", "H"))]

    def test_has_pages_over_both(self, directory, ids):
        for first, number in product((1, 2, 3, 4, 5, 100), (0, 1, 2, 3, 100)):
            body = {"schemas": [SEARCH], "startIndex": first, "count": number}

            page = directory.post("/.search", body).get_json()

            assert page["totalResults"] == 4
            found = [one["id"] for one in page.get("Resources", ())]
            assert found == ids[first - 1 : first - 1 + number], (first, number)

    def test_filters_by_what_both_have(self, directory, ids):
        assert directory.find(f'id eq "{ids[2]}"', at="/")["Resources"][0]["displayName"] == "G"
        assert directory.find('externalId eq "nobody"', at="/")["totalResults"] == 0

    def test_refuses_what_one_does_not_have(self, directory, ids):
        answer = directory.get("/", query_string={"filter": 'userName eq "ada"'})

        assert answer.status_code == 400
        assert answer.get_json()["scimType"] == "invalidFilter"

    def test_refuses_a_cursor(self, directory, ids):
        assert directory.get("/", query_string={"cursor": ""}).status_code == 501

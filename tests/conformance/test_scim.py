"""What real directories send: each file of ``scim/`` is a case of requests, answers and the state.

``{0}`` is the id of the first resource that the case creates. An answer has at least what the case
says; null is an attribute that it does not have. The state is that of the people by their address.
"""

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from app.memberships.models import Membership
from app.users.models import User
from tests.database import row, rows
from tests.factories import create_member, create_tenant
from tests.scim.directory import ERROR, Directory, create_connection

CASES = sorted(Path(__file__).parent.joinpath("scim").glob("*.json"))


def test_there_are_cases_of_each_directory():
    providers = {json.loads(path.read_text())["provider"] for path in CASES}

    assert len(CASES) > 20
    assert providers == {"okta", "entra", "onelogin", "google", "jumpcloud", "generic"}


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_is_answered_as_recorded(app, path):
    case = json.loads(path.read_text())
    tenant = create_tenant()
    owner, _, _ = create_member(tenant, role="owner")
    directory = Directory(app, create_connection(tenant, provider=case["provider"])[1])
    made: list[str] = []

    for number, step in zip(count(1), case["steps"]):
        sent = with_ids(step["request"], made)
        answer = directory.request(
            sent["method"], sent["path"], sent.get("body"), query_string=sent.get("query")
        )
        body = answer.get_json() if answer.data else {}
        assert answer.status_code == step["status"], (number, answer.text)
        assert answer.status_code < 400 or body["schemas"] == [ERROR]
        assert lacks(body, with_ids(step.get("answer", {}), made)) == [], number
        if answer.status_code == 201:
            made.append(body["id"])

    people = {user.email: user for user in rows(User) if user.id != owner.id}
    assert people.keys() == case["state"].keys()
    for email, values in case["state"].items():
        user = people[email]
        both = {**user._asdict(), **row(Membership, user_id=user.id)._asdict()}
        assert {name: both[name] for name in values} == values


def with_ids(value: Any, made: list[str]) -> Any:
    """The value with the ids of what the case has created."""
    text = json.dumps(value)
    for number, one in enumerate(made):
        text = text.replace(f"{{{number}}}", one)
    return json.loads(text)


def lacks(found: Any, expected: Any, place: str = "") -> list[str]:
    """Where ``found`` does not have what is expected."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return [
            fault
            for name, value in expected.items()
            for fault in lacks(found.get(name), value, f"{place}/{name}")
        ]
    if isinstance(expected, list) and isinstance(found, list) and len(found) == len(expected):
        pairs = zip(found, expected, strict=True)
        return [fault for one, other in pairs for fault in lacks(one, other, f"{place}[]")]
    return [] if found == expected else [f"{place}: {found!r}"]

"""AuthZEN's interop vectors: 272 decisions and searches.

They are not part of the repository. ``AUTHZEN_VECTORS`` names a folder that has the folder
``interop`` of https://github.com/openid/authzen, or these files of it.
"""

import json
import os
from pathlib import Path

import pytest

from app.auth.permissions import Permission
from tests.authzen.world import assign, create_permission, create_resource, create_role
from tests.factories import create_api_key, create_member, create_tenant

FOLDER = os.environ.get("AUTHZEN_VECTORS", "")
pytestmark = pytest.mark.skipif(not FOLDER, reason="AUTHZEN_VECTORS names no folder")

SEARCH_DEMO = "authzen-search-demo/test-harness/src/{}/results.json"
PATHS = {
    **{f"search {kind}": SEARCH_DEMO.format(kind) for kind in ("subject", "resource", "action")},
    "identity provider": "authzen-idp/test-harness/src/results.json",
    "gateway": "authzen-api-gateways/test-harness/test/decisions.json",
    "todo": "authzen-todo-backend/test/decisions-authorization-api-1_0-02.json",
}
COUNTS = {
    "search subject": 60,
    "search resource": 18,
    "search action": 120,
    "identity provider": 6,
    "gateway": 25,
    "todo": 43,
}
PEOPLE = {
    "alice": ("manager", "Sales"),
    "bob": ("employee", "Legal"),
    "carol": ("contractor", "Legal"),
    "dan": ("manager", "Finance"),
    "erin": ("employee", "Finance"),
    "felix": ("contractor", "Accounting"),
}
DEPARTMENTS = [
    "Legal",
    "Legal",
    "Legal",
    "Accounting",
    "Legal",
    "Accounting",
    "Sales",
    "Legal",
    "Accounting",
    "Sales",
    "Accounting",
    "Legal",
    "Sales",
    "Accounting",
    "Finance",
    "Legal",
    "Legal",
    "Accounting",
    "Legal",
    "Accounting",
]
RICK, MORTY, SUMMER, BETH, JERRY = (
    f"CiRmZD{letter}2MTRkMy1jMzlhLTQ3ODEtYjdiZC04Yjk2ZjVhNTEwMGQSBWxvY2Fs"
    for letter in ("A", "E", "I", "M", "Q")
)
TODO = "7240d0db-8ff0-41ec-98b2-34a096273b9"
OWNERS = {"2": RICK, "1": MORTY, "3": SUMMER, "4": BETH, "5": JERRY}
TODO_ROLES = {
    RICK: ("editor", "admin", "evil_genius"),
    MORTY: ("editor",),
    SUMMER: ("editor",),
    BETH: ("reader",),
    JERRY: ("reader",),
}


def cases(name):
    """The requests of a file with what is expected, and whether they are questions or searches."""
    found = json.loads((Path(FOLDER) / "interop" / PATHS[name]).read_text())
    return [(kind, one["request"], one["expected"]) for kind, each in found.items() for one in each]


def create_records():
    """A person may do all with their own records, and view those of their department. A manager may
    view all records, and edit those of the department."""
    tenant = create_tenant()
    for key in ("view", "edit", "delete"):
        create_permission(key)
    reader = create_role(tenant, "reader", ["view"])
    editor = create_role(tenant, "editor", ["edit"], inherits="reader")
    keeper = create_role(tenant, "keeper", ["delete"], inherits="editor")
    departments = {name: create_resource(tenant, "department", name) for name in {*DEPARTMENTS}}
    members = {}
    for name, (role, department) in PEOPLE.items():
        _, member, _ = create_member(tenant, "viewer", idp_user_id=name)
        members[name] = {"membership_id": member.id}
        assign(
            tenant,
            editor if role == "manager" else reader,
            departments[department],
            **members[name],
        )
        if role == "manager":
            assign(tenant, reader, **members[name])
    for place, department in enumerate(DEPARTMENTS):
        record = create_resource(tenant, "record", str(101 + place), departments[department])
        assign(tenant, keeper, record, **members[[*PEOPLE][place % 6]])
    return tenant


def create_todos():
    """Editors may change their own todos; others may change all, or delete all."""
    tenant = create_tenant()
    keys = [*(f"can_{key}" for key in ("read_user", "read_todos", "create_todo", "update_todo"))]
    for key in (*keys, "can_delete_todo", "get", "post", "put", "delete"):
        create_permission(key)
    roles = {
        key: create_role(tenant, key, permissions, inherits=inherits)
        for key, permissions, inherits in (
            ("reader", ["can_read_user", "can_read_todos", "get"], None),
            ("editor", ["can_create_todo", "post", "put", "delete"], "reader"),
            ("admin-of-todos", ["can_delete_todo"], "editor"),
            ("evil_genius", ["can_update_todo"], "editor"),
            ("owner-of-todo", ["can_update_todo", "can_delete_todo"], None),
        )
    }
    for place in ("/todos", "/todos/{todoId}", "/users/{userId}"):
        create_resource(tenant, "route", place)
    for name, keys in TODO_ROLES.items():
        _, member, _ = create_member(tenant, "viewer", idp_user_id=name)
        for key in keys:
            role = roles["admin-of-todos" if key == "admin" else key]
            assign(tenant, role, membership_id=member.id)
        for number, owner in OWNERS.items():
            if owner == name and "editor" in keys:
                todo = create_resource(tenant, "todo", TODO + number)
                assign(tenant, roles["owner-of-todo"], todo, membership_id=member.id)
    return tenant


WORLDS = {"gateway": create_todos, "todo": create_todos}


def path_of(kind, request):
    if "evaluations" in request:
        return "/access/v1/evaluations"
    if "action" not in request:
        return "/access/v1/search/action"
    for name in ("subject", "resource"):
        if "id" not in request[name]:
            return f"/access/v1/search/{name}"
    return "/access/v1/evaluation"


def shown(answer):
    """An answer as the vectors write it; the results of a search are a set."""
    if "evaluations" in answer:
        return [{"decision": one["decision"]} for one in answer["evaluations"]]
    if "results" in answer:
        return {json.dumps(one, sort_keys=True) for one in answer["results"]}
    return answer["decision"]


@pytest.mark.parametrize("name", PATHS)
def test_every_vector_is_answered(api, app, name):
    tenant = WORLDS.get(name, create_records)()
    token = create_api_key(tenant, [Permission.ACCESS_READ])

    wrong = []
    for kind, request, expected in cases(name):
        answer = api.post(path_of(kind, request), token=token, json=request).get_json()
        wanted = shown(expected) if isinstance(expected, dict) else expected
        if shown(answer) != wanted:
            wrong.append((request, wanted, answer))

    assert wrong == []
    assert len(cases(name)) == COUNTS[name]

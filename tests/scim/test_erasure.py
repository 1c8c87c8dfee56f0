"""Erasing a person whom a directory provisions."""

from app.privacy.jobs import erase_users
from app.scim.models import ScimMember, ScimUser
from tests.database import rows
from tests.scim.directory import ENTERPRISE


def test_is_possible_and_leaves_nothing_of_the_directory(api, owner, directory):
    made = directory.add_user("ada@example.com", title="Countess")
    directory.add_group("All", made["id"])

    answer = api.delete(f"/v1/users/{made['id']}", token=owner[2])

    assert answer.status_code == 202
    assert (rows(ScimUser), rows(ScimMember)) == ([], [])
    assert directory.get(f"/Users/{made['id']}").status_code == 404


def test_leaves_others_without_the_manager(app, api, owner, directory):
    made = directory.add_user("ada@example.com", externalId="okta-1")
    for name, value in (("by-id", made["id"]), ("by-their-id", "okta-1"), ("other", "okta-2")):
        manager = {"value": value, "displayName": "Ada Lovelace"}
        directory.add_user(name, **{ENTERPRISE: {"department": "Sums", "manager": manager}})

    api.delete(f"/v1/users/{made['id']}", token=owner[2])
    with app.app_context():
        erase_users()

    shown = {one["userName"]: one for one in directory.get("/Users").get_json()["Resources"]}
    kept = {name: one[ENTERPRISE].get("manager", {}).get("value") for name, one in shown.items()}
    assert kept == {"by-id": None, "by-their-id": None, "other": "okta-2"}
    assert {one[ENTERPRISE]["department"] for one in shown.values()} == {"Sums"}

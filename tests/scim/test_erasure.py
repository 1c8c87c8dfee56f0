"""Erasing a person whom a directory provisions."""

from app.scim.models import ScimMember, ScimUser
from tests.database import rows


def test_is_possible_and_leaves_nothing_of_the_directory(api, owner, directory):
    made = directory.add_user("ada@example.com", title="Countess")
    directory.add_group("All", made["id"])

    answer = api.delete(f"/v1/users/{made['id']}", token=owner[2])

    assert answer.status_code == 202
    assert (rows(ScimUser), rows(ScimMember)) == ([], [])
    assert directory.get(f"/Users/{made['id']}").status_code == 404

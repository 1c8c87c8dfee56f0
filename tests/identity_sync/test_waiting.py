"""GET /v1/identity/waiting and ``flask memberships waiting``."""

import pytest

from tests.factories import platform_token
from tests.identity_sync.test_sync import generic

__all__ = ["generic"]
PATH = "/v1/identity/waiting"


@pytest.fixture
def waiting(api):
    """The list, without the times; the rest of the query as given."""

    def ask(**query):
        answer = api.get(PATH, token=platform_token(), query_string=query)
        assert answer.status_code == 200, answer.text
        return answer.get_json()["data"]

    return ask


def told(rows) -> list[tuple[str, str, list[str]]]:
    return [(row["kind"], row["user_id"], row["missing"]) for row in rows]


def join(generic, user_id="u1", at="09:00", **values):
    generic("membership.created", at, organization_id="o1", user_id=user_id, **values)


class TestListWaiting:
    def test_shows_a_membership_and_what_is_missing(self, generic, waiting):
        join(generic)

        (row,) = waiting()

        assert row.pop("since").endswith("Z")
        assert row == {
            "kind": "membership",
            "source": "generic",
            "object_id": "o1 u1",
            "organization_id": "o1",
            "user_id": "u1",
            "missing": ["organization", "user"],
        }

    def test_follows_the_events_that_come(self, generic, waiting):
        steps = []
        for type_, values in (
            ("user.created", {"id": "u1", "email": "ada@acme.example"}),
            ("membership.created", {"organization_id": "o1", "user_id": "u1"}),
            ("organization.created", {"id": "o1", "name": "Acme"}),
            ("membership.created", {"organization_id": "o1", "user_id": "u2"}),
            ("membership.deleted", {"organization_id": "o1", "user_id": "u2"}),
            ("user.created", {"id": "u3", "email": "eve@acme.example"}),
            ("user.deleted", {"id": "u3"}),
        ):
            generic(type_, "09:00", **values)
            steps.append(told(waiting()))

        assert steps == [
            [("user", "u1", ["membership"])], [("membership", "u1", ["organization"])], [],
            [("membership", "u2", ["user"])], [], [("user", "u3", ["membership"])], [],
        ]  # fmt: skip

    def test_shows_no_name_or_address(self, api, generic):
        generic("user.created", "09:00", id="u1", email="ada@acme.example", name="Ada Lovelace")

        text = api.get(PATH, token=platform_token()).text

        assert "u1" in text
        assert not any(word in text for word in ("ada@", "Ada"))


class TestPages:
    @pytest.mark.parametrize("order", ["created_at", "-created_at"])
    def test_follow_one_another(self, api, generic, order):
        names = [f"u{number}" for number in range(5)]
        for name in names:
            generic("user.created", "09:00", id=name, email=f"{name}@acme.example")
        found, query = [], {"limit": 2, "order": order}
        for _ in range(3):
            page = api.get(PATH, token=platform_token(), query_string=query).get_json()
            found += [row["user_id"] for row in page["data"]]
            query["cursor"] = page["next_cursor"]

        assert found == (names if order == "created_at" else names[::-1])
        assert query["cursor"] is None

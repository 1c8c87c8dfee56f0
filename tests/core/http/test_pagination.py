"""Pages of lists: at most 8 MiB and at least one row; ``updated_after``."""

from itertools import chain

from app.core.db.pages import MAX_BYTES
from app.webhooks.models import WebhookEvent
from tests.document import operations
from tests.factories import create_member, create_tenant, create_user, platform_token, save

MIB = 1024 * 1024


def walk(api, path: str, token: str) -> list[list[str]]:
    """The ids of each page."""
    pages, cursor = [], ""
    while cursor is not None:
        answer = api.get(f"{path}?limit=100{cursor and f'&cursor={cursor}'}", token=token)
        assert len(answer.data) <= MAX_BYTES
        body = answer.get_json()
        pages.append([row["id"] for row in body["data"]])
        cursor = body["next_cursor"]
    return pages


def create_users(sizes: list[int], letter: str = "x"):
    """Users of one tenant, each with a name of that many letters; their ids and a token."""
    tenant = create_tenant()
    first, _, token = create_member(tenant)
    users = [first, *(create_user(tenant, first_name=letter * size) for size in sizes)]
    return [str(user.id) for user in users], token


class TestPages:
    def test_of_large_rows_have_at_most_eight_mib(self, api):
        ids, token = create_users([MIB] * 20)

        pages = walk(api, "/v1/users", token)

        assert [len(page) for page in pages] == [8, 7, 6]
        assert list(chain(*pages)) == ids

    def test_count_the_bytes_of_their_json(self, api):
        ids, token = create_users([MIB] * 5, letter="\x01")

        pages = walk(api, "/v1/users", token)

        assert [len(page) for page in pages] == [2, 1, 1, 1, 1]
        assert list(chain(*pages)) == ids

    def test_have_one_row_however_large_it_is(self, api):
        ids, token = create_users([9 * MIB, 0, 9 * MIB])

        first = api.get("/v1/users", token=token).get_json()
        second = api.get(f"/v1/users?cursor={first['next_cursor']}", token=token).get_json()

        assert [row["id"] for row in first["data"]] == ids[:1]
        assert [row["id"] for row in second["data"]] == ids[1:2]
        assert len(second["data"][0]["first_name"]) == 9 * MIB

    def test_of_webhook_events_do_not_count_their_payloads(self, api, clean):
        clean()
        for number in range(3):
            save(
                WebhookEvent,
                source="workos",
                external_id=f"event-{number}",
                event_type="user.created",
                headers={},
                body=b"x" * 5 * MIB,
                digest="",
                request_id="",
            )

        answer = api.get("/v1/webhooks/events", token=platform_token()).get_json()

        assert (len(answer["data"]), answer["next_cursor"]) == (3, None)


class TestUpdatedAfter:
    def test_finds_what_was_created_or_changed_since(self, api):
        tenant = create_tenant()
        old, changed, _ = (create_user(tenant) for _ in range(3))
        _, _, token = create_member(tenant)
        answer = api.patch(f"/v1/users/{changed.id}", token=token, json={"first_name": "Ada"})
        moment = answer.get_json()["data"]["updated_at"]
        new = create_user(tenant)

        found = api.get(
            "/v1/users", token=token, query_string={"updated_after": moment}
        ).get_json()["data"]

        assert [user["id"] for user in found] == [str(changed.id), str(new.id)]
        assert str(old.id) not in {user["id"] for user in found}

    def test_is_a_filter_of_every_list(self, api):
        document = api.get("/openapi.json").get_json()
        lists = [one for one in operations(document) if "cursor" in named(one)]

        # The rows of usage have no time of change; `from` and `to` choose periods.
        without = {one.path for one in lists if "updated_after" not in named(one)}
        # Those of deliveries neither.
        deliveries = "/v1/webhook-endpoints/{endpoint_id}/deliveries"
        assert without == {"/v1/usage", deliveries}
        assert len(lists) > 10


def named(operation):
    return {parameter["name"] for parameter in operation.about.get("parameters", ())}

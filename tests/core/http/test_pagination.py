"""Pages of lists: at most 8 MiB and at least one row; ``updated_after``."""

from itertools import chain

import pytest

from app.api_keys.schemas import ApiKeyCreateSchema
from app.auth.models import ApiKey
from app.connections.models import ScimConnection
from app.connections.schemas import ScimConnectionCreateSchema
from app.core.db.pages import MAX_BYTES
from app.core.validation.fields import AnyJson, JsonObject, ListOf, Str
from app.custom_fields.models import CustomField
from app.custom_fields.schemas import CustomFieldCreateSchema
from app.domains.models import Domain
from app.domains.schemas import DomainCreateSchema
from app.flags.models import FeatureOverride
from app.flags.schemas import OverrideCreateSchema
from app.inbox.models import WebhookEvent
from app.memberships.models import Membership
from app.memberships.schemas import MembershipCreateSchema
from app.plans.models import PlanPreset
from app.plans.schemas import PlanPresetCreateSchema
from app.subscriptions.models import Subscription
from app.subscriptions.schemas import SubscriptionCreateSchema
from app.tenants.models import Tenant
from app.tenants.schemas import TenantCreateSchema
from app.users.models import User
from app.users.schemas import UserCreateSchema
from app.webhooks.endpoints.models import WebhookEndpoint
from app.webhooks.endpoints.schemas import WebhookEndpointCreateSchema
from tests.changes import make_world
from tests.document import Operation, find_row, operations
from tests.factories import (
    create_member,
    create_override,
    create_preset,
    create_subscription,
    create_tenant,
    create_user,
    platform_token,
    save,
)
from tests.messages import sent_messages

NOT_JSON = {"/v1/audit-events/csv"}
MIB = 1024 * 1024


def is_list(one: Operation) -> bool:
    return "cursor" in one.parameters("query") and not one.is_stream


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

    def test_read_the_sizes_of_their_rows_only_where_one_is_large(self, api):
        _, small = create_users([0, 0])
        _, large = create_users([0, MIB])

        with sent_messages() as usual:
            api.get("/v1/users", token=small)
        with sent_messages() as measured:
            api.get("/v1/users", token=large)

        assert usual == ["auth.authenticate_user", "users.list", "COMMIT"]
        assert measured[1:-1] == ["users.list", "users.list_sizes", "users.list_whole"]

    def test_write_each_row_as_the_answer_of_one(self, api):
        tenant = create_tenant(plan_name="growth")
        create_member(tenant, meta_data={"n": [1, 1.0, 10**30, 1e300], "ä": None})
        create_subscription(tenant)
        preset = create_preset("growth", limits={"most": 5.0})
        create_override(tenant, preset, "limits", None)
        create_override(tenant, preset, "others", {"b": 1, "a": "\u2028"})

        for path in (
            "/v1/users",
            "/v1/memberships/tenant",
            "/v1/billing/subscriptions",
            "/v1/billing/flags/overrides",
            "/v1/tenants",
        ):
            rows = api.get(path, token=platform_token())
            ones = [
                api.get(f"{path}/{row['id']}", token=platform_token()).data
                for row in rows.get_json()["data"]
            ]
            items = b",".join(one.removeprefix(b'{"data":').removesuffix(b"}") for one in ones)
            assert ones
            assert rows.data == b'{"data":[%b],"next_cursor":null}' % items


class TestEveryList:
    def test_shows_each_row_once_page_by_page_in_its_order(self, app, api):
        world = make_world(app)
        token, walked, lengths = world["token"], 0, []
        for one in operations(api.get("/openapi.json").get_json()):
            if not is_list(one) or one.path in NOT_JSON:
                continue
            row_id = find_row(api, one, world["tenant_id"], token) if one.names_a_row else ""
            query = one.query | ({"tenant_id": world["tenant_id"]} if one.takes_a_tenant else {})
            path, found, following = one.path_of(row_id), [], ""
            whole = api.get(path, token=token, query_string={**query, "limit": 100}).get_json()
            while following is not None:
                cursor = {"cursor": following} if following else {}
                page = api.get(path, token=token, query_string={**query, **cursor, "limit": 1})
                found += page.get_json()["data"]
                following = page.get_json()["next_cursor"]

            assert found == whole["data"], one.name
            lengths.append(len(found))
            walked += 1

        assert walked > 10
        assert sum(length > 1 for length in lengths) > 5


class TestUnboundedColumns:
    # A service limits what these hold; see the limits in docs/reference.
    LIMITED = {"meta_data", "flag_value", "options", "public_keys", "permissions", "types"}

    @pytest.mark.parametrize(
        ("model", "schema"),
        [
            (ApiKey, ApiKeyCreateSchema),
            (CustomField, CustomFieldCreateSchema),
            (Domain, DomainCreateSchema),
            (FeatureOverride, OverrideCreateSchema),
            (Membership, MembershipCreateSchema),
            (PlanPreset, PlanPresetCreateSchema),
            (ScimConnection, ScimConnectionCreateSchema),
            (Subscription, SubscriptionCreateSchema),
            (Tenant, TenantCreateSchema),
            (User, UserCreateSchema),
            (WebhookEndpoint, WebhookEndpointCreateSchema),
        ],
    )
    def test_are_marked(self, model, schema):
        columns = model.__table__.columns
        unbounded = {
            name
            for name, field in schema().fields.items()
            if isinstance(field, Str | AnyJson | JsonObject | ListOf)
            and not {"maxLength", "pattern"} & field.metadata.keys()
            and name in columns
        }

        marked = {column.name for column in columns if "unbounded" in column.info}

        assert unbounded - self.LIMITED <= marked
        assert not any(columns[name].nullable for name in marked)


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
        lists = [one for one in operations(document) if is_list(one)]

        # The rows of usage have no time of change; `from` and `to` choose periods.
        without = {one.path for one in lists if "updated_after" not in one.parameters("query")}
        # Those of deliveries and of the ledger of credits neither.
        deliveries = "/v1/webhook-endpoints/{endpoint_id}/deliveries"
        # Resources are listed by their names.
        resources = "/v1/resources"
        assert without == {"/v1/usage", "/v1/credits/entries", deliveries, resources}
        assert len(lists) > 10

"""``?include=`` on every read that offers it, and what each name adds."""

import pytest

from app.auth.permissions import Permission
from app.core.actors import SYSTEM_CLI
from app.core.clock import utcnow
from app.custom_fields import metadata
from app.custom_fields.entities import USER
from app.rewinds.models import Rewind
from app.users import service as users
from tests.custom_fields.fields import create_field
from tests.database import platform_transaction
from tests.document import operations
from tests.factories import (
    create_api_key,
    create_assignment,
    create_domain,
    create_invitation,
    create_join_request,
    create_log_stream,
    create_member,
    create_override,
    create_preset,
    create_setup_link,
    create_sso_connection,
    create_subscription,
    create_tenant,
    create_webhook_endpoint,
    platform_token,
    save,
)
from tests.messages import sent_messages
from tests.scim.directory import create_connection


def offers(document):
    """Each operation that takes ``include``, with the names that it offers."""
    for one in operations(document):
        if parameter := one.parameters("query").get("include"):
            name = parameter["schema"]["items"]["$ref"].rpartition("/")[2]
            yield one, document["components"]["schemas"][name]["enum"]


@pytest.fixture
def world(app, api):
    """A row of each resource in each of two tenants, and the platform's token."""
    preset = create_preset("growth", exports=True)
    for _ in range(2):
        tenant = create_tenant(plan_name="growth")
        user, membership, _ = create_member(tenant)
        create_assignment(tenant, "viewer", membership_id=membership.id)
        with platform_transaction():
            users.update(user.id, {"first_name": "Ada"}, actor=SYSTEM_CLI)
        create_field(tenant)
        create_subscription(tenant)
        create_override(tenant, preset, "exports", False)
        create_api_key(tenant)
        create_webhook_endpoint(tenant.id)
        create_log_stream(tenant.id)
        create_domain(tenant)
        create_invitation(tenant.id)
        create_join_request(tenant)
        create_connection(tenant)
        create_sso_connection(tenant.id)
        create_setup_link(tenant.id)
        save(Rewind, tenant_id=tenant.id, created_by_user_id="x", to_position=0, to_time=utcnow())
        path = f"/v1/billing/customers/stripe/{tenant.slug}"
        api.put(path, token=platform_token(), json={"tenant_id": str(tenant.id)})
    return platform_token()


class TestEveryRead:
    def test_adds_each_name_as_the_last_key_by_one_statement_at_most(self, api, world):
        document = api.get("/openapi.json").get_json()
        faults, seen = [], set()
        for one, names in offers(document):
            if one.names_a_row:
                continue
            with sent_messages() as plain_messages:
                plain = api.get(one.path, token=world).get_json()["data"]
            for name in names:
                with sent_messages() as messages:
                    answer = api.get(f"{one.path}?include={name}", token=world)
                seen.add((one.path, name))
                items = answer.get_json()["data"]
                added = [list(item)[-1] for item in items]
                stripped = [{k: v for k, v in item.items() if k != name} for item in items]
                if added != [name] * len(plain) or not plain or stripped != plain:
                    faults.append((one.path, name, items))
                if len(messages) > len(plain_messages) + 1:
                    faults.append((one.path, name, messages))

        assert faults == []
        assert len(seen) > 20

    def test_of_one_row_answers_what_the_list_answers(self, api, world):
        document = api.get("/openapi.json").get_json()
        compared = 0
        for one, names in offers(document):
            if not one.path.endswith("}"):  # as /changes
                continue
            query = f"include={','.join(names)}"
            for item in api.get(f"{one.collection}?{query}", token=world).get_json()["data"]:
                answer = api.get(f"{one.path_of(item['id'])}?{query}", token=world)
                assert answer.get_json()["data"] == item
                compared += 1

        assert compared > 14

    def test_refuses_an_unknown_name(self, api, world):
        document = api.get("/openapi.json").get_json()
        for one, _names in offers(document):
            for wrong in ("", "nothing", "tenant,nothing", "tenant, history"):
                path = one.path_of("01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f")
                answer = api.get(path, token=world, query_string={"include": wrong})

                assert answer.status_code == 422
                (entry,) = answer.get_json()["detail"]
                assert (entry["type"], entry["loc"]) == ("enum", ["query", "include"])

    def test_needs_the_permission_to_read_what_is_included(self, api, tenant):
        key = create_api_key(tenant, [Permission.USERS_READ])

        answers = {
            name: api.get(f"/v1/users?include={name}", token=key)
            for name in ("tenant", "memberships", "history")
        }

        assert {answer.status_code for answer in answers.values()} == {403}
        assert "audit:read" in answers["history"].get_json()["detail"]

    def test_of_the_tenants_id_needs_no_further_permission(self, api, tenant):
        create_subscription(tenant)
        key = create_api_key(tenant, [Permission.BILLING_READ])

        answer = api.get("/v1/billing/subscriptions?include=tenant_id", token=key)

        assert [one["tenant_id"] for one in answer.get_json()["data"]] == [str(tenant.id)]

    def test_is_unknown_to_changes(self, api, tenant):
        user, _, token = create_member(tenant)

        answer = api.patch(f"/v1/users/{user.id}?include=tenant", token=token, json={})

        assert answer.status_code == 422


class TestValues:
    def test_say_whose_a_subscription_is_and_why_it_was_cancelled(self, api):
        tenant = create_tenant(name="Acme", slug="acme", plan_name="growth")
        row = create_subscription(tenant)
        token = platform_token()
        api.post(
            f"/v1/billing/subscriptions/{row.id}/cancel",
            token=token,
            json={"at_period_end": True, "reason": "Too expensive."},
        )
        names = "tenant,cancellation,status_class,source_timestamp"

        data = api.get(f"/v1/billing/subscriptions?include={names}", token=token).get_json()["data"]

        assert data[0]["tenant"] == {
            "id": str(tenant.id),
            "slug": "acme",
            "name": "Acme",
            "plan_name": "growth",
            "is_active": True,
        }
        cancellation = data[0]["cancellation"]
        assert list(cancellation) == ["canceled_at", "at_period_end", "reason"]
        assert (cancellation["at_period_end"], cancellation["reason"]) == (True, "Too expensive.")
        assert (data[0]["status_class"], data[0]["source_timestamp"]) == ("live", None)

    def test_show_the_last_ten_changes_newest_first(self, api, tenant):
        user, _, token = create_member(tenant)
        for number in range(12):
            api.patch(f"/v1/users/{user.id}", token=token, json={"first_name": f"Ada {number}"})

        history = api.get(f"/v1/users/{user.id}?include=history", token=token).get_json()["data"][
            "history"
        ]

        assert [entry["after"] for entry in history] == [
            {"first_name": f"Ada {number}"} for number in range(11, 1, -1)
        ]
        assert {entry["actor"] for entry in history} == {str(user.id)}

    def test_leave_out_the_values_of_a_history_that_is_too_large(self, api, tenant, admin):
        large = {f"k{number}": "x" * 900 for number in range(30)}
        for other in range(10):
            person, _, _ = create_member(tenant)
            for number in range(10):
                with platform_transaction():
                    patch = {**large, "number": number, "other": other}
                    metadata.patch(USER, person.id, patch, actor=SYSTEM_CLI)

        answer = api.get("/v1/users?include=history&order=-created_at", token=admin)

        changes = [entry for item in answer.get_json()["data"] for entry in item["history"]]
        shown = [entry for entry in changes if entry["after"] is not None]
        assert len(answer.data) < 6 * 1024 * 1024
        assert len(changes) == 100
        assert 50 < len(shown) < 100


class TestETag:
    def test_is_a_digest_of_the_answer(self, api, tenant):
        user, _, token = create_member(tenant)
        path = f"/v1/users/{user.id}"
        plain = api.get(path, token=token).headers["ETag"]

        first = api.get(f"{path}?include=tenant", token=token)
        again = api.get(
            f"{path}?include=tenant", token=token, headers={"If-None-Match": first.headers["ETag"]}
        )
        api.patch(f"/v1/tenants/{tenant.id}", token=platform_token(), json={"name": "Another name"})
        changed = api.get(
            f"{path}?include=tenant", token=token, headers={"If-None-Match": first.headers["ETag"]}
        )

        assert first.headers["ETag"] != plain
        assert (again.status_code, again.data) == (304, b"")
        assert changed.status_code == 200
        assert changed.get_json()["data"]["tenant"]["name"] == "Another name"

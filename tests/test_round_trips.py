"""How many messages a request sends to PostgreSQL, BEGIN and COMMIT included.

Each message is a round trip. BEGIN travels with the first statement. A read sends three messages:
authentication, the row, COMMIT. A change sends two more: the row's UPDATE and its audit row.
"""

from uuid import UUID

import pytest

from app.api_keys import service as api_keys
from app.auth.permissions import ALL, ROLE_PERMISSIONS, TENANT, Role
from app.core.actors import SYSTEM_CLI
from app.flags.evaluation import evaluate_all
from app.inbox.providers import EMAIL
from tests.changes import changes, make_world, prepare
from tests.custom_fields.fields import create_field
from tests.database import platform_transaction
from tests.document import MAY_BE_MISSING, find_row, operations
from tests.factories import (
    create_api_key,
    create_member,
    create_subscription,
    create_tenant,
    create_user,
    platform_token,
)
from tests.inbox.sending import Sender
from tests.messages import sent_messages

READ = 3
CHANGE = 6
RECEIPT = 3

# One for each check, each number, each table of the flagd document, each part of the snapshot, and
# for what is known of each billing provider.
SEVERAL_STATEMENTS = {
    "GET /v1/access/snapshot",
    "GET /v1/billing/flags/flagd.json",
    "GET /v1/billing/providers",
    "GET /v1/credits",
    "GET /v1/operations/findings",
    "GET /v1/operations/work",
    "GET /v1/tenants/{tenant_id}/changes",
    "GET /v1/usage/days",
}
# It waits for other editors, and then reads all roles and what the editor has.
WAITING = {"PATCH /v1/roles/{role_id}"}

CREDENTIALS = ["owner", "tenant's key", "platform token", "platform key"]


@pytest.fixture
def world(app):
    return make_world(app)


@pytest.fixture(params=CREDENTIALS)
def credential(request, world):
    """A credential that sees the first demo tenant, and its permissions."""

    match request.param:
        case "owner":
            return world["users"][0]["token"], ROLE_PERMISSIONS[Role.OWNER]
        case "tenant's key":
            with platform_transaction():
                _, secret = api_keys.create(
                    name="all",
                    permissions=TENANT,
                    tenant_id=UUID(world["tenant_id"]),
                    actor=SYSTEM_CLI,
                )
            return secret, TENANT
        case "platform token":
            return world["token"], ALL
        case "platform key":
            return create_api_key(None, ALL), ALL


def is_permitted(operation, permissions):
    if operation.is_for_the_platform and permissions is not ALL:
        return False
    return operation.permission in permissions


class TestEveryRead:
    def test_of_one_row_sends_three_messages(self, app, api, world, credential):
        token, permissions = credential
        wrong, count = [], 0
        document = app.test_client().get("/openapi.json").get_json()
        for one in operations(document):
            if one.is_change or not one.names_a_row or not is_permitted(one, permissions):
                continue
            if one.name in SEVERAL_STATEMENTS:
                continue
            path = one.path_of(find_row(api, one, world["tenant_id"], world["token"]))
            query = {"tenant_id": world["tenant_id"]} if one.takes_a_tenant else {}
            query = {**one.query, **query}
            for headers in ({}, {"If-None-Match": '"1"'}):
                with sent_messages() as messages:
                    answer = api.get(path, token=token, headers=headers, query_string=query)
                known = (200, 304, 404) if one.name in MAY_BE_MISSING else (200, 304)
                assert answer.status_code in known, (one.name, answer.text)
                if len(messages) > READ and answer.status_code != 404:
                    wrong.append((one.name, messages))
            count += 1

        assert wrong == []
        assert count > 6

    def test_of_a_list_sends_three_messages(self, app, api, world, credential):
        token, permissions = credential
        wrong, count = [], 0
        document = app.test_client().get("/openapi.json").get_json()
        with platform_transaction():
            evaluate_all(UUID(world["tenant_id"]))  # each process reads a plan's flags once
        for one in operations(document):
            if one.is_change or one.names_a_row or one.permission is None or one.is_stream:
                continue
            if not is_permitted(one, permissions):
                continue
            query = {
                **one.query,
                **({"tenant_id": world["tenant_id"]} if one.takes_a_tenant else {}),
            }
            with sent_messages() as messages:
                answer = api.get(one.path, token=token, query_string=query)
            assert answer.status_code == 200, (one.name, answer.text)
            if len(messages) > READ and one.name not in SEVERAL_STATEMENTS:
                wrong.append((one.name, messages))
            count += 1

        assert wrong == []
        assert count > 6


class TestEveryPatch:
    def test_sends_six_messages_at_most(self, app, api, world, credential):
        token, permissions = credential
        wrong, count = [], 0
        for one in changes(app):
            if one.method != "patch" or not is_permitted(one, permissions) or one.name in WAITING:
                continue
            send = prepare(api, world, one)
            with sent_messages() as messages:
                answer = send(token=token)
            assert answer.status_code == 200, (one.name, answer.text)
            if len(messages) > CHANGE:
                wrong.append((one.name, messages))
            count += 1

        assert wrong == []
        assert count > 6


class TestUsers:
    @pytest.fixture
    def token(self, tenant):
        return create_member(tenant, role="owner")[2]

    def test_a_change_of_no_searched_field_writes_no_terms(self, api, tenant, token):
        path = f"/v1/users/{create_user(tenant).id}"

        with sent_messages() as messages:
            api.patch(path, token=token, json={"is_active": False})

        assert messages[-3:] == ["users.update", "audit_events.insert", "COMMIT"]

    def test_a_change_to_the_same_value_sends_no_update(self, api, tenant, token):
        path = f"/v1/users/{create_user(tenant, first_name='Ada').id}"

        with sent_messages() as messages:
            api.patch(path, token=token, json={"first_name": "Ada"})

        assert messages == ["auth.authenticate_user", "users.lock", "COMMIT"]

    def test_a_refusal_before_the_database_sends_nothing(self, api, app):
        with sent_messages() as messages:
            assert api.get("/v1/users").status_code == 401

        assert messages == []


class TestSubscriptions:
    def test_a_change_of_the_plan_also_updates_the_tenant(self, api, app):
        tenant = create_tenant()
        path = f"/v1/billing/subscriptions/{create_subscription(tenant).id}"
        token = platform_token()

        with sent_messages() as messages:
            answer = api.patch(path, token=token, json={"plan_name": "scale"})

        assert answer.status_code == 200, answer.text
        assert messages == [
            "auth.authenticate_user",
            "subscriptions.lock",
            "subscriptions.update",
            "tenants.set_plan",
            "audit_events_event_outbox.insert_many",
            "COMMIT",
        ]


class TestCustomFields:
    def test_a_new_order_of_all_updates_them_by_one_statement(self, api, app):
        tenant = create_tenant()
        token = create_member(tenant, role="owner")[2]
        fields = [create_field(tenant) for _ in range(5)]
        body = {"entity_type": "user", "field_ids": [str(field.id) for field in fields[::-1]]}

        with sent_messages() as messages:
            answer = api.post("/v1/custom-fields/reorder", token=token, json=body)

        assert answer.status_code == 200, answer.text
        assert messages == [
            "auth.authenticate_user",
            "tenants.get",
            "custom_fields.lock_all",
            "custom_fields.update_many",
            "audit_events_event_outbox.insert_many",
            "COMMIT",
        ]


class TestReceipt:
    @pytest.fixture
    def sender(self, app, monkeypatch):
        return Sender(app, monkeypatch)

    def test_sends_three_messages_at_most(self, sender):
        for body, message_id in (
            ({"type": "a"}, "m1"),
            ({"type": "b"}, "m2"),
            ({"type": "b"}, "m2"),
        ):
            with sent_messages() as messages:
                answer = sender.post("standard_webhooks", body, message_id=message_id)

            assert answer.status_code == 200, answer.text
            assert len(messages) <= RECEIPT, messages

    def test_of_a_batch_sends_three_messages_at_most(self, sender):
        body = [{"event": "delivered", "email": "a@b.co", "sg_event_id": str(n)} for n in range(9)]

        with sent_messages() as messages:
            answer = sender.post("standard_webhooks", body, receiver=EMAIL)

        assert answer.status_code == 200, answer.text
        assert len(messages) <= RECEIPT, messages

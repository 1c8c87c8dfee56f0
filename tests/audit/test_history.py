"""GET …/history: the audit rows of one row, with the names of the actors."""

from typing import Any

import pytest

from app.api_keys import service as api_keys
from app.audit.service import add_event
from app.auth.permissions import Permission
from app.core.actors import SYSTEM_CLI, Actor
from app.core.db.queries import Change
from tests.changes import make_world
from tests.database import platform_transaction
from tests.document import operations
from tests.factories import (
    create_member,
    create_override,
    create_preset,
    create_tenant,
    create_user,
    create_webhook_endpoint,
    platform_token,
)
from tests.scim.directory import create_connection


def add_row(tenant: Any, target_id: Any, *, actor: str = "system:idp", action="user.updated"):
    with platform_transaction():
        add_event(
            action,
            target_id=str(target_id),
            tenant_id=tenant and tenant.id,
            change=Change({"a": 1}, {"a": 2}),
            actor=Actor(actor),
        )


def entries(api, path, token, **query):
    answer = api.get(f"{path}/history", token=token, query_string=query)
    assert answer.status_code == 200, answer.text
    return answer.get_json()["data"]


@pytest.fixture
def token(tenant):
    return create_member(tenant, role="owner")[2]


class TestHistory:
    def test_shows_the_changes_of_one_row_newest_first(self, api, tenant, token):
        user, other = create_user(tenant), create_user(tenant)
        for name in ("Ada", "Eva"):
            api.patch(f"/v1/users/{user.id}", token=token, json={"first_name": name})
        api.patch(f"/v1/users/{other.id}", token=token, json={"first_name": "Zoe"})

        found = entries(api, f"/v1/users/{user.id}", token)

        assert [(one["before"], one["after"]) for one in found] == [
            ({"first_name": "Ada"}, {"first_name": "Eva"}),
            ({"first_name": ""}, {"first_name": "Ada"}),
        ]
        assert list(found[0]) == [
            "id", "created_at", "tenant_id", "actor", "action", "target_type", "target_id",
            "before", "after", "request_id", "reason", "actor_name",
        ]  # fmt: skip

    def test_goes_on_after_the_rows_deletion(self, api, tenant, token):
        override = create_override(tenant, create_preset(beta=False), "beta", True)
        path = f"/v1/billing/flags/overrides/{override.id}"
        api.delete(path, token=platform_token())

        (found,) = entries(api, path, token)

        assert (found["action"], found["after"]) == ("override.deleted", {})

    def test_does_not_show_another_type_with_the_same_id(self, api, tenant, token):
        user = create_user(tenant)
        add_row(tenant, user.id, action="tenant.updated")

        assert entries(api, f"/v1/users/{user.id}", token) == []

    def test_of_every_resource_shows_its_creation(self, app, api):
        world = make_world(app)
        document = app.test_client().get("/openapi.json").get_json()
        histories = [one for one in operations(document) if one.path.endswith("/history")]
        lists = {one.path.partition("/{")[0] for one in histories}

        found = {}
        for path in lists:
            query = {} if path in ("/v1/tenants", "/v1/billing/plans") else world
            listed = api.get(
                path,
                token=world["token"],
                query_string={"tenant_id": query["tenant_id"]} if query else {},
            )
            row_id = listed.get_json()["data"][-1 if path == "/v1/roles" else 0]["id"]
            found[path] = entries(api, f"{path}/{row_id}", world["token"])[-1]["action"]

        assert found == {
            "/v1/tenants": "tenant.created",
            "/v1/users": "user.created",
            "/v1/memberships/tenant": "membership.created",
            "/v1/billing/subscriptions": "subscription.created",
            "/v1/billing/plans": "plan_preset.created",
            "/v1/billing/flags/overrides": "override.created",
            "/v1/custom-fields": "custom_field.created",
            "/v1/domains": "domain.created",
            "/v1/join-requests": "join_request.created",
            "/v1/api-keys": "api_key.created",
            "/v1/roles": "role.created",
            "/v1/role-assignments": "role_assignment.created",
            "/v1/scim-connections": "scim_connection.created",
            "/v1/sso-connections": "sso_connection.activated",
            "/v1/invitations": "invitation.created",
            "/v1/setup-links": "setup_link.created",
            "/v1/webhook-endpoints": "webhook_endpoint.created",
            "/v1/log-streams": "log_stream.created",
        }


class TestActorName:
    def names(self, api, tenant, token, *actors):
        user = create_user(tenant)
        for actor in actors:
            add_row(tenant, user.id, actor=str(actor))
        return [one["actor_name"] for one in entries(api, f"/v1/users/{user.id}", token)[::-1]]

    def test_is_the_users_name_or_address(self, api, tenant, token):
        named = create_user(tenant, first_name="Ada", last_name="Lovelace", email="ada@a.example")
        half = create_user(tenant, last_name="Noether")
        unnamed = create_user(tenant, email="emmy@a.example")

        found = self.names(api, tenant, token, named.id, half.id, unnamed.id)

        assert found == ["Ada Lovelace", "Noether", "emmy@a.example"]

    def test_is_the_scim_connections_name(self, api, tenant, token):
        own, _ = create_connection(tenant, name="Okta")
        foreign, _ = create_connection(create_tenant(), name="Entra")

        found = self.names(api, tenant, token, f"scim:{own.id}", f"scim:{foreign.id}", "scim:x")

        assert found == ["Okta", "", ""]

    def test_is_empty_for_others(self, api, tenant, token):
        stranger = create_user(create_tenant(), first_name="Ada")
        actors = ["system:idp", "platform:ops", stranger.id, "key:x", "key:", "", "x'--"]

        for asking in (token, platform_token()):
            assert self.names(api, tenant, asking, *actors) == [""] * len(actors)

    def test_is_the_keys_name_where_the_caller_may_see_the_key(self, api, tenant, token):
        keys = []
        for of in (tenant.id, None, create_tenant().id):
            with platform_transaction():
                key, _ = api_keys.create(
                    name=f"key {len(keys)}",
                    permissions=[Permission.USERS_READ],
                    tenant_id=of,
                    actor=SYSTEM_CLI,
                )
            keys.append(f"key:{key.id}")

        assert self.names(api, tenant, token, *keys) == ["key 0", "", ""]
        assert self.names(api, tenant, platform_token(), *keys) == ["key 0", "key 1", "key 2"]


class TestTargetName:
    def test_names_what_was_changed(self, api, tenant, token):
        user, membership, _ = create_member(tenant, "viewer", first_name="Ada", email="a@a.example")
        override = create_override(tenant, create_preset(), "theme", "dark")
        connection, _ = create_connection(tenant, name="Okta")
        targets = {
            "user": (user.id, "Ada"),
            "membership": (membership.id, "Ada"),
            "override": (override.id, "theme"),
            "scim_connection": (connection.id, "Okta"),
            "tenant": (tenant.id, tenant.name),
            "limit": ("api-calls", ""),
        }
        actions = {"limit": "limit.warning", "scim_connection": "scim_connection.updated"}
        for kind, (target_id, _) in targets.items():
            add_row(tenant, target_id, action=actions.get(kind, f"{kind}.updated"))

        for asking in (token, platform_token()):
            query = {"include": "target_name", "order": "-created_at", "limit": len(targets)}
            answer = api.get("/v1/audit-events", token=asking, query_string=query)
            found = [one["target_name"] for one in answer.get_json()["data"]]

            assert found[::-1] == [name for _, name in targets.values()]

    def test_shows_nothing_of_another_tenant(self, api, tenant, token):
        other = create_tenant()
        user, membership, _ = create_member(other, "viewer", first_name="Ada")
        connection, _ = create_connection(other, name="Okta")
        add_row(tenant, user.id)
        add_row(tenant, membership.id, action="membership.updated")
        add_row(tenant, connection.id, action="scim_connection.updated")
        endpoint = create_webhook_endpoint(other.id)
        add_row(tenant, endpoint.id, action="webhook_endpoint.updated")

        query = {"include": "target_name", "order": "-created_at", "limit": 4}
        answer = api.get("/v1/audit-events", token=token, query_string=query)

        assert [one["target_name"] for one in answer.get_json()["data"]] == [""] * 4

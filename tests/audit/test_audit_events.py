"""The audit trail: /v1/audit-events, and that its rows cannot be changed."""

from datetime import UTC, datetime, timedelta

import pytest
from psycopg2.errors import InsufficientPrivilege

from app.audit.service import add_event
from app.core.actors import Actor
from app.core.db.queries import Change
from tests.database import execute
from tests.factories import (
    create_member,
    create_tenant,
    create_user,
    platform_token,
    platform_transaction,
)

PATH = "/v1/audit-events"


def write_event(tenant=None, *, action="user.updated", target_id="u", actor="system:job"):
    with platform_transaction():
        add_event(
            action,
            target_id=target_id,
            tenant_id=tenant and tenant.id,
            change=Change({"a": 1}, {"a": 2}),
            actor=Actor(actor),
        )


class TestListEvents:
    def test_shows_who_changed_what(self, api, tenant):
        admin, _, token = create_member(tenant, role="admin")
        user = create_user(tenant, first_name="Ada")
        path = f"/v1/users/{user.id}"

        api.patch(path, token=token, json={"first_name": "Eva"}, headers={"X-Request-Id": "r-1"})

        (event,) = api.get(PATH, token=token).get_json()["data"]
        moment = datetime.fromisoformat(event.pop("created_at"))
        assert timedelta(0) <= datetime.now(UTC) - moment < timedelta(minutes=1)
        assert len(event.pop("id")) == 36
        assert event == {
            "tenant_id": str(tenant.id),
            "actor": str(admin.id),
            "action": "user.updated",
            "target_type": "user",
            "target_id": str(user.id),
            "before": {"first_name": "Ada"},
            "after": {"first_name": "Eva"},
            "request_id": "r-1",
            "reason": "",
        }

    @pytest.mark.parametrize(
        "query",
        [
            "target_type=tenant",
            "target_id=t",
            "actor=key:1",
            "action=tenant.updated",
            "action=tenant.updated&target_id=t&actor=key:1",
        ],
    )
    def test_narrows_by_each_filter(self, api, query, tenant, admin):
        write_event(tenant)
        write_event(tenant, action="tenant.updated", target_id="t", actor="key:1")
        write_event(tenant, action="user.created")

        events = api.get(f"{PATH}?{query}", token=admin).get_json()["data"]

        assert [event["target_id"] for event in events] == ["t"]

    @pytest.mark.parametrize("name", ["target_type", "action"])
    def test_refuses_a_filter_that_no_change_can_have(self, api, name):
        answer = api.get(PATH, token=platform_token(), query_string={name: "users"})

        assert answer.status_code == 422
        assert answer.get_json()["detail"][0]["loc"] == ["query", name]

    def test_narrows_by_time(self, api, tenant, admin):
        for name in ("first", "second", "third"):
            write_event(tenant, target_id=name)
        moments = [event["created_at"] for event in api.get(PATH, token=admin).get_json()["data"]]

        def names(**query):
            events = api.get(PATH, token=admin, query_string=query).get_json()["data"]
            return [event["target_id"] for event in events]

        assert names(created_after=moments[1]) == ["second", "third"]
        assert names(created_before=moments[1]) == ["first"]
        assert names(created_after=moments[1], created_before=moments[2]) == ["second"]
        # An event never changes.
        assert names(updated_after=moments[2]) == ["third"]
        assert names(created_after=moments[2], updated_after=moments[0]) == ["third"]


class TestAppendOnly:
    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE audit_events SET actor = 'nobody'",
            "DELETE FROM audit_events",
            "TRUNCATE audit_events",
        ],
    )
    def test_the_database_refuses_to_rewrite_it(self, app, statement):
        write_event(create_tenant())

        with pytest.raises(InsufficientPrivilege, match="permission denied"):
            execute(statement)

    def test_what_is_rolled_back_leaves_no_row(self, api):
        tenant = create_tenant(slug="taken")
        _, _, token = create_member(create_tenant(), role="owner")
        home = api.get("/v1/users", token=token).get_json()["data"][0]["tenant_id"]

        refused = api.patch(f"/v1/tenants/{home}", token=token, json={"slug": tenant.slug})

        assert refused.status_code == 409
        assert api.get(PATH, token=token).get_json()["data"] == []

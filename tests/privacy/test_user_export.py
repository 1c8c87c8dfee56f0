"""``POST /v1/users/{id}/export``: what is stored about one user of one tenant."""

import pytest

from app.core.clock import utcnow
from app.emails.models import Suppression
from app.privacy.people import user_export
from tests import database
from tests.factories import (
    create_api_key,
    create_member,
    create_subscription,
    create_user,
    platform_token,
    save,
)
from tests.scim.directory import Directory, create_connection

ADDRESS = "ada@example.com"


def export(api, user, token):
    answer = api.post(f"/v1/users/{user.id}/export", token=token)
    assert answer.status_code == 200, answer.text
    return answer.get_json()["data"]


class TestExport:
    def test_has_what_the_tenant_stores(self, api, tenant, owner):
        user, membership, token = create_member(tenant, "admin", email="Ada@Example.com")
        create_subscription(tenant, billing_email=ADDRESS)
        create_subscription(tenant, billing_email="other@example.com")
        other = create_user(tenant)
        api.patch(f"/v1/users/{user.id}", token=owner, json={"first_name": "Ada"})
        api.patch(f"/v1/users/{other.id}", token=token, json={"first_name": "Grace"})

        found = export(api, user, owner)

        tables = found["tables"]
        assert (found["user_id"], found["incomplete"]) == (str(user.id), [])
        assert [row["first_name"] for row in tables["users"]] == ["Ada"]
        assert [row["id"] for row in tables["memberships"]] == [str(membership.id)]
        assert [row["billing_email"] for row in tables["subscriptions"]] == [ADDRESS]
        assert [row["after"] for row in tables["audit_events"]] == [{"first_name": "Ada"}]
        assert [(row["action"], row["target_id"]) for row in tables["actions"]] == [
            ("user.updated", str(other.id))
        ]
        assert "Grace" not in str(tables)
        assert tables["users"][0]["created_at"].endswith("Z")

    def test_has_what_a_directory_sent(self, app, api, tenant, owner):
        directory = Directory(app, create_connection(tenant)[1])
        made = directory.add_user("ada", emails=[{"value": ADDRESS, "type": "work"}])
        (user,) = database.query("SELECT * FROM users WHERE id = :id", id=made["id"])

        tables = export(api, user, owner)["tables"]

        assert [row["user_name"] for row in tables["scim_users"]] == ["ada"]
        assert [row["value"] for row in tables["scim_emails"]] == [ADDRESS]

    def test_has_the_platforms_records_for_the_platform_only(self, api, tenant, owner):
        user = create_user(tenant, email="Ada@Example.com")
        values = {"cause": "bounced", "scope": "", "source": "test", "suppressed_at": utcnow()}
        save(Suppression, address=ADDRESS, is_active=True, **values)

        own, everywhere = export(api, user, owner), export(api, user, platform_token())

        assert own["tables"].keys().isdisjoint({"suppressions", "email_events", "email_messages"})
        assert [row["cause"] for row in everywhere["tables"]["suppressions"]] == ["bounced"]

    @pytest.mark.parametrize("of_tenant", [True, False], ids=["tenant's key", "platform key"])
    def test_has_the_audit_trail_only_for_who_may_read_it(self, api, tenant, owner, of_tenant):
        user = create_user(tenant)
        api.patch(f"/v1/users/{user.id}", token=owner, json={"first_name": "Ada"})
        place = tenant if of_tenant else None

        without, with_it = (
            export(api, user, create_api_key(place, held))
            for held in (["users:write"], ["users:write", "audit:read"])
        )

        assert "Ada" in str(without["tables"]["users"])
        assert without["tables"].keys().isdisjoint({"audit_events", "actions"})
        assert without["incomplete"] == ["audit_events", "actions"]
        assert with_it["tables"]["audit_events"][1]["action"] == "user.updated"
        assert with_it["incomplete"] == []

    def test_is_bounded_and_says_so(self, api, tenant, owner, monkeypatch):
        user = create_user(tenant)
        for name in ("a", "b", "c"):
            api.patch(f"/v1/users/{user.id}", token=owner, json={"first_name": name})
        newest = user_export.Paging(limit=2, order=user_export.ListOrder.NEWEST_FIRST)
        monkeypatch.setattr(user_export, "NEWEST", newest)

        found = export(api, user, owner)

        assert [row["after"]["first_name"] for row in found["tables"]["audit_events"]] == ["c", "b"]
        assert found["incomplete"] == ["audit_events"]

    def test_is_not_stored_for_an_idempotency_key(self, api, tenant, owner):
        user = create_user(tenant, email=ADDRESS)
        path, headers = f"/v1/users/{user.id}/export", {"Idempotency-Key": "k"}

        first, second = (api.post(path, token=owner, headers=headers) for _ in range(2))

        assert ADDRESS in first.text
        assert "tables" not in second.get_json()["data"]
        (stored,) = database.query("SELECT body FROM idempotency_keys")
        assert ADDRESS.encode() not in bytes(stored.body)

"""Events of changes that no request makes: by providers' events, by jobs and by counting."""

from typing import Any

import pytest

from app.core.clock import utcnow
from app.privacy.jobs import delete_tenant, erase_users
from app.tenants.models import Tenant, TenantDeletion
from app.users.models import User
from tests import database
from tests.events.support import faults, read
from tests.factories import (
    create_limits,
    create_member,
    create_tenant,
    limit_flag,
    platform_token,
    save,
)

ORGANIZATION = {"id": "org_1", "name": "Acme"}
PAIR = {"organization_id": "org_1", "user_id": "u1"}


@pytest.fixture
def deliver(sender):
    def deliver(kind: str, hour: int, **data: Any) -> None:
        assert sender.tell(kind, f"{hour:02}:00", **data).status == "succeeded"

    return deliver


@pytest.fixture
def found(app, api):
    """Call it for the new events by type; each is as the document describes it."""
    document, after = app.test_client().get("/openapi.json").get_json(), "0"

    def found() -> dict[str, Any]:
        nonlocal after
        page = read(api, platform_token(), after=after)
        after = page["next_cursor"]
        assert [fault for event in page["data"] for fault in faults(document, event)] == []
        return {event["type"]: event for event in page["data"]}

    return found


class TestIdentityEvents:
    def test_have_the_rows_after_the_change(self, api, deliver, found):
        deliver("organization.created", 9, **ORGANIZATION)
        deliver("user.created", 9, id="u1", email="ada@acme.example")
        deliver("membership.created", 9, **PAIR, role="owner")
        created = found()
        deliver("user.updated", 10, id="u1", email="ada@acme.example", first_name="Ada")
        deliver("membership.deleted", 11, **PAIR)
        changed = found()

        user = database.row(User)
        path = f"/v1/users/{user.id}"
        shown = api.get(path, token=platform_token()).get_json()["data"]
        assert created.keys() == {"tenant.created", "user.created", "membership.created"}
        assert created["membership.created"]["data"]["role"] == "owner"
        assert changed.keys() == {"user.updated", "membership.updated", "tenant.ownerless"}
        assert changed["user.updated"]["data"] == shown
        assert changed["membership.updated"]["data"]["is_active"] is False
        ownerless = changed["tenant.ownerless"]
        assert ownerless["data"]["name"] == "Acme"
        assert ownerless["changes"] == {"owners": {"before": [str(user.id)], "after": []}}
        assert {one["actor"] for one in changed.values()} == {"system:idp"}

    def test_beyond_the_seats(self, deliver, found):
        create_limits("free", limit_flag("seats", 0))
        tenant = create_tenant(idp_org_id="org_1", name="Acme")

        deliver("user.created", 9, id="u1", email="ada@acme.example")
        deliver("membership.created", 9, **PAIR, role="member")

        over = found()["tenant.over_seats"]
        assert over["data"]["id"] == over["tenant_id"] == str(tenant.id)
        assert over["changes"] == {"free_seats": {"before": 0, "after": -1}}


class TestEmailEvents:
    def test_are_the_platforms(self, api, deliver, found, owner):
        deliver("email.bounced", 9, recipient="a@b.example", message_id="m", bounce_type="hard")
        deliver("email.complained", 10, recipient="c@b.example", message_id="n")

        events = found()
        assert events.keys() == {"email.bounced", "email.complained", "email.suppressed"}
        assert events["email.bounced"]["data"]["recipient"] == "a@b.example"
        assert {one["tenant_id"] for one in events.values()} == {None}
        assert read(api, owner)["data"] == []


class TestEnds:
    def test_of_a_tenant_has_only_what_identifies_it(self, app, found):
        tenant = create_tenant(name="Secret Ltd", primary_contact_email="ada@acme.example")
        database.execute(
            "UPDATE tenants SET is_active = false, deletes_at = :now WHERE id = :id",
            id=tenant.id,
            now=utcnow(),
        )
        save(TenantDeletion, tenant_id=tenant.id, requested_by="platform:operator")
        with app.app_context():
            delete_tenant(str(tenant.id))

        deleted = found()["tenant.deleted"]

        assert database.rows(Tenant) == []
        assert deleted["tenant_id"] is deleted["tenant"] is None
        assert deleted["data"]["id"] == str(tenant.id)
        assert deleted["data"]["idp_org_id"] == tenant.idp_org_id
        assert deleted["data"]["name"] == deleted["data"]["primary_contact_email"] == ""

    def test_of_a_person_is_told_without_them(self, app, api, found, tenant):
        create_member(tenant, role="owner")
        user = create_member(tenant)[0]
        assert api.delete(f"/v1/users/{user.id}", token=platform_token()).status_code == 202
        with app.app_context():
            erase_users()

        events = found()

        assert events.keys() == {"user.updated", "user.erased"}
        assert events["user.erased"]["data"]["id"] == str(user.id)
        assert {one["data"]["email"] for one in events.values()} <= {"", "[erased]"}

"""An identity event may end a tenant's last owner, which is audited, also beside other changes."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from app.audit.models import AuditEvent
from app.auth.permissions import Role
from app.core.actors import SYSTEM_CLI
from app.identity_sync import sync
from app.identity_sync.events import Change, UserEvent
from app.memberships import service as memberships
from app.memberships.models import Membership
from app.tenants.models import Tenant
from app.users.models import User
from tests import database
from tests.factories import create_assignment, platform_token
from tests.inbox.sending import Sender, work_off
from tests.memberships.test_last_owner import active_owners

ENDS: dict[str, dict[str, Any]] = {
    "membership.updated": {"organization_id": "o1", "user_id": "u1", "role": "viewer"},
    "membership.deleted": {"organization_id": "o1", "user_id": "u1"},
    "user.updated": {"id": "u1", "active": False},
    "user.deleted": {"id": "u1"},
}


def body(type_: str, hour: int, **data: Any) -> dict[str, Any]:
    return {"type": type_, "timestamp": f"2026-01-05T{hour:02}:00:00Z", "data": data}


@pytest.fixture
def deliver(sender: Sender):
    """Deliver an event in the generic form."""
    return lambda *args, **data: sender.deliver("standard_webhooks", body(*args, **data))


@pytest.fixture
def join(deliver):
    """Make people members of Acme, by events."""
    deliver("organization.created", 9, id="o1", name="Acme")

    def make(user_id: str, role: str) -> tuple[User, Membership]:
        deliver("user.created", 9, id=user_id, email=f"{user_id}@acme.example")
        deliver("membership.created", 9, organization_id="o1", user_id=user_id, role=role)
        user = database.row(User, idp_user_id=user_id)
        return user, database.row(Membership, user_id=user.id)

    return make


def ownerless() -> list[AuditEvent]:
    return database.rows(AuditEvent, action="tenant.ownerless")


class TestEnd:
    @pytest.mark.parametrize("type_", ENDS)
    def test_of_the_last_owner_is_logged_and_audited_once(self, deliver, join, caplog, type_):
        user, _ = join("u1", "owner")
        join("u2", "admin")

        deliver(type_, 10, **ENDS[type_])

        tenant = database.row(Tenant)
        assert active_owners(tenant) == []
        assert caplog.messages.count("tenant_ownerless") == 1
        (event,) = ownerless()
        assert (event.actor, event.target_id) == ("system:idp", str(tenant.id))
        assert (event.before, event.after) == ({"owners": [str(user.id)]}, {"owners": []})

    @pytest.mark.parametrize("type_", ENDS)
    def test_of_one_of_two_owners_leaves_the_other(self, deliver, join, type_):
        join("u1", "owner")
        other, _ = join("u2", "owner")

        deliver(type_, 10, **ENDS[type_])

        assert active_owners(database.row(Tenant)) == [other.id]
        assert ownerless() == []

    def test_of_an_owner_in_several_tenants_is_audited_for_those_without_another(
        self, deliver, join
    ):
        join("u1", "owner")
        join("u2", "owner")
        deliver("organization.created", 9, id="o2", name="Birch")
        deliver("membership.created", 9, organization_id="o2", user_id="u1", role="owner")

        deliver("user.deleted", 10, id="u1")

        (event,) = ownerless()
        assert event.tenant_id == database.row(Tenant, idp_org_id="o2").id
        changes = [
            (one.action, one.after)
            for one in database.rows(AuditEvent)
            if "is_active" in one.before
        ]
        assert sorted(changes, key=str) == [
            ("membership.updated", {"is_active": False}),
            ("membership.updated", {"is_active": False}),
            ("user.updated", {"is_active": False}),
            ("user.updated", {"is_active": False}),
        ]

    def test_of_all_owners_by_one_delivery_is_audited(self, sender):
        def tell(event, at, **values):
            body = {"event": event, "hookId": "h", "createdAt": f"2026-01-05T{at}:00.000Z"}
            sender.deliver("logto", body | values)

        both, change = ["u1", "u2"], "Organization.Membership.Updated"
        for name in both:
            person = {"id": name, "primaryEmail": f"{name}@acme.example"}
            tell("User.Created", "09:00", data=person)
        tell("Organization.Created", "09:00", data={"id": "o1", "name": "A"})
        tell(change, "09:30", organizationId="o1", addedUserIds=both)
        database.execute("UPDATE memberships SET role = 'owner'")

        tell(change, "10:00", organizationId="o1", removedUserIds=both)

        assert not any(row.is_active for row in database.rows(Membership))
        assert len(ownerless()) == 1


class TestAssignedOwner:
    """A member of another role whom an assignment makes an owner."""

    @pytest.mark.parametrize("is_other_role", [True, False])
    @pytest.mark.parametrize("type_", ENDS)
    def test_counts_until_the_member_ends(self, deliver, join, type_, is_other_role):
        _, membership = join("u1", "member" if is_other_role else "owner")
        tenant = database.row(Tenant)
        create_assignment(tenant, "owner", membership_id=membership.id)

        deliver(type_, 10, **ENDS[type_])

        assert len(ownerless()) == (type_ != "membership.updated")

    @pytest.mark.parametrize("type_", ENDS)
    def test_remains_for_another(self, deliver, join, type_):
        join("u1", "owner")
        _, membership = join("u2", "viewer")
        create_assignment(database.row(Tenant), "owner", membership_id=membership.id)

        deliver(type_, 10, **ENDS[type_])

        assert ownerless() == []


class TestBesideAnotherTransaction:
    @pytest.mark.parametrize("type_", ENDS)
    @pytest.mark.parametrize("role", ["owner", "admin"])
    def test_that_leaves_the_user_the_last_owner_the_end_is_audited(
        self, app, sender, join, type_, role
    ):
        _, first = join("u1", role)
        _, other = join("u2", "owner")
        sender.post("standard_webhooks", body(type_, 10, **ENDS[type_]))
        with ThreadPoolExecutor(1) as threads, database.platform_transaction():
            if role == "admin":
                memberships.set_role(first.id, Role.OWNER, actor=SYSTEM_CLI)
                memberships.set_role(other.id, Role.VIEWER, actor=SYSTEM_CLI)
            else:
                memberships.set_active(other.id, False, actor=SYSTEM_CLI)
            results = threads.submit(work_off, app)
            database.wait_for_lock(results)

        assert [result.retry_in for result in results.result()] == [None]
        assert active_owners(database.row(Tenant)) == []
        assert len(ownerless()) == 1

    @pytest.mark.parametrize("role", ["owner", "admin"])
    def test_the_other_owner_stays_where_the_end_came_first(self, api, join, role):
        _, first = join("u1", role)
        other_user, other = join("u2", "owner")
        path, token = "/v1/memberships/tenant/{}/role?role={}", platform_token()
        at = datetime(2026, 1, 5, 10, tzinfo=UTC)
        end = UserEvent(object_id="u1", change=Change.UPDATED, occurred_at=at, active=False)
        with ThreadPoolExecutor(1) as threads:
            with database.platform_transaction():
                sync.apply([end], source="generic", event_id="e1", roles={})
                threads.submit(api.patch, path.format(first.id, "owner"), token=token)
                answer = threads.submit(api.patch, path.format(other.id, "viewer"), token=token)
                database.wait_for_lock(answer)

            assert answer.result().get_json()["code"] == "last_owner"
        assert active_owners(database.row(Tenant)) == [other_user.id]
        assert ownerless() == []

"""A tenant never loses its last active owner through the API, however changes interleave."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from random import Random

import pytest

from app.audit.models import AuditEvent
from app.auth.models import ApiKey
from app.auth.permissions import Role
from app.core.actors import SYSTEM_CLI
from app.core.clock import utcnow
from app.core.db.writes import insert_row
from app.memberships import service as memberships
from app.roles.models import AccessResource, AccessRole, RoleAssignment
from app.scim.models import ScimGroup, ScimMember, ScimUser
from app.users import service as users
from tests import database
from tests.concurrency import at_once
from tests.database import row
from tests.factories import (
    create_api_key,
    create_assignment,
    create_member,
    create_role,
    create_tenant,
    platform_token,
    platform_transaction,
    save,
)
from tests.scim.directory import create_connection

ROUNDS = 15  # of a race
ROLES = ("owner", "member")


def active_owners(tenant):
    found = database.query(
        "SELECT u.id FROM users u JOIN memberships m"
        " ON m.tenant_id = u.tenant_id AND m.user_id = u.id"
        " WHERE u.tenant_id = :tenant_id AND u.is_active AND m.role = 'owner' AND m.is_active",
        tenant_id=tenant.id,
    )
    return [row.id for row in found]


def ways_to_end(api, user, membership, token):
    """Each way in which the API can end an owner."""
    path = f"/v1/memberships/tenant/{membership.id}"
    return [
        partial(api.patch, f"{path}/role?role=admin", token=token),
        partial(api.patch, f"{path}/active?is_active=false", token=token),
        partial(api.patch, f"/v1/users/{user.id}", token=token, json={"is_active": False}),
    ]


def ways_to_end_assigned(api, user, membership, token):
    """Each way in which the API can end an owner by assignment."""
    assignment = row(RoleAssignment, membership_id=membership.id)
    remove = partial(api.delete, f"/v1/role-assignments/{assignment.id}", token=token)
    return [remove, *ways_to_end(api, user, membership, token)[1:]]


class TestRaces:
    def test_one_owner_remains_when_all_are_ended_at_once(self, api):
        random = Random(1)
        for _ in range(ROUNDS):
            tenant = create_tenant()
            owners = [create_member(tenant, role="owner") for _ in range(random.randint(2, 4))]
            by_platform = platform_token()

            answers = at_once(
                [
                    random.choice(ways_to_end(api, user, membership, by_platform))
                    for user, membership, _ in owners
                ]
            )

            codes = sorted(answer.status_code for answer in answers)
            assert codes == [200] * (len(owners) - 1) + [409]
            assert len(active_owners(tenant)) == 1

    def test_one_owner_remains_when_owners_end_one_another(self, api):
        random = Random(1)
        for _ in range(ROUNDS):
            tenant = create_tenant()
            owners = [create_member(tenant, role="owner") for _ in range(2)]
            (first, first_membership, first_token), (second, second_membership, second_token) = (
                owners
            )

            answers = at_once(
                [
                    random.choice(ways_to_end(api, second, second_membership, first_token)),
                    random.choice(ways_to_end(api, first, first_membership, second_token)),
                ]
            )

            assert len(active_owners(tenant)) == 1
            assert {answer.status_code for answer in answers} <= {200, 403, 409}

    def test_who_becomes_the_last_owner_meanwhile_stays_one(self, api, tenant):
        (_, first, _), (_, second, _) = (create_member(tenant, role=role) for role in ROLES)
        path, token = f"/v1/memberships/tenant/{second.id}/role?role=viewer", platform_token()
        with ThreadPoolExecutor(1) as threads, platform_transaction():
            memberships.set_role(second.id, Role.OWNER, actor=SYSTEM_CLI)
            memberships.set_role(first.id, Role.VIEWER, actor=SYSTEM_CLI)
            answer = threads.submit(api.patch, path, token=token)
            database.wait_for_lock(answer)

        assert answer.result().get_json()["code"] == "last_owner"

    def test_owners_changed_in_other_ways_do_not_stand_in_one_anothers_way(self, api, tenant):
        owners = [create_member(tenant, role="owner") for _ in range(3)]
        token = platform_token()
        renames = [
            partial(api.patch, f"/v1/users/{user.id}", token=token, json={"first_name": "X"})
            for user, _, _ in owners
        ]
        moves = [
            partial(
                api.patch, f"/v1/tenants/{tenant.id}", token=token, json={"idp_org_id": "moved"}
            )
        ]
        ends = [ways_to_end(api, user, membership, token)[0] for user, membership, _ in owners]

        answers = at_once([*renames, *moves, *ends])

        assert [answer.status_code for answer in answers[:4]] == [200] * 4
        assert len(active_owners(tenant)) == 1


class TestAllowOwnerless:
    def test_takes_the_last_owner_which_is_logged_and_audited(self, caplog, tenant):
        user, _, _ = create_member(tenant, role="owner")

        with platform_transaction():
            users.update(user.id, {"is_active": False}, actor=SYSTEM_CLI, allow_ownerless=True)

        assert active_owners(tenant) == []
        assert "tenant_ownerless" in caplog.messages
        events = database.rows(AuditEvent)
        actions = {event.action for event in events}
        assert len(events) == 2
        assert "tenant.ownerless" in actions
        (ownerless,) = [event for event in events if event.action == "tenant.ownerless"]
        assert (ownerless.actor, ownerless.target_id) == (SYSTEM_CLI.id, str(tenant.id))
        assert ownerless.before == {"owners": [str(user.id)]}


class TestAssignedOwners:
    """A member whom an assignment makes an owner, for the whole tenant and without an end."""

    @pytest.fixture
    def by_role(self, tenant):
        return create_member(tenant, role="owner")

    @pytest.fixture
    def by_assignment(self, tenant):
        user, membership, token = create_member(tenant, role="viewer")
        create_assignment(tenant, "owner", membership_id=membership.id)
        return user, membership, token

    def codes(self, api, ways):
        answers = [way() for way in ways]
        return [answer.get_json().get("code", answer.status_code) for answer in answers]

    def test_are_enough_for_a_tenant(self, api, by_role, by_assignment):
        user, membership, _ = by_role
        token = platform_token()

        for way in ways_to_end(api, user, membership, token):
            assert way().status_code == 200

    def test_of_whom_one_is_left_cannot_be_ended(self, api, by_assignment):
        user, membership, _ = by_assignment
        ways = ways_to_end_assigned(api, user, membership, platform_token())

        assert self.codes(api, ways) == ["last_owner"] * 3

    def test_may_get_another_role_of_their_membership(self, api, by_assignment):
        _, membership, _ = by_assignment
        path = f"/v1/memberships/tenant/{membership.id}/role"

        for role in ("admin", "owner", "member"):
            answer = api.patch(f"{path}?role={role}", token=platform_token())
            assert answer.status_code == 200, (role, answer.text)

    @pytest.mark.parametrize("role", ["owner", "admin"])
    def test_who_are_owners_by_role_too_may_lose_the_assignment(self, api, tenant, role):
        user, membership, _ = create_member(tenant, role=role)
        create_assignment(tenant, "owner", membership_id=membership.id)
        remove, *_ = ways_to_end_assigned(api, user, membership, platform_token())

        assert remove().status_code == (204 if role == "owner" else 409)

    def test_by_an_assignment_that_ends_may_lose_it(self, api, tenant, by_role):
        user, membership, _ = by_role
        end = utcnow() + timedelta(days=1)
        create_assignment(tenant, "owner", membership_id=membership.id, expires_at=end)
        remove, *_ = ways_to_end_assigned(api, user, membership, platform_token())

        assert remove().status_code == 204
        assert active_owners(tenant) == [user.id]

    def test_are_not_counted_for_each_other_in_both_ways(self, api, tenant, by_role):
        user, membership, _ = by_role
        create_assignment(tenant, "owner", membership_id=membership.id)
        role, *deactivations = ways_to_end(api, user, membership, platform_token())

        assert self.codes(api, [*deactivations, role]) == ["last_owner", "last_owner", 200]

    @pytest.mark.parametrize("kind", ["expires", "resource", "group", "key", "inherits"])
    def test_of_another_kind_do_not_count(self, api, tenant, by_role, kind):
        _, other, _ = create_member(tenant, role="viewer")
        values = {"membership_id": other.id}
        role = "owner"
        match kind:
            case "expires":
                values["expires_at"] = utcnow() + timedelta(days=1)
            case "resource":
                by = {"created_by_user_id": "cli:test", "updated_by_user_id": "cli:test"}
                place = {"type": "project", "id": "p1", "attributes": {}}
                save(AccessResource, tenant_id=tenant.id, **place, **by)
                values |= {"resource_type": "project", "resource_id": "p1"}
            case "group":
                key = {"tenant_id": tenant.id, "connection_id": create_connection(tenant)[0].id}
                group = save(ScimGroup, **key, display_name="A", display_name_key="a")
                save(ScimUser, **key, id=other.user_id, user_name="a", user_name_key="a")
                member = {"member_id": other.user_id, "user_id": other.user_id}
                save(ScimMember, tenant_id=tenant.id, group_id=group.id, **member)
                values = {"group_id": group.id}
            case "key":
                secret = create_api_key(tenant)
                values = {"api_key_id": row(ApiKey, prefix=secret[:8]).id}
            case "inherits":
                role = create_role(tenant, inherits="owner")
        create_assignment(tenant, role, **values)

        ways = ways_to_end(api, by_role[0], by_role[1], platform_token())

        assert self.codes(api, ways) == ["last_owner"] * 3

    @pytest.mark.parametrize("table", ["users", "memberships"])
    def test_who_are_inactive_do_not_count(self, api, by_role, by_assignment, table):
        ids = {"users": by_assignment[0].id, "memberships": by_assignment[1].id}
        database.execute(f"UPDATE {table} SET is_active = false WHERE id = :id", id=ids[table])

        ways = ways_to_end(api, by_role[0], by_role[1], platform_token())

        assert self.codes(api, ways) == ["last_owner"] * 3

    def test_one_owner_remains_when_all_are_ended_at_once(self, api):
        random = Random(1)
        for _ in range(ROUNDS):
            tenant = create_tenant()
            people = [create_member(tenant, role="owner") for _ in range(random.randint(1, 2))]
            assigned = [create_member(tenant, role="viewer") for _ in range(2)]
            for _, membership, _ in assigned:
                create_assignment(tenant, "owner", membership_id=membership.id)
            token = platform_token()
            ways = [random.choice(ways_to_end(api, *who[:2], token)) for who in people]
            ways += [random.choice(ways_to_end_assigned(api, *who[:2], token)) for who in assigned]
            random.shuffle(ways)

            answers = at_once(ways)

            codes = sorted(answer.status_code for answer in answers)
            assert codes[-2] < 300, codes
            assert codes[-1] == 409

    def test_become_one_while_the_last_other_ends(self, api, tenant, by_role):
        _, other, _ = create_member(tenant, role="viewer")
        path, token = f"/v1/memberships/tenant/{other.id}/active?is_active=false", platform_token()
        role = row(AccessRole, tenant_id=None, key="owner")
        with ThreadPoolExecutor(1) as threads, platform_transaction():
            locked = memberships.set_role(by_role[1].id, Role.OWNER, actor=SYSTEM_CLI)
            by = {"created_by_user_id": "cli:test", "updated_by_user_id": "cli:test"}
            values = {"tenant_id": tenant.id, "membership_id": other.id, "role_id": role.id}
            insert_row(RoleAssignment, {**values, **by, "source": "api"})
            memberships.set_role(locked.id, Role.VIEWER, actor=SYSTEM_CLI)
            answer = threads.submit(api.patch, path, token=token)
            database.wait_for_lock(answer)

        assert answer.result().get_json()["code"] == "last_owner"

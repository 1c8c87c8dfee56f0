"""A tenant never loses its last active owner through the API, however changes interleave."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from random import Random

import pytest

from app.audit.models import AuditEvent
from app.auth.permissions import Role
from app.core.actors import SYSTEM_CLI
from app.memberships import service as memberships
from app.users import service as users
from tests import database
from tests.concurrency import at_once
from tests.factories import create_member, create_tenant, platform_token, platform_transaction

ROUNDS = 10  # of each batch
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


class TestRaces:
    @pytest.mark.parametrize("batch", range(6))
    def test_one_owner_remains_when_all_are_ended_at_once(self, api, batch):
        random = Random(batch)
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

    @pytest.mark.parametrize("batch", range(2))
    def test_one_owner_remains_when_owners_end_one_another(self, api, batch):
        random = Random(batch)
        for _ in range(10):
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

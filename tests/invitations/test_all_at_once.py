"""Invitations while everything that can end or overtake them happens at the same moment."""

from app.audit.models import AuditEvent
from app.invitations.models import Invitation
from app.memberships.models import Membership
from app.privacy.jobs import delete_tenant
from app.tenants.models import Tenant
from app.users.models import User
from tests import database
from tests.concurrency import at_once
from tests.factories import create_member, platform_token
from tests.invitations.test_accept import EMAIL, PATH, accept, invite, seats
from tests.scim.directory import USER, Directory, create_connection

__all__ = ["accept", "invite"]
SUBJECT = "user_ada"
EXPECTED = {200, 201, 202, 204, 403, 404, 409, 410}


def test_nothing_is_half_done(app, api, tenant, sender, invite, accept):
    """Accept, revoke, suspend, erase, delete the tenant, a directory and an event, all at once."""
    create_member(tenant, role="owner")
    directory = Directory(app, create_connection(tenant)[1])
    invitation = invite()
    token = platform_token()
    pair = {"organization_id": tenant.idp_org_id, "user_id": SUBJECT, "role": "member"}

    def suspend_and_delete():
        path = f"/v1/tenants/{tenant.id}/active?is_active=false"
        assert api.patch(path, token=token).status_code == 200
        body = {"slug": tenant.slug}  # only a suspended tenant can be deleted
        return api.delete(f"/v1/tenants/{tenant.id}", token=token, json=body).status_code

    def erase():
        words = ["users", "erase", EMAIL, "--yes", "--json"]
        result = app.test_cli_runner().invoke(args=words)
        assert result.exit_code in (0, 1), result.output
        return 200 if result.exit_code == 0 else 404

    def provision():
        emails = [{"value": EMAIL, "primary": True}]
        person = {"schemas": [USER], "userName": EMAIL, "externalId": SUBJECT, "emails": emails}
        return directory.post("/Users", person).status_code

    def tell():
        sender.tell("membership.created", **pair)
        return 200

    ways = [
        lambda: accept(invitation).status_code,
        lambda: api.delete(f"{PATH}/{invitation['id']}", token=token).status_code,
        suspend_and_delete,
        erase,
        provision,
        tell,
    ]
    statuses = at_once(ways)

    assert set(statuses) <= EXPECTED, statuses
    left = database.rows(Invitation)  # the erasure may have removed it
    assert not any(one.accepted_at and one.revoked_at for one in left)
    users = {user.id: user for user in database.rows(User)}
    memberships = database.rows(Membership)
    assert len({user.idp_user_id for user in users.values()}) == len(users) <= 3
    assert len({row.user_id for row in memberships}) == len(memberships)
    active = [row for row in memberships if row.is_active and users[row.user_id].is_active]
    assert 0 <= seats(tenant) - len(active) <= len(left)
    made = [row.target_id for row in database.rows(AuditEvent, action="membership.created")]
    assert sorted(made) == sorted(str(row.id) for row in memberships if str(row.id) in made)
    database.execute("UPDATE tenants SET deletes_at = now()")
    with app.app_context():
        delete_tenant(str(tenant.id))
    assert database.rows(Tenant) == database.rows(User) == database.rows(Invitation) == []

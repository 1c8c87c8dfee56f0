"""/v1/setup-links."""

from datetime import timedelta

import pytest

from app.audit.models import AuditEvent
from app.auth.permissions import Permission
from app.core.clock import utcnow
from app.setup_links.models import SetupLink, SetupScope
from app.setup_links.service import MAX_LINKS
from app.users.models import User
from tests.concurrency import at_once
from tests.database import execute, row, rows
from tests.factories import create_api_key, create_member, create_tenant, platform_token

PATH = "/v1/setup-links"
ALL = [scope.value for scope in SetupScope]
NEEDED = {
    "scim": {"scim:read", "scim:write", "users:write", "memberships:write"},
    "domains": {"domains:read", "domains:write"},
    "sso": {"sso:read"},
    "webhook_endpoints": {"events:read", "events:write"},
    "log_streams": {"events:read", "log_streams:read", "log_streams:write"},
}


def make(api, token, **values):
    return api.post(PATH, token=token, json={"scopes": ALL, **values})


def made(api, token, **values):
    answer = make(api, token, **values)
    assert answer.status_code == 201, answer.text
    return answer.get_json()["data"]


class TestCreate:
    def test_shows_the_url_this_once_and_stores_a_digest(self, api, owner, tenant):
        answer = make(api, owner, contact="it@acme.example")

        created = answer.get_json()["data"]
        url = created.pop("url")
        shown = api.get(answer.headers["Location"], token=owner).get_json()["data"]
        secret = url.partition("?token=")[2]
        assert url.startswith("http://localhost/console/setup/open?token=setup_")
        assert shown == created
        assert (created["state"], created["opened_at"]) == ("unopened", None)
        assert created["tenant_id"] == str(tenant.id)
        assert created["scopes"] == sorted(ALL)
        stored = repr([*rows(SetupLink), *rows(AuditEvent)])
        assert secret not in stored
        assert row(SetupLink).digest not in repr(rows(AuditEvent))
        assert row(AuditEvent, action="setup_link.created").actor == str(row(User).id)

    @pytest.mark.parametrize("hours", [1, 72, 168])
    def test_ends_after_its_hours(self, api, owner, hours):
        values = {} if hours == 72 else {"expires_in_hours": hours}

        made(api, owner, **values)

        found = row(SetupLink)
        assert found.expires_at - found.created_at == pytest.approx(
            timedelta(hours=hours), abs=timedelta(seconds=5)
        )

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("scopes", []),
            ("scopes", ["billing"]),
            ("scopes", None),
            ("expires_in_hours", 0),
            ("expires_in_hours", 169),
            ("contact", "nobody"),
            ("tenant_id", ""),
        ],
    )
    def test_refuses_what_is_not_valid(self, api, owner, name, value):
        answer = make(api, owner, **{name: value})

        assert answer.status_code == 422
        assert answer.get_json()["detail"][0]["loc"][:2] == ["body", name]

    def test_of_another_tenant_is_not_found(self, api, owner):
        assert make(api, owner, tenant_id=str(create_tenant().id)).status_code == 404

    def test_of_a_platform_names_its_tenant(self, api, tenant):
        token = platform_token()

        created = made(api, token, tenant_id=str(tenant.id))

        assert created["tenant_id"] == str(tenant.id)
        assert make(api, token).get_json()["detail"][0]["type"] == "missing"

    @pytest.mark.parametrize("scope", ALL)
    def test_is_never_wider_than_its_maker(self, api, tenant, scope):
        base = {Permission.TENANTS_WRITE}
        needed = {Permission(name) for name in NEEDED[scope]}
        full = create_api_key(tenant, base | needed)

        assert make(api, full, scopes=[scope]).status_code == 201
        for lacking in needed:
            partial = create_api_key(tenant, base | needed - {lacking})
            answer = make(api, partial, scopes=[scope])
            assert answer.status_code == 403
            assert lacking in answer.get_json()["detail"]

    def test_ends_with_the_key_that_makes_it(self, api, tenant):
        end = utcnow() + timedelta(hours=2)
        permissions = [Permission.TENANTS_WRITE, *map(Permission, NEEDED["scim"])]
        key = create_api_key(tenant, permissions, expires_at=end)

        made(api, key, scopes=["scim"])

        assert row(SetupLink).expires_at == end

    def test_a_tenant_has_few_at_a_time(self, api, owner):
        answers = at_once([lambda: make(api, owner).status_code] * (MAX_LINKS + 3))

        assert sorted(answers) == [201] * MAX_LINKS + [409] * 3
        execute("UPDATE setup_links SET revoked_at = now()")
        assert make(api, owner).status_code == 201

    def test_a_member_cannot_make_one(self, api, tenant):
        _, _, token = create_member(tenant, "member")

        assert make(api, token).status_code == 403


class TestList:
    def test_shows_the_state_by_the_clock(self, api, owner):
        for _ in range(4):
            made(api, owner)
        first, two, three, _ = sorted(rows(SetupLink), key=lambda each: each.id)
        execute("UPDATE setup_links SET opened_at = now() WHERE id <> :id", id=first.id)
        execute("UPDATE setup_links SET revoked_at = now() WHERE id = :id", id=two.id)
        execute("UPDATE setup_links SET expires_at = now() WHERE id = :id", id=three.id)

        def states(**query):
            answer = api.get(PATH, token=owner, query_string=query)
            return [each["state"] for each in answer.get_json()["data"]]

        assert states(order="created_at") == ["unopened", "revoked", "expired", "opened"]
        for state in ("unopened", "revoked", "expired", "opened"):
            assert states(state=state) == [state]
        assert api.get(PATH, token=owner, query_string={"state": "x"}).status_code == 422


class TestRevoke:
    def test_changes_nothing_the_second_time(self, api, owner):
        path = f"{PATH}/{made(api, owner)['id']}"

        answers = [api.delete(path, token=owner).status_code for _ in range(2)]

        assert answers == [204, 204]
        assert api.get(path, token=owner).get_json()["data"]["state"] == "revoked"
        actions = [each.action for each in rows(AuditEvent)]
        assert actions == ["setup_link.created", "setup_link.revoked"]

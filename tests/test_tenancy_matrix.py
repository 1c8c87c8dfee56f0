"""Every operation of the OpenAPI document against every credential that it must refuse.

The requests are made from the document: a new endpoint is covered without being named here.
"""

import time
from uuid import UUID

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from app.auth.permissions import ALL, ROLE_PERMISSIONS, TENANT, Permission, Role
from app.core.clock import utcnow
from app.dev.demo.seed import seed_demo
from app.tenants.models import Tenant
from tests.database import execute, row
from tests.document import IGNORE_UNKNOWN_QUERY, Operation, find_row, operations
from tests.factories import (
    create_api_key,
    create_assignment,
    create_domain,
    create_hold,
    create_invitation,
    create_join_request,
    create_log_stream,
    create_lot,
    create_member,
    create_permission,
    create_resource,
    create_role,
    create_setup_link,
    create_sso_connection,
    create_tenant,
    create_webhook_endpoint,
    platform_token,
)
from tests.scim.directory import create_connection

# It has an error body of its own, without our codes. It evaluates flags for suspended tenants too,
# and keys that do not exist are an answer.
OFREP = "/ofrep/v1/evaluate/"
# Presets belong to no tenant: whoever reads flags reads them.
GLOBAL = "/v1/billing/plans"


@pytest.fixture
def document(app):
    return app.test_client().get("/openapi.json").get_json()


ALSO = {
    "/v1/setup-links": [
        *("scim:read", "scim:write", "users:write", "memberships:write"),
        *("events:read", "events:write"),
    ],
    "/v1/webhook-endpoints": ["events:read"],
    "/v1/log-streams": ["events:read"],
    "/v1/log-streams/{stream_id}/rewind": ["events:read"],
}
"""Permissions that the body of a request needs too, by path."""


@pytest.fixture
def guarded(document):
    found = [one for one in operations(document) if one.permission is not None]
    assert len(found) > 40
    return found


def send(api, operation: Operation, token: str | None, *, row_id: str = "x", **query: str):
    return api.request(
        operation.method.upper(),
        operation.path_of(row_id),
        token=token,
        query_string={**operation.query, **query},
        json=operation.body,
    )


def refused(api, found, token, expected, **query) -> list[str]:
    """The operations that did not answer ``expected`` (status, code)."""
    wrong = []
    for operation in found:
        answer = send(api, operation, token, **query)
        given = (answer.status_code, answer.get_json().get("code"))
        is_ofrep = operation.path.startswith(OFREP)
        if given != ((expected[0], None) if is_ofrep else expected):
            wrong.append(f"{operation.name}: {given}")
        if answer.status_code == 401:
            assert answer.headers["WWW-Authenticate"] == "Bearer"
    return wrong


def signed(app, key, *, algorithm="EdDSA", **claims):
    config = app.extensions["config"]
    now = int(time.time())
    standard = {"iss": config.jwt_issuer, "aud": config.jwt_audience, "iat": now, "exp": now + 600}
    return jwt.encode({**standard, **claims}, key, algorithm=algorithm)


class TestAuthentication:
    """401, whatever is asked for, before anything else is looked at."""

    @pytest.fixture
    def owner(self, app):
        return create_member(create_tenant(), role="owner")[0]

    @pytest.fixture
    def claims(self, owner):
        return {"sub": owner.idp_user_id, "org_id": owner.idp_org_id}

    def test_no_credential(self, api, guarded):
        assert refused(api, guarded, None, (401, None)) == []

    def test_no_bearer(self, api, guarded):
        for scheme in ("Basic dTpw", "Bearer", "Bearer ", "sk_x"):
            answer = api.get("/v1/users", headers={"Authorization": scheme})
            assert answer.status_code == 401

    def test_wrong_signature(self, api, app, guarded, claims):
        token = signed(app, Ed25519PrivateKey.generate(), **claims)

        assert refused(api, guarded, token, (401, None)) == []

    def test_unknown_key(self, api, guarded):
        assert refused(api, guarded, "sk_unknown", (401, None)) == []

    def test_revoked_key(self, api, guarded):
        for tenant in (create_tenant(), None):
            secret = create_api_key(tenant, ALL, revoked_at=utcnow())
            assert refused(api, guarded, secret, (401, None)) == []

    def test_expired_key(self, api, guarded):
        secret = create_api_key(None, ALL, expires_at=utcnow())

        assert refused(api, guarded, secret, (401, None)) == []


class TestPermission:
    """403 without the permission, before the request is validated."""

    @pytest.mark.parametrize("role", list(Role))
    def test_a_role_that_lacks_it(self, api, guarded, role):
        _, _, token = create_member(create_tenant(), role=role)

        lacking = [
            one
            for one in guarded
            if one.is_for_the_platform or one.permission not in ROLE_PERMISSIONS[role]
        ]

        assert refused(api, lacking, token, (403, "permission_denied")) == []

    @pytest.mark.parametrize("role", list(Role))
    def test_a_role_that_has_it_gets_further(self, api, guarded, role):
        _, _, token = create_member(create_tenant(), role=role)

        for one in guarded:
            if not one.is_for_the_platform and one.permission in ROLE_PERMISSIONS[role]:
                answer = send(api, one, token)
                code = (answer.get_json(silent=True) or {}).get("code")
                assert code != "permission_denied", one.name

    @pytest.mark.parametrize("of_tenant", [True, False], ids=["tenant's key", "platform key"])
    def test_a_key_that_has_every_other_one(self, api, guarded, of_tenant):
        tenant = create_tenant() if of_tenant else None
        every = TENANT if of_tenant else ALL - {"platform:superadmin"}
        wrong = []
        for one in guarded:
            secret = create_api_key(tenant, every - {one.permission})
            wrong += refused(api, [one], secret, (403, "permission_denied"))

        assert wrong == []

    def test_a_key_that_has_only_that_one_gets_further(self, api, guarded):
        for one in guarded:
            answer = send(api, one, create_api_key(None, [one.permission, *ALSO.get(one.path, ())]))
            code = (answer.get_json(silent=True) or {}).get("code")
            assert code != "permission_denied", one.name

    def test_a_member_of_nothing(self, api, app, guarded):
        user, _, _ = create_member(create_tenant(), role="owner")
        key = app.extensions["config"].jwt_signing_key
        other = create_tenant()

        for org_id in (other.idp_org_id, "unknown"):
            token = signed(app, key, sub=user.idp_user_id, org_id=org_id)
            assert refused(api, guarded, token, (403, "no_membership")) == []
        assert refused(api, guarded, signed(app, key, sub="x"), (403, "no_membership")) == []

    @pytest.mark.parametrize("values", [{"user": False}, {"membership": False}])
    def test_an_inactive_member(self, api, guarded, values):
        tenant = create_tenant()
        user, membership, token = create_member(tenant, role="owner")
        path = f"/v1/users/{user.id}"
        if "membership" in values:
            path = f"/v1/memberships/tenant/{membership.id}/active?is_active=false"
        create_member(tenant, role="owner")
        assert api.patch(path, token=platform_token(), json={"is_active": False}).status_code == 200

        assert refused(api, guarded, token, (403, "no_membership")) == []


class TestSuspension:
    """403 ``tenant_suspended`` for every credential of the tenant, none for the platform's."""

    def test_a_suspended_tenants_credentials(self, api, guarded):
        tenant = create_tenant(is_active=False)
        stopped = [one for one in guarded if not one.path.startswith("/ofrep/")]

        for role in Role:
            _, _, token = create_member(tenant, role=role)
            assert refused(api, stopped, token, (403, "tenant_suspended")) == []
        secret = create_api_key(tenant, TENANT)
        assert refused(api, stopped, secret, (403, "tenant_suspended")) == []

    def test_flags_are_evaluated_all_the_same(self, api, guarded):
        token = create_api_key(create_tenant(is_active=False), ["users:read"])
        _, _, allowed = create_member(create_tenant(is_active=False), role="viewer")
        evaluated = [one for one in guarded if one.path.startswith(OFREP)]

        assert len(evaluated) == 2
        for one in evaluated:
            assert send(api, one, token).status_code == 403
            assert send(api, one, allowed).status_code in (200, 404)

    def test_platform_credentials_go_on(self, api, guarded):
        tenant = create_tenant(is_active=False)
        token = platform_token(tenant=tenant)

        for one in guarded:
            answer = send(api, one, token)
            assert answer.status_code not in (401, 403), one.name


class TestOtherTenants:
    """404, or an empty list, for what belongs to another tenant."""

    @pytest.fixture
    def world(self, app):
        with app.app_context():
            demo = seed_demo()
        create_permission("invoices:approve")
        for tenant in demo["tenants"]:
            create_api_key_in(tenant)
            for kind in ("hold", "lease"):
                create_hold(UUID(tenant["tenant_id"]), kind=kind)
            create_lot(UUID(tenant["tenant_id"]))
            for _ in range(2):  # one is revoked
                create_invitation(UUID(tenant["tenant_id"]))
            create_setup_link(UUID(tenant["tenant_id"]))
            for _ in range(2):
                create_domain(row(Tenant, id=UUID(tenant["tenant_id"])))
                create_join_request(row(Tenant, id=UUID(tenant["tenant_id"])))
            for _ in range(2):  # one is deleted
                create_webhook_endpoint(UUID(tenant["tenant_id"]))
                create_log_stream(UUID(tenant["tenant_id"]))
            create_connections_in(tenant)
            create_sso_connection(UUID(tenant["tenant_id"]))
            owned = row(Tenant, id=UUID(tenant["tenant_id"]))
            for user in tenant["users"][:2]:  # one is deleted
                role, member = create_role(owned), UUID(user["membership_id"])
                create_assignment(owned, role, membership_id=member)
            create_role(owned)
            create_resource(owned, owned.slug, owned.slug)  # one name for its whole path
        execute("UPDATE tenants SET created_at = '2026-01-01Z'")  # before the moments of examples
        return demo

    def test_another_tenants_rows_do_not_exist(self, api, world, guarded):
        first, second = world["tenants"]
        of_owners = [tenant["users"][0]["token"] for tenant in (first, second)]
        of_meters = [
            create_api_key(row(Tenant, id=UUID(tenant["tenant_id"])), [Permission.USAGE_WRITE])
            for tenant in (first, second)
        ]
        wrong, controls = [], 0
        for one in guarded:
            if not one.names_a_row or one.is_for_the_platform or is_global(one):
                continue
            row_id = find_row(api, one, first["tenant_id"], world["platform_token"])
            own, other = of_meters if one.permission == Permission.USAGE_WRITE else of_owners
            foreign, mine = send(api, one, other, row_id=row_id), send(api, one, own, row_id=row_id)
            body = foreign.get_json()
            code = body.pop("code", None)  # the tests' client compares it with the document
            is_as_unknown = (foreign.status_code, body) == (404, {"detail": "Not Found"})
            if not is_as_unknown or (code is None) != (one.name in IGNORE_UNKNOWN_QUERY):
                wrong.append(f"{one.name}: {foreign.status_code} {foreign.text[:100]}")
            if mine.status_code in (401, 404, 422):
                wrong.append(f"{one.name} (own): {mine.status_code} {mine.text[:100]}")
            controls += 1

        assert wrong == []
        assert controls > 15

    def test_another_tenant_cannot_be_named(self, api, world, guarded):
        first, second = world["tenants"]
        other = second["users"][0]["token"]
        wrong, named = [], 0
        for one in guarded:
            if not one.takes_a_tenant or one.is_for_the_platform:
                continue
            answer = send(api, one, other, tenant_id=first["tenant_id"])
            is_empty_list = answer.status_code == 200 and (
                answer.get_json() in ({"data": [], "next_cursor": None}, {"data": []})
                or (answer.mimetype == "text/csv" and len(answer.text.splitlines()) == 1)
            )
            if answer.status_code not in (403, 404) and not is_empty_list:
                wrong.append(f"{one.name}: {answer.status_code} {answer.text[:100]}")
            named += 1

        assert wrong == []
        assert named > 10

    def test_lists_show_nothing_of_another_tenant(self, api, world, guarded):
        first, second = world["tenants"]
        token = second["users"][0]["token"]
        foreign = {first["tenant_id"], first["idp_org_id"], first["subscription_id"]}
        foreign |= {user["id"] for user in first["users"]}

        for one in guarded:
            if one.is_change or one.names_a_row or one.is_for_the_platform or one.is_stream:
                continue
            answer = send(api, one, token)
            assert answer.status_code == 200, one.name
            assert not any(name in answer.text for name in foreign), one.name

    def test_the_platform_lists_every_tenant_or_one(self, api, world, guarded):
        ids = [tenant["tenant_id"] for tenant in world["tenants"]]
        counted = 0
        for one in guarded:
            if one.is_change or one.names_a_row or not one.takes_a_tenant:
                continue
            token = world["platform_token"]
            every, first = send(api, one, token).text, send(api, one, token, tenant_id=ids[0]).text
            if all(f'"tenant_id":"{name}"' in every for name in ids):
                assert f'"tenant_id":"{ids[0]}"' in first, one.name
                assert f'"tenant_id":"{ids[1]}"' not in first, one.name
                counted += 1

        assert counted > 5


def create_connections_in(tenant: dict) -> None:
    """SCIM connections: the request that deletes one leaves others."""

    class Named:
        id = tenant["tenant_id"]

    for name in ("first", "second"):
        create_connection(Named, name=name)


def create_api_key_in(tenant: dict) -> None:
    class Named:
        id = tenant["tenant_id"]

    create_api_key(Named, ["users:read"])


def is_global(operation: Operation) -> bool:
    """Whether its path names what many tenants have: a preset, a permission, a flag's key.

    Each tenant can set a resource of any name.
    """
    return (
        operation.collection in (GLOBAL, "/v1/permissions")
        or operation.name == "PUT /v1/resources/{resource_type}/{resource_id}"
        or "{key}" in operation.path
        or operation.path.startswith(OFREP)
    )

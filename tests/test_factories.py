"""The factories make credentials that the service accepts."""

from app.auth.permissions import ALL, ROLE_PERMISSIONS, Permission
from app.auth.principals import Principal, key_principal, user_principal
from app.core.db.transactions import transaction
from tests.factories import create_api_key, create_member, create_tenant, platform_token


def principal_of(app, token: str) -> Principal:
    with app.app_context(), transaction():
        claims = app.extensions["token_verifier"].verify(token)
        return user_principal(claims)


class TestCredentials:
    def test_a_members_token_acts_with_the_role(self, app):
        tenant = create_tenant()
        user, _, token = create_member(tenant, role="viewer")

        principal = principal_of(app, token)

        assert principal.tenant_id == tenant.id
        assert principal.actor.id == str(user.id)
        assert principal.permissions == ROLE_PERMISSIONS["viewer"]

    def test_a_platform_token_sees_every_tenant(self, app):
        tenant = create_tenant()

        principal = principal_of(app, platform_token(tenant=tenant))

        assert principal.is_platform
        assert principal.home_tenant_id == tenant.id
        assert principal.permissions == ALL

    def test_an_api_key_has_its_permissions_in_its_tenant(self, app):
        tenant = create_tenant()
        secret = create_api_key(tenant, [Permission.BILLING_READ])

        with app.app_context(), transaction():
            principal = key_principal(secret)

        assert principal.tenant_id == tenant.id
        assert principal.permissions == {Permission.BILLING_READ}

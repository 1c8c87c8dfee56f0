"""Roles and their permissions."""

import pytest

from app.auth.permissions import ROLE_PERMISSIONS, TENANT, Permission, Role

READERS = "tenants:read users:read memberships:read custom_fields:read flags:read usage:read"
TABLE = {
    Role.OWNER: " ".join(TENANT - {"usage:write"}),
    Role.ADMIN: " ".join(TENANT - {"usage:write"}),
    Role.BILLING: "billing:read billing:write tenants:read users:read memberships:read flags:read usage:read",
    Role.MEMBER: READERS,
    Role.VIEWER: READERS,
}


class TestRoles:
    @pytest.mark.parametrize("role", list(Role))
    def test_have_the_permissions_of_the_documented_table(self, role):
        assert ROLE_PERMISSIONS[role] == set(TABLE[role].split())

    def test_only_platform_credentials_have_the_permissions_of_the_platform(self):
        assert set(Permission) - TENANT == {
            "platform:superadmin",
            "webhooks:read",
            "webhooks:write",
        }

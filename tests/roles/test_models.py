"""The templates that the migration adds."""

from app.auth.permissions import ROLE_PERMISSIONS
from tests import database


class TestTemplates:
    def test_the_five_roles_have_their_permissions(self, app):
        rows = database.query(
            "SELECT key, permissions, inherits FROM roles WHERE tenant_id IS NULL"
        )

        assert {key: (permissions, inherits) for key, permissions, inherits in rows} == {
            role.value: (sorted(permissions), None)
            for role, permissions in ROLE_PERMISSIONS.items()
        }

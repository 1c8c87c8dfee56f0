"""Rows of roles, resources and assignments, for tests of decisions."""

from typing import Any

from app.core.actors import SYSTEM_CLI
from app.roles.models import AccessResource, AccessRole, ProductPermission, RoleAssignment
from tests.factories import save

BY = {"created_by_user_id": SYSTEM_CLI.id, "updated_by_user_id": SYSTEM_CLI.id}


def create_permission(key: str, **values: Any) -> ProductPermission:
    defaults = {"description": "", "group_name": "", "requires_flag": None, "requires_limit": None}
    return save(ProductPermission, key=key, **defaults | values, **BY)


def create_role(tenant: Any, key: str, permissions: Any = (), **values: Any) -> AccessRole:
    defaults = {"name": key, "inherits": None, "assignable_by": "admin"}
    tenant_id = None if tenant is None else tenant.id
    values = {**defaults, **values, "permissions": list(permissions)}
    return save(AccessRole, tenant_id=tenant_id, key=key, **values, **BY)


def create_resource(
    tenant: Any, type_: str, id_: str, parent: Any = None, **attributes: Any
) -> AccessResource:
    above = {"parent_type": parent and parent.type, "parent_id": parent and parent.id}
    values = {"type": type_, "id": id_, "attributes": attributes, **above}
    return save(AccessResource, tenant_id=tenant.id, **values, **BY)


def assign(tenant: Any, role: Any, resource: Any = None, **values: Any) -> RoleAssignment:
    """Give the role to a ``membership_id``, ``group_id`` or ``api_key_id``."""
    place = {
        "resource_type": resource and resource.type,
        "resource_id": resource and resource.id,
    }
    targets = {"membership_id": None, "group_id": None, "api_key_id": None, "expires_at": None}
    values = {**targets, "source": "api", **place, **values}
    return save(RoleAssignment, tenant_id=tenant.id, role_id=role.id, **values, **BY)

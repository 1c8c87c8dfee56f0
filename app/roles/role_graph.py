"""The roles that a tenant can use, and which of them inherit which. Nothing here reads or writes."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from app.auth.permissions import Role
from app.core.errors import Conflict
from app.roles.models import AccessRole

ALL_OF_PRODUCT = "every permission of the product"
MAX_ROLES = 50  # of a tenant, and of templates
MAX_CHAIN = 5  # roles: one, what it inherits, what that inherits, …


class TooManyRoles(Conflict):
    code = "too_many_roles"
    detail = f"A tenant can have at most {MAX_ROLES} roles; delete one first."


class RoleCycle(Conflict):
    code = "role_cycle"
    detail = "A role cannot inherit itself, directly or by other roles."


class RoleTooDeep(Conflict):
    code = "role_too_deep"
    detail = f"At most {MAX_CHAIN} roles can inherit one another in a row."


class RoleGraph:
    """A tenant's own roles and the templates; of the platform, only the templates."""

    def __init__(self, roles: Iterable[AccessRole]) -> None:
        self.by_key = {role.key: role for role in roles}
        self.by_id = {role.id: role for role in self.by_key.values()}

    def permissions_of(self, key: str) -> frozenset[str]:
        """The permissions of a role and of those that it inherits; nothing for an unknown key.

        The owner's role, and each that inherits it, has :data:`ALL_OF_PRODUCT` too.
        """
        chain = chain_of(self, key) if key in self.by_key else []
        found = frozenset(permission for role in chain for permission in role.permissions)
        is_owners = any(role.key == Role.OWNER for role in chain)
        return found | {ALL_OF_PRODUCT} if is_owners else found


def check_room(roles: RoleGraph, tenant_id: UUID | None) -> None:
    """Raise TooManyRoles if the tenant (None: the platform) can have no further role."""
    if sum(role.tenant_id == tenant_id for role in roles.by_key.values()) >= MAX_ROLES:
        raise TooManyRoles


def with_role(roles: RoleGraph, role: AccessRole) -> RoleGraph:
    """The graph after a role was added or changed. Raises RoleCycle and RoleTooDeep."""
    changed = RoleGraph((roles.by_key | {role.key: role}).values())
    for key in changed.by_key:
        chain_of(changed, key)
    return changed


def chain_of(roles: RoleGraph, key: str) -> list[AccessRole]:
    """A role, what it inherits, and so on. Raises RoleCycle and RoleTooDeep."""
    found: list[AccessRole] = []
    next_key: str | None = key
    while next_key is not None:
        role = roles.by_key[next_key]
        if role in found:
            raise RoleCycle
        found.append(role)
        next_key = role.inherits
    if len(found) > MAX_CHAIN:
        raise RoleTooDeep
    return found

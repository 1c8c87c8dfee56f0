"""The roles that a tenant can use, and which of them inherit which. Nothing here reads or writes."""

from __future__ import annotations

from collections.abc import Iterable

from app.core.errors import Conflict
from app.roles.models import AccessRole

MAX_CHAIN = 5  # roles: one, what it inherits, what that inherits, …


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

    def having(self, role: AccessRole) -> RoleGraph:
        """The graph after a role was added or changed. Raises RoleCycle and RoleTooDeep."""
        graph = RoleGraph((self.by_key | {role.key: role}).values())
        for key in graph.by_key:
            graph.chain(key)
        return graph

    def chain(self, key: str) -> list[AccessRole]:
        """A role, what it inherits, and so on. Raises RoleCycle and RoleTooDeep."""
        found: list[AccessRole] = []
        next_key: str | None = key
        while next_key is not None:
            role = self.by_key[next_key]
            if role in found:
                raise RoleCycle
            found.append(role)
            next_key = role.inherits
        if len(found) > MAX_CHAIN:
            raise RoleTooDeep
        return found

    def permissions_of(self, key: str) -> frozenset[str]:
        """The permissions of a role and of those that it inherits; nothing for an unknown key."""
        chain = self.chain(key) if key in self.by_key else []
        return frozenset(permission for role in chain for permission in role.permissions)

    def heirs(self, key: str) -> list[AccessRole]:
        """The roles that inherit this one directly."""
        return [role for role in self.by_key.values() if role.inherits == key]

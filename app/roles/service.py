"""Roles: create, change, delete. Those without a tenant are templates, which every tenant has."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any
from uuid import UUID

from sqlalchemy import bindparam, or_, select

from app.audit.service import record, record_creation
from app.auth.permissions import ASSIGNABLE, ROLE_PERMISSIONS, Role
from app.core.actors import Actor
from app.core.db import queries
from app.core.db.list_conditions import Condition
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.db.queries import Change, check_precondition
from app.core.db.statements import Statement
from app.core.db.tenancy import current_scope
from app.core.db.writes import insert_row
from app.core.errors import Conflict, Forbidden, Invalid, NotFound, value_error
from app.roles import authority, role_assignments
from app.roles.models import AccessRole
from app.roles.product_permissions import check_exist
from app.roles.role_graph import MAX_CHAIN, RoleGraph, RoleTooDeep, chain_of, check_room, with_role

MAX_REPLACED = 1_000  # assignments and roles, of one request
FIXED = frozenset(Role)

TEMPLATES = Condition(AccessRole.tenant_id.is_(None), {})
OWN = Condition(AccessRole.tenant_id.is_not(None), {})
OF_TENANT = or_(AccessRole.tenant_id == bindparam("of_tenant"), AccessRole.tenant_id.is_(None))
FIND_HEIRS = Statement(
    "roles.find_heirs",
    select(AccessRole).where(AccessRole.inherits == bindparam("key")).limit(bindparam("limit")),
)
DEEPEST_HEIR = Statement(
    "roles.deepest_heir",
    """
    WITH RECURSIVE heirs AS (
        SELECT tenant_id, key, 1 AS level FROM roles WHERE inherits = :key
        UNION ALL
        SELECT r.tenant_id, r.key, h.level + 1 FROM heirs h JOIN roles r
            ON r.inherits = h.key AND (h.tenant_id IS NULL OR r.tenant_id = h.tenant_id)
        WHERE h.level < :most
    ) SELECT coalesce(max(level), 0) FROM heirs
    """,
)
"""How many roles, of any tenant, inherit a template in a row."""


class RoleExists(Conflict):
    code = "role_exists"
    detail = "A role or a template has this key already."


class RoleInUse(Conflict):
    code = "role_in_use"
    detail = "The role is assigned or inherited; name another one in `replace_with`."


class RoleFixed(Conflict):
    code = "role_fixed"
    detail = (
        "Of the five roles of memberships only the name and the product permissions can change,"
        " of the owner nothing."
    )


class HigherRoleLacks(Conflict):
    code = "higher_role_lacks"
    detail = "What one of the five roles has of the product, each higher one must have too."


class TemplateReadOnly(Forbidden):
    code = "template_read_only"
    detail = "Only the platform can change a template; make a role that inherits it."


def get_role(role_id: UUID | str) -> AccessRole:
    """A role that the scope can use; raises NotFound."""
    return queries.get_row(AccessRole, role_id)


def list_roles(
    paging: Paging = FIRST_PAGE,
    *,
    tenant_id: UUID | None = None,
    is_template: bool | None = None,
    **equal: Any,
) -> Page:
    """One page of a tenant's roles and the templates; of the platform without tenant all roles."""
    own = current_scope().tenant_id
    shown = tenant_id or own
    if own not in (None, shown):
        return Page([], None)
    conditions = []
    if shown is not None:  # there are few, so no further condition on the tenant is needed
        conditions.append(Condition(OF_TENANT, {"of_tenant": shown}, finds_ids=True))
    if is_template is not None:
        conditions.append(TEMPLATES if is_template else OWN)
    return paginate(AccessRole, paging, *conditions, equal=equal)


def create(tenant_id: UUID | None, values: Mapping[str, Any], *, actor: Actor) -> AccessRole:
    """Create a role; with ``tenant_id`` None a template.

    Raises RoleExists, TooManyRoles, RoleCycle, RoleTooDeep, RoleAboveOwn, and Invalid for unknown
    permissions or an unknown role to inherit.
    """
    _check_may_edit(tenant_id, actor)
    roles = authority.lock(tenant_id)
    key = values["key"]
    if key in roles.by_key or (tenant_id is None and queries.find_row(AccessRole, key=key)):
        raise RoleExists
    check_room(roles, tenant_id)
    role = insert_row(AccessRole, {**actor.authorship, **_stored(values), "tenant_id": tenant_id})
    _check(role, roles, actor=actor)
    record_creation("role.created", role, actor=actor)
    return role


def update(
    role_id: UUID | str, values: Mapping[str, Any], *, actor: Actor, with_ranks: bool = True
) -> AccessRole:
    """Change a role; whoever has it has what it says at the next request.

    Raises what :func:`create` raises, RoleFixed and TemplateReadOnly. The actor needs the
    permissions that the role had, too. ``with_ranks`` False leaves :func:`check_ranks` to the caller.
    """
    before, roles = _lock(role_id, actor)
    check_precondition(before)
    authority.check_may_give(before, roles, before.tenant_id, actor=actor)
    role, change = queries.update_row(AccessRole, before, _stored(values), actor_id=actor.id)
    if change is not None:
        if before.tenant_id is None and before.key in FIXED:
            _check_fixed(role, change)
            if with_ranks:
                check_ranks(with_role(roles, role))
        _check(role, roles, actor=actor)
        record("role.updated", role, change, actor=actor)
    return role


def check_ranks(templates: RoleGraph) -> None:
    """Raise HigherRoleLacks unless each of the five roles has what lower ones have of the product.

    So a member who gives a role by rank gives no permission that they lack.
    """
    for higher, lower in pairwise([*Role][1:]):  # the owner has all
        given = {*templates.by_key[lower].permissions} - ASSIGNABLE
        missing = sorted(given.difference(templates.by_key[higher].permissions))
        if missing:
            raise HigherRoleLacks(f"The role {higher} lacks {missing[0]}, which {lower} has.")


def delete(role_id: UUID | str, *, replace_with: str | None = None, actor: Actor) -> None:
    """Delete a role. Assignments and roles that inherit it get the role ``replace_with``, if given.

    Raises RoleInUse without it, or for more than :data:`MAX_REPLACED` uses; RoleFixed,
    TemplateReadOnly, RoleAboveOwn, RoleCycle, RoleTooDeep, and Invalid for an unknown
    ``replace_with``.
    """
    role, roles = _lock(role_id, actor)
    check_precondition(role)
    if role.tenant_id is None and role.key in FIXED:
        raise RoleFixed
    heirs = [other for other in roles.by_key.values() if other.inherits == role.key]
    if role.tenant_id is None:  # the roles of all tenants
        heirs = FIND_HEIRS.all(key=role.key, limit=MAX_REPLACED + 1)
    uses = len(heirs) + role_assignments.COUNT_OF_ROLE.scalar(
        role_id=role.id, limit=MAX_REPLACED + 1
    )
    if uses and (replace_with is None or uses > MAX_REPLACED):
        number = f"more than {MAX_REPLACED:,}" if uses > MAX_REPLACED else f"{uses}"
        raise RoleInUse(f"The role is assigned or inherited {number} times.")
    if uses and replace_with is not None:
        other = roles.by_key.get(replace_with)
        if other is None or other == role:
            reason = "there is no other role of this key"
            raise Invalid(value_error(["query", "replace_with"], reason, replace_with))
        authority.check_may_give(other, roles, role.tenant_id, actor=actor)
        for heir in heirs:
            heir, change = queries.update_row(
                AccessRole, heir, {"inherits": other.key}, actor_id=actor.id
            )
            roles = _with(heir, roles)
            record("role.updated", heir, change, actor=actor)
        role_assignments.replace_role(role, other, actor=actor)
    queries.delete_row(AccessRole, role)
    record("role.deleted", role, Change(role._asdict(), {}), actor=actor)


def _lock(role_id: UUID | str, actor: Actor) -> tuple[AccessRole, RoleGraph]:
    """The role and the others of its tenant, in the order of editors."""
    tenant_id = get_role(role_id).tenant_id
    _check_may_edit(tenant_id, actor)
    roles = authority.lock(tenant_id)
    role = roles.by_id.get(queries.parse_id(role_id, AccessRole))
    if role is None:  # another editor has deleted it meanwhile
        raise NotFound.of(AccessRole)
    return role, roles


def _check_may_edit(tenant_id: UUID | None, actor: Actor) -> None:
    if tenant_id is None and actor.role is not None:
        raise TemplateReadOnly


def _stored(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values as columns have them: permissions in order, each once."""
    stored = dict(values)
    if "permissions" in stored:
        stored["permissions"] = sorted({*stored["permissions"]})
    if "assignable_by" in stored:
        stored["assignable_by"] = str(stored["assignable_by"])
    return stored


def _check(role: AccessRole, roles: RoleGraph, *, actor: Actor) -> None:
    """Raise if the role, as it is after the change, cannot be so or is above its editor."""
    check_exist(role.permissions)
    if role.inherits is not None and role.inherits not in roles.by_key:
        reason = "there is no role of this key"
        raise Invalid(value_error(["body", "inherits"], reason, role.inherits))
    authority.check_may_give(role, _with(role, roles), role.tenant_id, actor=actor)


def _with(role: AccessRole, roles: RoleGraph) -> RoleGraph:
    """The graph with the changed role. Raises RoleCycle and RoleTooDeep, also for tenants' roles."""
    roles = with_role(roles, role)
    if role.tenant_id is None:
        deepest: int = DEEPEST_HEIR.scalar(key=role.key, most=MAX_CHAIN)
        if len(chain_of(roles, role.key)) + deepest > MAX_CHAIN:
            raise RoleTooDeep
    return roles


def _check_fixed(role: AccessRole, change: Change) -> None:
    """Raise RoleFixed for what cannot change in one of the five roles."""
    own = ROLE_PERMISSIONS[Role(role.key)]
    is_same = {one for one in role.permissions if one in ASSIGNABLE} == own
    if role.key == Role.OWNER or not {*change.after} <= {"name", "permissions"} or not is_same:
        raise RoleFixed

"""Assignments that follow an identity provider, of members, or a directory, of its groups."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from uuid import UUID

from sqlalchemy import ARRAY, Uuid, any_, bindparam, or_, select

from app.core.actors import Actor
from app.core.db import queries
from app.core.db.statements import Statement
from app.core.db.writes import Writes
from app.memberships.owners import RoleAboveOwn
from app.roles import authority
from app.roles.models import RoleAssignment
from app.roles.role_assignments import record
from app.roles.role_graph import RoleGraph

SOURCES = {"membership_id": "idp", "group_id": "scim"}
_ids = any_(bindparam("ids", type_=ARRAY(Uuid)))
FIND = Statement(
    "role_assignments.find_of_targets",
    select(RoleAssignment).where(
        or_(RoleAssignment.membership_id == _ids, RoleAssignment.group_id == _ids),
        RoleAssignment.resource_type.is_(None),
    ),
)


def follow(
    target: str,
    wanted: Mapping[tuple[UUID, UUID], AbstractSet[str]],
    *,
    actor: Actor,
    within: Actor | None = None,
    into: Writes,
) -> None:
    """Give memberships or groups, by tenant and id, the roles with these keys for the whole tenant.

    ``target`` is the column with their ids, a key of :data:`SOURCES`. Only assignments with its
    source are removed. A key is ignored if no role of the tenant and no template has it, or if
    ``within`` could not assign the role. The caller leaves the five roles of memberships out.
    """
    source = SOURCES[target]
    found = FIND.all(ids=[target_id for _, target_id in wanted]) if wanted else ()
    synced = {getattr(row, target) for row in found if row.source == source}
    for (tenant_id, target_id), keys in sorted(wanted.items()):
        if not keys and target_id not in synced:
            continue
        roles, rows = authority.lock(tenant_id), FIND.all(ids=[target_id])
        given = {roles.by_key[key].id for key in keys if _may_give(key, roles, within)}
        for row in rows:
            if row.source == source and row.role_id not in given:
                queries.delete_row(RoleAssignment, row)
                key = roles.by_id[row.role_id].key
                record("role_assignment.deleted", row, key, actor=actor, into=into)
        for role_id in given.difference(row.role_id for row in rows):
            place = {"tenant_id": tenant_id, target: target_id, "role_id": role_id}
            values = {**place, "source": source, **actor.authorship}
            row = into.insert(RoleAssignment, values)
            key = roles.by_id[role_id].key
            record("role_assignment.created", row, key, actor=actor, into=into)


def _may_give(key: str, roles: RoleGraph, actor: Actor | None) -> bool:
    if key not in roles.by_key:
        return False
    try:
        if actor is not None:
            authority.check_may_give(roles.by_key[key], roles, None, actor=actor)
    except RoleAboveOwn:
        return False
    return True

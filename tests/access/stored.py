"""Stores a world as rows, in one transaction, and gives its people and keys their ids."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from random import Random
from typing import Any

from app.auth.keys import digest_of
from app.auth.models import ApiKey
from app.connections.models import ScimConnection
from app.core.actors import SYSTEM_CLI
from app.core.db.writes import insert_row
from app.flags.models import FeatureOverride
from app.memberships.models import Membership
from app.plans.models import PlanPreset
from app.roles.models import AccessResource, AccessRole, ProductPermission, RoleAssignment
from app.scim.models import ScimGroup, ScimMember, ScimUser
from app.tenants.models import Tenant
from app.usage.models import UsageCounter
from app.users.models import User
from tests import database
from tests.access.model import Flag, World
from tests.access.worlds import PERMISSIONS
from tests.database import platform_transaction
from tests.factories import limit_flag, preset_flag

ACTORS = {"created_by_user_id": SYSTEM_CLI.id, "updated_by_user_id": SYSTEM_CLI.id}
PAST, FUTURE = datetime(2020, 1, 1, tzinfo=UTC), datetime(2999, 1, 1, tzinfo=UTC)
USED = 7


def store_permissions() -> None:
    """Those of all worlds."""
    with platform_transaction():
        for one in PERMISSIONS:
            values = {"description": "", "group_name": "", **ACTORS}
            insert_row(ProductPermission, {**values, **vars(one)})


def store(world: World, number: int, random: Random) -> Tenant:
    """The tenant of a world; ``random`` decides what makes no difference."""
    templates = {
        one.key: one.id
        for one in database.query("SELECT id, key FROM roles WHERE tenant_id IS NULL")
    }
    with platform_transaction():
        plan = f"plan-{number}"
        flags = [_flag(key, one) for key, one in world.flags.items()]
        limits = [
            limit_flag(key, -1 if left is None else left + USED)
            for key, left in world.limits.items()
        ]
        preset = insert_row(PlanPreset, {"name": plan, "flags": [*flags, *limits]})
        names = {"idp_org_id": f"org-{number}", "name": plan, "slug": f"world-{number}"}
        tenant = insert_row(Tenant, {**names, "plan_name": plan, "is_active": world.is_active})
        of_tenant: dict[str, Any] = {"tenant_id": tenant.id, **ACTORS}
        for key, one in world.flags.items():
            if one.override is not None:
                values = {"plan_preset_id": preset.id, "flag_key": key, "flag_value": one.override}
                insert_row(FeatureOverride, {"tenant_id": tenant.id, **values})
        for key, left in world.limits.items():
            if left is not None:
                counter = {"feature": key, "period_start": datetime(1970, 1, 1, tzinfo=UTC)}
                insert_row(
                    UsageCounter, {"tenant_id": tenant.id, **counter, "used": USED, "announced": 0}
                )
        members = _store_people(world, tenant, of_tenant)
        groups = _store_groups(world, tenant, of_tenant)
        for key in world.keys:
            secret = secrets.token_hex()
            values = {"name": "key", "digest": digest_of(secret), "prefix": "x"}
            ended = random.choice(["expires_at", "revoked_at"])
            values |= {"permissions": key.permissions} | ({} if key.is_valid else {ended: PAST})
            key.id = str(insert_row(ApiKey, {**of_tenant, **values}).id)
        for role in world.roles.values():
            values = {**vars(role), "name": role.key, "assignable_by": "admin"}
            templates[role.key] = insert_row(AccessRole, {**of_tenant, **values}).id
        for (kind, name), resource in world.resources.items():
            parent = resource.parent or (None, None)
            values = {"type": kind, "id": name, "parent_type": parent[0], "parent_id": parent[1]}
            insert_row(AccessResource, {**of_tenant, **values, "attributes": resource.attributes})
        for one in world.assignments:
            target = {
                "person": ("membership_id", members.get(one.number)),
                "group": ("group_id", groups[one.number] if one.kind == "group" else None),
                "key": ("api_key_id", world.keys[one.number].id if one.kind == "key" else None),
            }
            place = one.place or (None, None)
            values = {"role_id": templates[one.role], "source": "api", **dict([target[one.kind]])}
            values |= {"resource_type": place[0], "resource_id": place[1]}
            end = PAST if one.is_expired else random.choice([None, FUTURE])
            insert_row(RoleAssignment, {**of_tenant, **values, "expires_at": end})
    return tenant


def _store_people(world: World, tenant: Tenant, of_tenant: dict[str, Any]) -> dict[int, Any]:
    """The ids of the memberships, by the number of the person."""
    members = {}
    of_organization = {**of_tenant, "idp_org_id": tenant.idp_org_id}
    for number, person in enumerate(world.people):
        values = {
            "idp_user_id": person.name,
            "email": person.email,
            "email_key": person.email,
            "is_active": person.is_active,
            "meta_data": person.meta_data,
        }
        person.id = str(insert_row(User, {**of_organization, **values}).id)
        if person.role is not None:
            values = {"user_id": person.id, "role": person.role, "is_active": person.is_member}
            members[number] = insert_row(Membership, {**of_organization, **values}).id
    return members


def _store_groups(world: World, tenant: Tenant, of_tenant: dict[str, Any]) -> list[Any]:
    """The ids of the groups, in the world's order."""
    if not world.groups:
        return []
    connection = insert_row(
        ScimConnection,
        {
            **of_tenant,
            "name": "directory",
            "provider": "okta",
            "default_role": "member",
            "acts_as": "owner",
            "digest": secrets.token_hex(),
            "prefix": "x",
        },
    )
    of_connection = {"tenant_id": tenant.id, "connection_id": connection.id}
    for person in world.people:
        values = {"id": person.id, "user_name": person.email, "user_name_key": person.email}
        insert_row(ScimUser, {**of_connection, **values})
    groups = []
    for number, people in enumerate(world.groups):
        names = {"display_name": f"g{number}", "display_name_key": f"g{number}"}
        groups.append(insert_row(ScimGroup, {**of_connection, **names}).id)
        for each in people:
            id_ = world.people[each].id
            values = {"group_id": groups[-1], "member_id": id_, "user_id": id_}
            insert_row(ScimMember, {"tenant_id": tenant.id, **values})
    return groups


def _flag(key: str, flag: Flag) -> dict[str, Any]:
    found = preset_flag(key, flag.value)
    if flag.rules:
        found["rules"] = flag.rules
    elif flag.when is not None:
        found["rules"] = [{"name": "rule", "when": flag.when, "value": not flag.value}]
    return found

"""Permissions of the platform's product, in addition to those of this service."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import SimpleNamespace
from typing import Any

from sqlalchemy import select

from app.audit.service import record, record_creation
from app.auth.permissions import ALL, ASSIGNABLE
from app.core.actors import Actor
from app.core.db import queries
from app.core.db.queries import Change
from app.core.db.statements import Statement
from app.core.db.writes import insert_row
from app.core.errors import Conflict, Invalid, value_error
from app.roles.authority import LOCK_PLATFORM
from app.roles.models import ProductPermission

MAX_PERMISSIONS = 1_000
LIST = Statement(
    "product_permissions.list",
    select(ProductPermission).order_by(ProductPermission.group_name, ProductPermission.key),
)
FIND_KEYS = Statement(
    "product_permissions.find_keys",
    "SELECT key FROM product_permissions WHERE key = ANY (CAST(:keys AS text[]))",
)
COUNT_ROLES = Statement(
    "roles.count_with_permission",
    "SELECT count(*) FROM roles WHERE permissions @> ARRAY[CAST(:key AS text)]",
)


class PermissionInUse(Conflict):
    code = "permission_in_use"
    detail = "Roles have this permission; remove it from them first."


class TooManyPermissions(Conflict):
    code = "too_many_permissions"
    detail = f"There can be at most {MAX_PERMISSIONS} permissions; delete one first."


def list_permissions(*, kind: str | None = None, group: str | None = None) -> list[Any]:
    """All permissions that a role can have: those of this service, then those of the product."""
    service = [] if kind == "product" else [_of_service(name) for name in sorted(ASSIGNABLE)]
    product = [] if kind == "service" else LIST.all()
    found: list[Any] = [*service, *product]
    return [one for one in found if group in (None, one.group_name)]


def get_permission(key: str) -> ProductPermission | SimpleNamespace:
    """A permission of either kind; raises NotFound."""
    return _of_service(key) if key in ASSIGNABLE else queries.get_where(ProductPermission, key=key)


def put(key: str, values: Mapping[str, Any], *, actor: Actor) -> ProductPermission:
    """Create or replace a permission of the product.

    Raises Invalid for a permission of this service, and TooManyPermissions.
    """
    if key in ALL:
        reason = "this is a permission of the service itself"
        raise Invalid(value_error(["path", "key"], reason, key))
    LOCK_PLATFORM.execute()
    known = queries.find_row(ProductPermission, key=key)
    queries.check_precondition(known)
    if known is not None:
        row, change = queries.update_row(ProductPermission, known, values, actor_id=actor.id)
        record("permission.updated", row, change, actor=actor)
        return row
    if queries.count_where(ProductPermission) >= MAX_PERMISSIONS:
        raise TooManyPermissions
    row = insert_row(ProductPermission, {**values, "key": key, **actor.authorship})
    record_creation("permission.created", row, actor=actor)
    return row


def delete(key: str, *, actor: Actor) -> None:
    """Delete a permission of the product. Raises NotFound, and PermissionInUse with the number."""
    LOCK_PLATFORM.execute()
    row = queries.get_where(ProductPermission, key=key)
    queries.check_precondition(row)
    if count := COUNT_ROLES.scalar(key=key):
        raise PermissionInUse(f"{count} roles have this permission; remove it from them first.")
    queries.delete_row(ProductPermission, row)
    record("permission.deleted", row, Change(row._asdict(), {}), actor=actor)


def check_exist(permissions: Collection[str]) -> None:
    """Raise Invalid for permissions that no role can have."""
    others = sorted({*permissions} - {str(one) for one in ASSIGNABLE})
    unknown = {*others} - {*FIND_KEYS.scalars(keys=others)} if others else ()
    if unknown:
        first = min(unknown)
        raise Invalid(value_error(["body", "permissions"], "no role can have this", first))


def _of_service(key: str) -> SimpleNamespace:
    """A permission of this service, which is not a row."""
    group, _, verb = key.partition(":")
    what = group.replace("_", " ")
    description = f"{'Read' if verb == 'read' else 'Change'} {what}."
    nothing = dict.fromkeys(("requires_flag", "requires_limit", "created_at", "updated_at"))
    return SimpleNamespace(
        key=str(key), kind="service", group_name=group, description=description, **nothing
    )

"""Resources: names of things of the product, which can be below one another."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from sqlalchemy import Uuid, bindparam, select, tuple_

from app.audit.service import add_event
from app.core import json_text
from app.core.actors import Actor
from app.core.db import queries
from app.core.db.list_cursors import pack, unpack
from app.core.db.pages import DEFAULT_LIMIT, Page
from app.core.db.queries import Change
from app.core.db.statements import Statement
from app.core.db.tenancy import current_scope
from app.core.db.writes import insert_row
from app.core.errors import Conflict, Invalid, NotFound, value_error
from app.roles.authority import check_gains_nothing, lock_tenant
from app.roles.models import AccessResource

MAX_DEPTH = 8  # a resource without a parent has the depth 1
MAX_MOVED = 10_000  # resources below one that gets another parent
MAX_SIZE = 16 * 1024  # bytes of the attributes, as JSON
AGAIN = ("created_at", "created_by_user_id", "updated_at", "version")  # of one that returns

ABOVE = Statement(
    "access_resources.above",
    "SELECT c.type, c.id FROM access_resources r, resource_chain(r.tenant_id, r.type, r.id) c"
    " WHERE r.tenant_id = :tenant_id AND r.type = :type AND r.id = :id",
)
"""A resource and all above it."""
BELOW = Statement(
    "access_resources.below",
    """
    WITH RECURSIVE below AS (
        SELECT CAST(:type AS text) AS type, CAST(:id AS text) AS id, 1 AS level
        UNION ALL
        SELECT r.type, r.id, level + 1 FROM below b JOIN access_resources r
            ON r.tenant_id = :tenant_id AND r.parent_type = b.type AND r.parent_id = b.id
        WHERE level < :most
    ) SELECT max(level) AS levels, count(*) AS number FROM (SELECT level FROM below LIMIT :limit) b
    """,
)
"""How many levels a resource and all below it have."""
IS_IN_USE = Statement(
    "access_resources.is_in_use",
    """
    SELECT EXISTS (
        SELECT FROM access_resources
        WHERE tenant_id = :tenant_id AND parent_type = :type AND parent_id = :id
    ) OR EXISTS (
        SELECT FROM role_assignments
        WHERE tenant_id = :tenant_id AND resource_type = :type AND resource_id = :id
    )
    """,
)
_place = (AccessResource.tenant_id, AccessResource.type, AccessResource.id)
_after: tuple[Any, ...] = (
    bindparam("after_tenant", type_=Uuid),
    bindparam("after_type"),
    bindparam("after_id"),
)


class ResourceInUse(Conflict):
    code = "resource_in_use"
    detail = "Other resources are below this one, or roles are assigned for it; remove them first."


class ResourceCycle(Conflict):
    code = "resource_cycle"
    detail = "A resource cannot be below itself."


class ResourceTooDeep(Conflict):
    code = "resource_too_deep"
    detail = f"At most {MAX_DEPTH} resources can be below one another."


class TooManyBelow(Conflict):
    code = "too_many_below"
    detail = f"With more than {MAX_MOVED:,} resources below it, a resource keeps its parent."


def get_resource(tenant_id: UUID, type_: str, resource_id: str) -> SimpleNamespace:
    return shown(queries.get_where(AccessResource, tenant_id=tenant_id, type=type_, id=resource_id))


def list_resources(
    *, cursor: str | None = None, limit: int = DEFAULT_LIMIT, **equal: object
) -> Page:
    """One page of a tenant's resources (of all, for the platform), by type and id."""
    values = {**equal, "limit": limit + 1}
    if current_scope().tenant_id is not None:
        values.setdefault("tenant_id", current_scope().tenant_id)
    after = (UUID(int=0), "", "") if cursor is None else unpack(cursor, UUID, str, str)
    values |= {element.key: value for element, value in zip(_after, after, strict=True)}
    rows = _list(tuple(sorted({"tenant_id", "type"} & values.keys()))).all(**values)
    items = [shown(row) for row in rows[:limit]]
    if len(rows) <= limit:
        return Page(items, None)
    last = items[-1]
    return Page(items, pack(last.tenant_id, last.type, last.id))


@cache
def _list(names: tuple[str, ...]) -> Statement[AccessResource]:
    equal = (getattr(AccessResource, name) == bindparam(name) for name in names)
    clause = select(AccessResource).where(tuple_(*_place) > tuple_(*_after), *equal)
    return Statement("access_resources.list", clause.order_by(*_place).limit(bindparam("limit")))


def put(
    tenant_id: UUID, type_: str, resource_id: str, values: Mapping[str, Any], *, actor: Actor
) -> SimpleNamespace:
    """Create or replace a resource. ``values`` has ``parent`` (or None) and ``attributes``.

    Raises NotFound for an unknown tenant or parent, ResourceCycle, ResourceTooDeep, TooManyBelow,
    RoleAboveOwn for a place where the actor has roles with more permissions, and Invalid for
    attributes of more than :data:`MAX_SIZE`.
    """
    attributes = values["attributes"]
    if json_text.size(attributes) > MAX_SIZE:
        reason = f"attributes can have at most {MAX_SIZE} bytes of JSON"
        raise Invalid(value_error(["body", "attributes"], reason, None))
    lock_tenant(tenant_id)
    key = {"tenant_id": tenant_id, "type": type_, "id": resource_id}
    known = queries.find_row(AccessResource, **key)
    queries.check_precondition(known)
    parent = values["parent"] or {"type": None, "id": None}
    if known is not None and _in_order(attributes) == _in_order(known.attributes):
        attributes = known.attributes  # PostgreSQL has ordered the keys
    stored = {"parent_type": parent["type"], "parent_id": parent["id"], "attributes": attributes}
    has_moved = known is None or (known.parent_type, known.parent_id) != (*parent.values(),)
    if values["parent"] and has_moved:
        above = _check_place(key, parent, is_new=known is None)
        check_gains_nothing(tenant_id, ABOVE.all(**key), above, actor=actor)
    if known is not None:
        row, change = queries.update_row(AccessResource, known, stored, actor_id=actor.id)
        if change is not None:
            _record("resource.updated", row, change, actor)
        return shown(row)
    again = {name: values[name] for name in AGAIN if name in values}
    row = insert_row(AccessResource, {**actor.authorship, **key, **stored, **again})
    _record("resource.created", row, Change({}, vars(shown(row))), actor)
    return shown(row)


def delete(tenant_id: UUID, type_: str, resource_id: str, *, actor: Actor) -> None:
    """Delete a resource. Raises NotFound, and ResourceInUse."""
    lock_tenant(tenant_id)
    key = {"tenant_id": tenant_id, "type": type_, "id": resource_id}
    row = queries.get_where(AccessResource, **key)
    queries.check_precondition(row)
    if IS_IN_USE.scalar(**key):
        raise ResourceInUse
    queries.delete_row(AccessResource, row)
    _record("resource.deleted", row, Change(vars(shown(row)), {}), actor)


def _in_order(attributes: Mapping[str, Any]) -> str:
    return json.dumps(attributes, sort_keys=True)


def _check_place(
    key: Mapping[str, Any], parent: Mapping[str, Any], *, is_new: bool
) -> Sequence[Any]:
    """The resources that will be above; raises if the resource cannot be below them."""
    above = ABOVE.all(tenant_id=key["tenant_id"], **parent)
    if not above:
        raise NotFound.of("parent")
    if (key["type"], key["id"]) in map(tuple, above):
        raise ResourceCycle
    levels = 1
    if not is_new:
        below = BELOW.one(**key, most=MAX_DEPTH, limit=MAX_MOVED + 2)
        levels = below.levels
        if below.number > MAX_MOVED + 1:
            raise TooManyBelow
    if len(above) + levels > MAX_DEPTH:
        raise ResourceTooDeep
    return above


def _record(action: str, row: AccessResource, change: Change, actor: Actor) -> None:
    add_event(
        action,
        target_id=f"{row.type}/{row.id}",
        tenant_id=row.tenant_id,
        change=change,
        actor=actor,
        data=vars(shown(row)),
    )


def shown(row: AccessResource) -> SimpleNamespace:
    """The resource as answers have it."""
    parent = row.parent_type and {"type": row.parent_type, "id": row.parent_id}
    return SimpleNamespace(**row._asdict(), parent=parent)

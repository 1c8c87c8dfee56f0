"""Find tenants by a name that may be an id, an ``idp_org_id`` or a slug."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from app.auth.tenant_choice import target_id
from app.core.db.queries import id_or_none
from app.core.db.statements import Statement
from app.core.db.tenancy import current_scope
from app.core.errors import NotFound
from app.tenants.models import Tenant

FIND = Statement(
    "tenants.find_named",
    "SELECT id FROM tenants WHERE id = CAST(:id AS uuid) OR idp_org_id = :name OR slug = :name"
    " ORDER BY id = CAST(:id AS uuid) DESC, idp_org_id = :name DESC",
)


def visible_tenant_id(name: str) -> UUID | None:
    """The id of the tenant with this id, ``idp_org_id`` or slug that the scope can see, or None.

    A slug comes last because a tenant's admins choose it, and must not hide another tenant's id.
    """
    own, found = current_scope().tenant_id, FIND.scalars(id=id_or_none(name), name=name)
    return next((tenant_id for tenant_id in found if own in (None, tenant_id)), None)


def tenant_id_of(name: str) -> UUID:
    """The id of the tenant with this id, ``idp_org_id`` or slug; an id is taken without a look-up.

    Raises NotFound where the scope can see no tenant of the name.
    """
    found = id_or_none(name) or visible_tenant_id(name)
    if found is None:
        raise NotFound.of(Tenant)
    return found


def take_target_id(body: dict[str, Any]) -> UUID:
    """Remove ``tenant_id`` from a body, and return the id of that tenant or the credential's own.

    Raises what :func:`tenant_id_of` and :func:`app.auth.tenant_choice.target_id` do.
    """
    named = tenant_id_of(body.pop("tenant_id")) if "tenant_id" in body else None
    return target_id(named, source="body")

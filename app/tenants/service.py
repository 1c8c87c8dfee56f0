"""What happens to tenants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from flask import current_app

from app.audit.service import record, record_creation
from app.core.actors import Actor
from app.core.db import queries, transactions
from app.core.db.pages import Page, paginate
from app.core.db.tenancy import current_scope
from app.core.errors import Conflict, Forbidden, Invalid, NotFound, error
from app.tenants import slugs
from app.tenants.models import Tenant

FILTERS = ("is_active", "slug", "idp_org_id", "plan_name")


def get_tenant(tenant_id: UUID | str) -> Tenant:
    """The tenant; NotFound where a tenant's credential names another one."""
    return queries.get_row(Tenant, visible_id(tenant_id))


def list_tenants(
    *, limit: int, cursor: str | None = None, filters: Mapping[str, Any] | None = None
) -> Page:
    """One page of every tenant, narrowed by equality on :data:`FILTERS`."""
    return paginate(Tenant, equal=filters, limit=limit, cursor=cursor)


def target_id(tenant_id: UUID | None, *, home: UUID | None) -> UUID:
    """The id of the tenant that a request means: the one it names, else ``home``.

    Raises Invalid (``missing`` at ``["query", "tenant_id"]``) where it means none, NotFound where
    a tenant's credential names another one. Whether it exists is not looked up.
    """
    chosen = tenant_id or home
    if chosen is None:
        raise Invalid(error(["query", "tenant_id"], "missing", "Field required"))
    return visible_id(chosen)


def target_tenant(tenant_id: UUID | None, *, home: UUID | None) -> Tenant:
    """The tenant of :func:`target_id`; NotFound where it does not exist."""
    return get_tenant(target_id(tenant_id, home=home))


def create(values: Mapping[str, Any], *, actor: Actor) -> Tenant:
    """A new, active tenant on the default plan.

    Without a ``slug`` one is derived from the name, and made unique by ``-2``, ``-3`` …; a given
    one that is taken is Conflict ``slug_taken``, as ``idp_org_id_taken`` is.
    """
    if "slug" in values:
        return _insert(values, actor)
    for slug in slugs.candidates(values["name"]):
        try:
            with transactions.savepoint():
                return _insert({**values, "slug": slug}, actor)
        except Conflict as taken:
            if taken.code != "slug_taken":
                raise
    raise AssertionError("unreachable")


def update(tenant_id: UUID | str, values: Mapping[str, Any], *, actor: Actor) -> Tenant:
    """Change a tenant's fields; ``idp_org_id`` by platform actors only (Forbidden otherwise)."""
    wanted = visible_id(tenant_id)
    if "idp_org_id" in values and not actor.is_platform:
        raise Forbidden("Only the platform changes idp_org_id.", code="provider_field")
    return _change(queries.lock_row(Tenant, wanted), values, "tenant.updated", actor)


def set_active(tenant_id: UUID | str, is_active: bool, *, actor: Actor) -> Tenant:
    """Activate or suspend a tenant; the state it has already leaves nothing behind."""
    tenant = queries.lock_row(Tenant, visible_id(tenant_id))
    action = "tenant.activated" if is_active else "tenant.suspended"
    return _change(tenant, {"is_active": is_active}, action, actor)


def visible_id(tenant_id: UUID | str) -> UUID:
    """The id, if the current scope may see that tenant at all; NotFound otherwise."""
    wanted = queries.parse_id(tenant_id)
    own = current_scope().tenant_id
    if own is not None and wanted != own:
        raise NotFound
    return wanted


def _insert(values: Mapping[str, Any], actor: Actor) -> Tenant:
    plan_name = current_app.extensions["config"].default_plan
    tenant = queries.insert_row(Tenant, {"plan_name": plan_name, **values}, conflicts=_conflicts())
    record_creation("tenant.created", tenant, actor=actor)
    return tenant


def _change(tenant: Tenant, values: Mapping[str, Any], action: str, actor: Actor) -> Tenant:
    tenant, change = queries.update_row(Tenant, tenant, values, conflicts=_conflicts())
    if change is not None:
        record(action, tenant, change, actor=actor)
    return tenant


def _conflicts() -> dict[str, Conflict]:
    return {
        "uq_tenants_slug": Conflict("This slug is taken.", code="slug_taken"),
        "uq_tenants_idp_org_id": Conflict(
            "Another tenant has this idp_org_id.", code="idp_org_id_taken"
        ),
    }

"""Tenants: create, find, change, activate, suspend."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from app.audit.service import record, record_creation
from app.config import current_config
from app.core.actors import Actor
from app.core.clock import utcnow
from app.core.db import queries, transactions
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.db.queries import Change, visible_id
from app.core.db.statements import Statement
from app.core.db.writes import Writes, writes
from app.core.errors import Conflict, ProviderField
from app.core.json_text import Json
from app.custom_fields import metadata
from app.custom_fields.entities import TENANT
from app.custom_fields.search_index import tenant_query, writer
from app.search import writer as terms
from app.search.models import EntityType
from app.tenants import slugs, starting
from app.tenants.filters import take_conditions
from app.tenants.models import Tenant

STATE = ("is_active", "suspension_reason")
REVOKE_LINKS = Statement(
    "setup_links.revoke_live",
    "UPDATE setup_links SET revoked_at = now(), updated_at = now(), version = version + 1,"
    " updated_by_user_id = :actor_id"
    " WHERE tenant_id = :tenant_id AND revoked_at IS NULL AND expires_at > now()"
    " RETURNING id, tenant_id, revoked_at",
)


class SlugTaken(Conflict):
    code = "slug_taken"
    detail = "This slug is taken; choose another one."


class IdpOrgIdTaken(Conflict):
    code = "idp_org_id_taken"
    detail = "Another tenant has this idp_org_id; update that tenant."


class IdpOrgIdDeleted(Conflict):
    code = "idp_org_id_deleted"
    detail = "The tenant with this idp_org_id was deleted; an operator can free the id."


class TenantDeleting(Conflict):
    """The deletion is requested, so the tenant stays suspended; when it is due, nobody is added."""

    code = "tenant_deleting"
    detail = "This tenant will be deleted; restore it first."


CONFLICTS = {
    "uq_tenants_slug": SlugTaken,
    "uq_tenants_idp_org_id": IdpOrgIdTaken,
    "tr_tenants_deleted_organization": IdpOrgIdDeleted,
}


def get_tenant(tenant_id: UUID | str) -> Tenant:
    """The tenant; raises NotFound for another tenant than the scope's."""
    return queries.get_row(Tenant, visible_id(tenant_id))


def list_tenants(
    paging: Paging = FIRST_PAGE,
    *,
    filters: Mapping[str, object] | None = None,
    meta_data: Mapping[str, str] | None = None,
) -> Page:
    """One page of all tenants, without their metadata.

    ``filters`` are values of columns, and of :mod:`app.tenants.filters`. ``meta_data`` filters by
    the tenants' own searchable custom fields (:mod:`app.custom_fields.search_index.tenant_query`).
    """
    equal = dict(filters or {})
    conditions = [*take_conditions(equal), *([tenant_query.among(meta_data)] if meta_data else [])]
    return paginate(Tenant, paging, *conditions, equal=equal, without=("meta_data",))


def create(values: Mapping[str, Json], *, actor: Actor) -> Tenant:
    """Create an active tenant on the default plan, or on a trial (:mod:`app.tenants.starting`).

    Without ``slug``, a slug is derived from the name and made unique by ``-2``, ``-3`` … Raises
    SlugTaken for a given slug, IdpOrgIdTaken, IdpOrgIdDeleted, and Invalid for too large
    ``meta_data``.
    """
    if "slug" in values:
        return insert(values, actor=actor)
    for slug in slugs.candidates(values["name"]):
        try:
            with transactions.savepoint():
                return insert({**values, "slug": slug}, actor=actor)
        except SlugTaken:
            continue
    raise AssertionError("unreachable")


def insert(
    values: Mapping[str, Json],
    *,
    with_trial: bool = True,
    actor: Actor,
    into: Writes | None = None,
) -> Tenant:
    """Create a tenant as :func:`create` does, with a ``slug`` in ``values``."""
    given = values.get("meta_data", {})  # a new tenant has no custom fields
    metadata.check_size(given, given, loc=("body", "meta_data"))
    trial = starting.find_trial() if with_trial else None
    plan_name = trial["plan_name"] if trial else current_config().default_plan
    values = {"plan_name": plan_name, **values}
    with writes(into) as w:
        tenant = w.insert(Tenant, values, conflicts=CONFLICTS)
        record_creation("tenant.created", tenant, actor=actor, into=w)
        terms.add(EntityType.TENANT, tenant, into=w)
        if trial:
            starting.start_trial(tenant, trial, into=w)
    return tenant


def update(tenant_id: UUID | str, values: Mapping[str, Json], *, actor: Actor) -> Tenant:
    """Change a tenant's fields.

    Raises Invalid for a new slug that does not match :data:`slugs.PATTERN`; older ones may not.
    Raises ProviderField if a tenant's actor changes ``idp_org_id``, SlugTaken, IdpOrgIdTaken or
    IdpOrgIdDeleted.
    """
    wanted = visible_id(tenant_id)
    if "idp_org_id" in values and not actor.is_platform:
        raise ProviderField("Only a platform credential can change idp_org_id.")
    tenant, _ = queries.lock_with(Tenant, wanted)
    if values.get("slug", tenant.slug) != tenant.slug:
        slugs.check(values["slug"])
    queries.check_precondition(tenant)
    return _change(tenant, values, actor)


def check_accepts_people(tenant: Tenant) -> None:
    """Raise TenantDeleting if the tenant's deletion is due.

    A deletion that has dealt with the people does not look for others.
    """
    if tenant.deletes_at is not None and tenant.deletes_at <= utcnow():
        raise TenantDeleting


def set_active(tenant_id: UUID | str, is_active: bool, *, actor: Actor) -> Tenant:
    """Activate or suspend a tenant. If it already has this state, nothing is changed or recorded.

    Raises TenantDeleting if a tenant whose deletion is requested would become active.
    """
    tenant = queries.lock_row(Tenant, visible_id(tenant_id))
    if is_active and tenant.deletes_at is not None:
        raise TenantDeleting
    return _change(tenant, _state(is_active), actor)


def suspend(tenant_id: UUID | str, reason: str, *, actor: Actor) -> Tenant:
    """Suspend a tenant and store why; of a suspended tenant only the reason is changed."""
    tenant = queries.lock_row(Tenant, visible_id(tenant_id))
    return _change(tenant, {**_state(False), "suspension_reason": reason}, actor)


def patch_meta_data(tenant_id: UUID | str, patch: Mapping[str, object], *, actor: Actor) -> Tenant:
    """Merge ``patch`` into the tenant's metadata, as :func:`app.custom_fields.metadata.patch`."""
    return metadata.patch(TENANT, visible_id(tenant_id), patch, actor=actor)


def update_read(
    tenant: Tenant, values: Mapping[str, Json], *, actor: Actor, into: Writes
) -> Tenant:
    """Change fields and the state of a tenant that this transaction has read, by one statement.

    Returns the new row. The audit trail is that of :func:`update`, :func:`set_active` and
    :func:`patch_meta_data`. The caller has checked new metadata (:func:`metadata.check_all`). A
    tenant whose deletion is requested stays suspended. Raises RowChanged if another transaction has
    changed the tenant since it was read.
    """
    if tenant.deletes_at is not None:
        values = {**values, "is_active": False}
    elif "is_active" in values:
        values = {**values, **_state(values["is_active"])}
    tenant, change = queries.update_row(Tenant, tenant, values, conflicts=CONFLICTS)
    if change is None:
        return tenant
    has_state = "is_active" in change.after
    others = ("meta_data", *STATE) if has_state else ("meta_data",)
    fields = [name for name in change.after if name not in others]
    if fields:
        record("tenant.updated", tenant, change.part(fields), actor=actor, into=into)
    if has_state:
        action = "tenant.activated" if tenant.is_active else "tenant.suspended"
        record(action, tenant, change.part(STATE), actor=actor, into=into)
        _revoke_links(tenant, actor, into)
    terms.follow(EntityType.TENANT, tenant, change, into=into)
    if "meta_data" in change.after:
        meta_data = change.part(["meta_data"])
        record("tenant.meta_data_patched", tenant, meta_data, actor=actor, into=into)
        changed = (tenant.id, change.before["meta_data"], tenant.meta_data)
        writer.refresh(tenant.id, TENANT.entity_type, [changed])
    return tenant


def _change(tenant: Tenant, values: Mapping[str, object], actor: Actor) -> Tenant:
    with writes() as w:
        return update_read(tenant, values, actor=actor, into=w)


def _revoke_links(tenant: Tenant, actor: Actor, into: Writes) -> None:
    """Revoke the setup links of a suspended tenant; its activation does not restore them."""
    links = () if tenant.is_active else REVOKE_LINKS.all(tenant_id=tenant.id, actor_id=actor.id)
    for link in links:
        change = Change({"revoked_at": None}, {"revoked_at": link.revoked_at})
        record("setup_link.revoked", link, change, actor=actor, into=into)


def _state(is_active: bool) -> dict[str, object]:
    """The columns of a new state; an active tenant has no reason to be suspended."""
    return {"is_active": True, "suspension_reason": ""} if is_active else {"is_active": False}

"""Users: create, find, change, patch metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import case

from app.audit.service import record, record_creation
from app.core import json_text
from app.core.actors import Actor
from app.core.db import queries
from app.core.db.bulk import update_rows
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.db.queries import check_precondition
from app.core.db.tenancy import narrow
from app.core.errors import Conflict, Invalid, Location, ProviderField, error, value_error
from app.core.merge_patch import merge_patch
from app.custom_fields.search_index import query as search
from app.custom_fields.search_index import writer
from app.custom_fields.values.check import check_patch
from app.custom_fields.values.rules import remember, rules_column
from app.memberships import owners, seats
from app.tenants import service as tenants
from app.tenants.models import Tenant
from app.users.models import User

ENTITY = "user"
MAX_META_DATA = 32 * 1024

RULES = rules_column(User.tenant_id, ENTITY)
IS_OWNER = owners.is_owner(User)
LOCKED_OWNERS = owners.locked_owners(User.tenant_id)
FREE_SEATS = case((~User.is_active, seats.seats_for_user(User.tenant_id, User.id)))


class IdpUserIdTaken(Conflict):
    """The provider's id belongs to another user of the tenant."""

    code = "idp_user_id_taken"
    detail = "Another user of this tenant has this idp_user_id."


CONFLICTS = {"uq_users_tenant_id_idp_user_id": IdpUserIdTaken}


def get_user(user_id: UUID | str) -> User:
    """The user; raises NotFound."""
    return queries.get_row(User, user_id)


def list_users(
    paging: Paging = FIRST_PAGE,
    *,
    tenant_id: UUID | None = None,
    filters: Mapping[str, Any] | None = None,
    meta_data: Mapping[str, str] | None = None,
) -> Page:
    """One page of a tenant's users (of all users, for the platform).

    ``filters`` are values of columns. ``meta_data`` filters by searchable custom fields (see
    :mod:`app.custom_fields.search_index.query`) and needs a tenant: it raises Invalid without one.
    """
    shown = narrow(tenant_id)
    conditions = []
    if meta_data:
        if shown is None:
            raise Invalid(error(["query", "tenant_id"], "missing", "Field required"))
        conditions = [search.among(shown, ENTITY, meta_data, User.id)]
    return paginate(User, paging, *conditions, equal=filters, tenant_id=shown)


def create(tenant_id: UUID, values: Mapping[str, Any], *, actor: Actor) -> User:
    """Create an active user of a tenant.

    Raises NotFound for an unknown tenant, and IdpUserIdTaken. Raises Invalid for
    ``meta_data`` that is too large or does not satisfy the tenant's custom fields.
    """
    return create_in(tenants.get_tenant(tenant_id), values, actor=actor)


def create_in(tenant: Tenant, values: Mapping[str, Any], *, actor: Actor) -> User:
    """Create a user as :func:`create` does, in a tenant that has been read already."""
    meta_data = values.get("meta_data", {})
    _check(tenant.id, meta_data, meta_data, loc=("body", "meta_data"))
    user = queries.insert_row(
        User,
        {
            **values,
            "tenant_id": tenant.id,
            "idp_org_id": tenant.idp_org_id,
            "created_by_user_id": actor.id,
            "updated_by_user_id": actor.id,
        },
        conflicts=CONFLICTS,
    )
    if meta_data:
        writer.refresh(tenant.id, ENTITY, user.id, {}, meta_data)
    record_creation("user.created", user, actor=actor)
    return user


def update(
    user_id: UUID | str,
    values: Mapping[str, Any],
    *,
    actor: Actor,
    allow_ownerless: bool = False,
) -> User:
    """Change a user's fields other than ``meta_data``.

    Raises ProviderField if a tenant's actor changes ``idp_user_id``, OwnerOnly, IdpUserIdTaken or
    SeatLimit, and LastOwner unless ``allow_ownerless``.
    """
    deactivates, activates = (values.get("is_active") is state for state in (False, True))
    further = [LOCKED_OWNERS] if deactivates else [FREE_SEATS] if activates else []
    user, (touches_owner, *rest) = queries.lock_with(User, user_id, IS_OWNER, *further)
    if "idp_user_id" in values and not actor.is_platform:
        raise ProviderField("Only a platform credential can change idp_user_id.")
    if touches_owner:
        owners.check_may_change_owner(actor=actor)
    check_precondition(user)
    if deactivates:
        owners.check_one_remains(
            rest[0],
            user.id,
            tenant_id=user.tenant_id,
            actor=actor,
            allow_ownerless=allow_ownerless,
        )
    user, change = queries.update_row(User, user, values, actor_id=actor.id, conflicts=CONFLICTS)
    if change is not None:
        if activates and "is_active" in change.after:
            seats.check_is_free(rest[0])
        record("user.updated", user, change, actor=actor)
    return user


def update_many(changes: Sequence[tuple[User, Mapping[str, Any]]], *, actor: Actor) -> None:
    """Change fields of users that this transaction has read, of any tenants, by one statement.

    The caller has applied the rules for owners and seats. Raises RowChanged if another transaction has
    changed one of the users since it was read.
    """
    for user, change in update_rows(User, changes, actor_id=actor.id):
        if change is not None:
            record("user.updated", user, change, actor=actor)


def patch_meta_data(user_id: UUID | str, patch: Mapping[str, Any], *, actor: Actor) -> User:
    """Merge ``patch`` into the user's metadata (RFC 7396). A patch without effect records nothing.

    The row stays locked, so concurrent patches of one user run one after the other and none is
    lost. The merge runs in Python, because the result has to satisfy the tenant's custom fields.

    Raises Invalid if a value does not satisfy the custom field of its key, and if the result is
    larger than :data:`MAX_META_DATA` bytes.
    """
    user, (rules,) = queries.lock_with(User, user_id, RULES)
    remember(user.tenant_id, ENTITY, rules)
    before = user.meta_data
    after = merge_patch(before, patch)
    _check(user.tenant_id, patch, after, loc=("body", "patches"))
    check_precondition(user)
    user, change = queries.update_row(User, user, {"meta_data": after}, actor_id=actor.id)
    if change is not None:
        writer.refresh(user.tenant_id, ENTITY, user.id, before, after)
        record("user.meta_data_patched", user, change, actor=actor)
    return user


def _check(
    tenant_id: UUID,
    patch: Mapping[str, Any],
    after: Mapping[str, Any],
    *,
    loc: Location,
) -> None:
    """Raise Invalid at ``loc`` if custom fields are not satisfied or ``after`` is too large."""
    if patch:
        check_patch(tenant_id, ENTITY, patch, loc=loc)
    size = json_text.size(after)
    if size > MAX_META_DATA:
        reason = f"meta_data can have at most {MAX_META_DATA} bytes of JSON, not {size}"
        raise Invalid(value_error(loc, reason, patch))

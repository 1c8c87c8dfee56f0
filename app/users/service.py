"""Users: create, find, change, patch metadata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from sqlalchemy import case

from app.audit.service import record, record_creation
from app.core.actors import Actor
from app.core.db import queries
from app.core.db.bulk import update_rows
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.db.queries import Change, check_precondition
from app.core.db.tenancy import current_scope
from app.core.db.writes import Writes, writes
from app.core.errors import Conflict, Invalid, ProviderField, error
from app.core.json_text import Json
from app.custom_fields import metadata
from app.custom_fields.entities import USER
from app.custom_fields.search_index import query as search
from app.custom_fields.search_index import writer
from app.memberships import directories, owners, seats
from app.search import writer as terms
from app.search.filters import take_q
from app.search.models import EntityType
from app.tenants import service as tenants
from app.tenants.models import Tenant
from app.users.emails import check_claims, email_key
from app.users.models import User

IS_OWNER = owners.is_owner(User)
HAS_MAPPED_ROLE = directories.has_mapped_role(User.tenant_id, User.id)
LOCKED_OWNERS = owners.locked_owners(User.tenant_id)
SEAT_LIMIT = case((~User.is_active, seats.limit_of(User.tenant_id, user=User.id)))


class IdpUserIdTaken(Conflict):
    code = "idp_user_id_taken"
    detail = "Another user of this tenant has this idp_user_id; update that user."


CONFLICTS = {"uq_users_tenant_id_idp_user_id": IdpUserIdTaken}


def get_user(user_id: UUID | str) -> User:
    return queries.get_row(User, user_id)


def list_users(
    paging: Paging = FIRST_PAGE,
    *,
    tenant_id: UUID | None = None,
    meta_data: Mapping[str, str] | None = None,
    **filters: object,
) -> Page:
    """One page of a tenant's users (of all users, for the platform).

    ``filters`` are values of columns, and ``q`` (see :mod:`app.search.filters`); ``email`` is
    compared without case. ``meta_data`` filters by searchable custom fields (see
    :mod:`app.custom_fields.search_index.query`) and needs a tenant: it raises Invalid if there is
    none.
    """
    equal = {name: value for name, value in filters.items() if name != "email"}
    equal |= with_key(filters)
    conditions = take_q(equal, EntityType.USER, "users.tenant_id, users.id", tenant_id)
    if meta_data:
        tenant_id = tenant_id or current_scope().tenant_id
        if tenant_id is None:
            raise Invalid(error(["query", "tenant_id"], "missing", "Field required"))
        conditions.append(search.among(tenant_id, USER.entity_type, meta_data, User.id))
    return paginate(User, paging, *conditions, equal=equal, tenant_id=tenant_id, has_one_plan=True)


def create(tenant_id: UUID, values: Mapping[str, object], *, actor: Actor) -> User:
    """Create an active user of a tenant.

    Raises NotFound for an unknown tenant, TenantDeleting, IdpUserIdTaken and EmailTaken. Raises
    Invalid for ``meta_data`` that is too large or does not satisfy the tenant's custom fields.
    """
    tenant = tenants.get_tenant(tenant_id)
    tenants.check_accepts_people(tenant)
    with writes() as w:
        user = insert_in(tenant, values, actor=actor, into=w)
    index_meta_data([(user, {})])
    check_claims(user)
    return user


def insert_in(tenant: Tenant, values: Mapping[str, Json], *, actor: Actor, into: Writes) -> User:
    """Create a user as :func:`create` does, in a tenant that has been read already.

    The e-mail address may be another user's: the identity provider is the authority. For a user
    with metadata, the caller calls :func:`index_meta_data` after the block.
    """
    metadata.check_all(USER, tenant.id, {}, values.get("meta_data", {}))
    user = into.insert(
        User,
        {
            **values,
            **with_key(values),
            "tenant_id": tenant.id,
            "idp_org_id": tenant.idp_org_id,
            **actor.authorship,
        },
        conflicts=CONFLICTS,
    )
    record_creation("user.created", user, actor=actor, hidden=USER.derived, into=into)
    terms.add(EntityType.USER, user, into=into)
    return user


def update(
    user_id: UUID | str,
    values: Mapping[str, object],
    *,
    actor: Actor,
    allow_ownerless: bool = False,
) -> User:
    """Change a user's fields other than ``meta_data``.

    Raises ProviderField if a tenant's actor changes ``idp_user_id``, OwnerOnly, IdpUserIdTaken or
    SeatLimit, ManagedByDirectory for a user whom a directory provisions, and LastOwner unless
    ``allow_ownerless``. Raises EmailTaken for the address of another active user, unless the user
    has it already and stays as active as before. Raises ErasureRequested if a user becomes active
    whose erasure is requested.
    """
    deactivates, activates = (values.get("is_active") is state for state in (False, True))
    further = [LOCKED_OWNERS] if deactivates else [SEAT_LIMIT] if activates else []
    user, (touches_owner, has_mapped_role, *rest) = queries.lock_with(
        User, user_id, IS_OWNER, HAS_MAPPED_ROLE, *further
    )
    if "idp_user_id" in values and not actor.is_platform:
        raise ProviderField("Only a platform credential can change idp_user_id.")
    if touches_owner:
        owners.check_may_change_owner(actor=actor)
    check_precondition(user)
    if deactivates:
        owners.check_one_remains(
            rest[0], user.id, tenant_id=user.tenant_id, actor=actor, allow_ownerless=allow_ownerless
        )
    before = user
    user, change = queries.update_row(
        User, before, values, actor_id=actor.id, also=with_key(values), conflicts=CONFLICTS
    )
    if change is not None:
        directories.check_may_change(is_managed=has_mapped_role is not None, actor=actor)
        if activates and "is_active" in change.after:
            seats.take(rest[0], user.tenant_id, actor=actor)
        if claims_address(before, user):
            check_claims(user)
        with writes() as w:
            _record_update(user, change, actor=actor, into=w)
    return user


def update_many(
    changes: Sequence[tuple[User, Mapping[str, object]]], *, actor: Actor, into: Writes
) -> None:
    """Change fields of users that this transaction has read, of any tenants, by one statement.

    The caller has applied the rules for owners and seats, and :func:`metadata.check_all`. An e-mail
    address may be another user's. Raises RowChanged if another transaction has changed one of the
    users since it was read.
    """
    indexed: list[tuple[User, Mapping[str, object]]] = []
    for user, change in update_rows(User, changes, actor_id=actor.id, also=with_key):
        if change is None:
            continue
        fields = change.part(name for name in change.after if name != "meta_data")
        if fields.after:
            _record_update(user, fields, actor=actor, into=into)
        if "meta_data" in change.after:
            indexed.append((user, change.before["meta_data"]))
            meta_data = change.part(["meta_data"])
            action = "user.meta_data_patched"
            record(action, user, meta_data, actor=actor, hidden=USER.derived, into=into)
    index_meta_data(indexed)


def index_meta_data(users: Iterable[tuple[User, Mapping[str, object]]]) -> None:
    """Update the search index of users that are written, each given with its metadata before."""
    entities: dict[UUID, list[writer.Entity]] = {}
    for user, before in users:
        if user.meta_data or before:
            entities.setdefault(user.tenant_id, []).append((user.id, before, user.meta_data))
    for tenant_id, changed in entities.items():
        writer.refresh(tenant_id, USER.entity_type, changed)


def _record_update(user: User, change: Change, *, actor: Actor, into: Writes) -> None:
    record("user.updated", user, change, actor=actor, hidden=USER.derived, into=into)
    terms.follow(EntityType.USER, user, change, into=into)


def with_key(values: Mapping[str, Json]) -> dict[str, str]:
    """The ``email_key`` that is written with these values; none without an e-mail address."""
    return {"email_key": email_key(values["email"])} if "email" in values else {}


def claims_address(before: User, after: User) -> bool:
    """Whether a change gives the user another address, but for its case, or activates the user."""
    return before.email_key != after.email_key or (after.is_active and not before.is_active)

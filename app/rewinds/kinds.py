"""What goes back: for each kind of row, how the services of its domain change it.

To add a kind, add an entry to :data:`KINDS`, in the order in which rows need each other. The schema
``past`` must have a view of its table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias
from uuid import UUID

from app.auth.permissions import Role
from app.core.actors import Actor
from app.core.db import queries
from app.core.db.transactions import savepoint
from app.core.db.writes import writes
from app.core.json_text import Json
from app.custom_fields import metadata
from app.custom_fields import service as custom_fields
from app.custom_fields.entities import TENANT, USER
from app.custom_fields.models import CustomField
from app.flags import overrides
from app.flags.models import FeatureOverride
from app.history.completeness import NOT_RECORDED
from app.memberships import service as memberships
from app.memberships.models import Membership
from app.roles import access_resources, role_assignments
from app.roles import service as roles
from app.roles.models import AccessResource, AccessRole, RoleAssignment
from app.subscriptions import service as subscriptions
from app.subscriptions.models import Subscription
from app.subscriptions.service import ManagedByProvider
from app.subscriptions.statuses import is_ended
from app.tenants import service as tenants
from app.tenants.models import Tenant
from app.users import service as users
from app.users.emails import ErasureRequested
from app.users.models import ERASED_SUBJECT, User

Values: TypeAlias = dict[str, Json]

DERIVED = {
    *("id", "tenant_id", "created_at", "updated_at", "version", "created_by_user_id"),
    *("updated_by_user_id", "email_key", "status_class"),
    *NOT_RECORDED,
}
"""Columns that the audit trail does not have, or that follow from others."""
LEFT = {
    "stays": "A rewind does not change the tenant's state, nor its id at the identity provider.",
    "follows_plan": "This follows the tenant's plan.",
    "managed_by_provider": ManagedByProvider.detail,
    "erased": "The row, or a value that it had, was erased.",
    "not_recorded": "The audit trail does not have the creation of the row.",
}
"""Why something stays as it is before anything is tried: codes with their sentences."""


@dataclass(frozen=True)
class Kind:
    """How rows of a kind go back; ``target_type`` is that of their audit rows.

    ``update`` sets values of a locked row. ``create`` and ``remove`` are the service's functions;
    without ``create``, rows are only ever erased. ``is_removed``: whether a row is as ``remove``
    leaves it, where that does not delete it.
    ``left_of`` has the fields of a row that stay as they are, each with a code of :data:`LEFT`; with
    ``id``, the row is not removed either. With ``has_names``, ids are those of resources, such as
    ``doc/a``. Rows that need others of their kind take several ``passes`` in each round.
    """

    target_type: str
    model: Any
    update: Callable[[Any, Values, Actor], object]
    create: Callable[..., object] | None = None
    remove: Callable[..., object] | None = None
    is_removed: Callable[[Any], bool] = lambda _: False
    left_of: Callable[[Any], Mapping[str, str]] = lambda _: {}
    has_names: bool = False
    passes: int = 1

    def id_of(self, row: Any) -> Any:
        """The row's id in the audit trail."""
        return f"{row.type}/{row.id}" if self.has_names else row.id

    @cached_property
    def fields(self) -> list[str]:
        """The columns that are compared."""
        columns = self.model.__table__.columns.keys()
        copied = {"idp_org_id"} if "tenant_id" in columns else set()
        return [name for name in columns if name not in DERIVED | copied]


def _update_tenant(tenant: Tenant, values: Values, actor: Actor) -> None:
    if "meta_data" in values:
        metadata.check_all(TENANT, tenant.id, tenant.meta_data, values["meta_data"])
    with writes() as w:
        tenants.update_read(tenant, values, actor=actor, into=w)


def _update_user(user: User, values: Values, actor: Actor) -> None:
    meta_data = values.pop("meta_data", user.meta_data)
    metadata.check_all(USER, user.tenant_id, user.meta_data, meta_data)
    user = users.update(user.id, values, actor=actor)
    with writes() as w:
        users.update_many([(user, {"meta_data": meta_data})], actor=actor, into=w)


def _left_of_user(user: User) -> dict[str, str]:
    is_erased = user.idp_user_id.startswith(ERASED_SUBJECT)
    return dict.fromkeys(("id", *KINDS["users"].fields), "erased") if is_erased else {}


def _update_membership(member: Membership, values: Values, actor: Actor) -> None:
    if "role" in values:
        member = memberships.set_role(member.id, Role(values.pop("role")), actor=actor)
    if values.get("is_active") and _left_of_user(queries.get_row(User, member.user_id)):
        raise ErasureRequested
    if "is_active" in values:
        member = memberships.set_active(member.id, values.pop("is_active"), actor=actor)
    with writes() as w:
        memberships.update_many([(member, values)], actor=actor, into=w)


def _update_field(field: CustomField, values: Values, actor: Actor) -> None:
    is_active = values.pop("is_active", field.is_active)
    if values:
        custom_fields.update(field.id, values, actor=actor)
    (custom_fields.restore if is_active else custom_fields.archive)(field.id, actor=actor)


def _remove_field(field_id: UUID, *, actor: Actor) -> None:
    """Delete the field; one with many index rows is archived, and the second round deletes it."""
    if not queries.get_row(CustomField, field_id).is_active:
        custom_fields.delete(field_id, actor=actor)
        return
    custom_fields.archive(field_id, actor=actor)
    with suppress(custom_fields.IndexRowsLeft), savepoint():
        custom_fields.delete(field_id, actor=actor)


def _put_resource(tenant_id: UUID, values: Values, *, actor: Actor) -> None:
    type_, id_ = values["parent_type"], values["parent_id"]
    given = {**values, "parent": type_ and {"type": type_, "id": id_}}
    access_resources.put(tenant_id, values["type"], values["id"], given, actor=actor)


def _assign_role(tenant_id: UUID, values: Values, *, actor: Actor) -> None:
    type_, id_ = values["resource_type"], values["resource_id"]
    role = queries.get_row(AccessRole, values["role_id"])
    given = {**values, "role": role.key, "resource": type_ and {"type": type_, "id": id_}}
    role_assignments.create(tenant_id, given, source=values["source"], actor=actor)


def _update_assignment(row: RoleAssignment, values: Values, actor: Actor) -> None:
    """Assign the role of then again; another one took its place when it was deleted."""
    role_assignments.remove(row.id, actor=actor)
    again = {**row._asdict(), **values, "version": row.version + 1}
    _assign_role(row.tenant_id, again, actor=actor)


def _update_override(override: FeatureOverride, values: Values, actor: Actor) -> None:
    values = {"flag_value": override.flag_value, **values}
    overrides.update_override(override.id, values, is_superadmin=True, actor=actor)


def _is_inactive(row: User | Membership) -> bool:
    return not row.is_active


def _left_of_subscription(row: Subscription) -> dict[str, str]:
    """The tenant's own fields of a provider's subscription are those for its invoices."""
    names = ("id", *KINDS["subscriptions"].fields) if row.bp_provider else ("bp_provider",)
    own = {name for name in names if name.startswith(("billing_", "send_"))} - {"billing_cycle"}
    return {name: "managed_by_provider" for name in names if name not in own}


LEFT_OF_TENANT = {
    **dict.fromkeys(("is_active", "suspension_reason", "deletes_at", "idp_org_id"), "stays"),
    "plan_name": "follows_plan",
}
KINDS: Mapping[str, Kind] = {
    "tenant": Kind("tenant", Tenant, _update_tenant, left_of=lambda _: LEFT_OF_TENANT),
    "custom_fields": Kind(
        "custom_field", CustomField, _update_field, custom_fields.create, _remove_field
    ),
    "roles": Kind(
        "role",
        AccessRole,
        lambda row, values, actor: roles.update(row.id, values, actor=actor),
        roles.create,
        roles.delete,
    ),
    "users": Kind(
        "user",
        User,
        _update_user,
        remove=partial(users.update, values={"is_active": False}),
        is_removed=_is_inactive,
        left_of=_left_of_user,
    ),
    "memberships": Kind(
        "membership",
        Membership,
        _update_membership,
        remove=partial(memberships.set_active, is_active=False),
        is_removed=_is_inactive,
    ),
    "resources": Kind(
        "resource",
        AccessResource,
        lambda row, values, actor: _put_resource(
            row.tenant_id, {**row._asdict(), **values}, actor=actor
        ),
        _put_resource,
        lambda row, actor: access_resources.delete(row.tenant_id, row.type, row.id, actor=actor),
        has_names=True,
        passes=access_resources.MAX_DEPTH // 2,  # there are two rounds
    ),
    "role_assignments": Kind(
        "role_assignment", RoleAssignment, _update_assignment, _assign_role, role_assignments.remove
    ),
    "subscriptions": Kind(
        "subscription",
        Subscription,
        lambda row, values, actor: subscriptions.write(row, values, {}, actor=actor),
        remove=partial(subscriptions.cancel, at_period_end=False),
        is_removed=is_ended,
        left_of=_left_of_subscription,
    ),
    "overrides": Kind(
        "override",
        FeatureOverride,
        _update_override,
        overrides.create_override,
        overrides.delete_override,
        left_of=lambda _: {"plan_preset_id": "follows_plan"},
    ),
}

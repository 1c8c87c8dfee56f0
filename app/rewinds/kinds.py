"""What goes back: for each kind of row its fields, and how the services of its domain change it.

To add a kind, add an entry to :data:`KINDS`, in the order in which rows need each other. The schema
``past`` must have a view of its table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from app.auth.permissions import Role
from app.core.actors import Actor
from app.core.db import queries
from app.core.db.writes import writes
from app.core.json_text import Json
from app.custom_fields import metadata
from app.custom_fields import service as custom_fields
from app.custom_fields.entities import TENANT, USER
from app.custom_fields.models import CustomField
from app.flags import overrides
from app.flags.models import FeatureOverride
from app.memberships import service as memberships
from app.memberships.models import Membership
from app.roles import role_assignments
from app.roles import service as roles
from app.roles.models import AccessRole, RoleAssignment
from app.subscriptions import service as subscriptions
from app.subscriptions.models import Subscription
from app.subscriptions.service import ManagedByProvider
from app.subscriptions.statuses import is_ended
from app.tenants import service as tenants
from app.tenants.models import Tenant
from app.users import service as users
from app.users.models import User

Values: TypeAlias = dict[str, Json]
Update: TypeAlias = Callable[[Any, Values, Actor], object]
"""Sets these values of a locked row."""

BY_PROVIDER = ManagedByProvider.code
LEFT = {
    "not_going_back": "Only requests change this: suspend, activate, restore.",
    "follows_plan": "This follows the tenant's plan.",
    BY_PROVIDER: ManagedByProvider.detail,
    "erased": "This row was erased, and does not come back.",
    "not_recorded": "The audit trail does not have the creation of this row.",
}
"""The codes of what stays as it is before anything is tried, with their sentences."""


@dataclass(frozen=True)
class Kind:
    """How rows of a kind go back.

    ``target_type`` is that of their audit rows. ``fixed`` are fields that never change; ``create``
    gets them too. Without ``create``, rows are only ever erased. ``is_removed`` is whether a row is
    as ``remove`` leaves it, where that does not delete it. ``left_of`` gives the fields that stay as
    they are, with the code why; with ``id`` among them, the row is not removed either.
    """

    target_type: str
    model: Any
    fields: tuple[str, ...]
    update: Update
    fixed: tuple[str, ...] = ()
    create: Callable[[Values, Actor], object] | None = None
    remove: Callable[[Any, Actor], object] | None = None
    is_removed: Callable[[Any], bool] = lambda _: False
    left_of: Callable[[Any], Mapping[str, str]] = lambda _: {}


def _update_tenant(tenant: Tenant, values: Values, actor: Actor) -> None:
    if "meta_data" in values:
        metadata.check_all(TENANT, tenant.id, tenant.meta_data, values["meta_data"])
    with writes() as w:
        tenants.update_read(tenant, values, actor=actor, into=w)


def _update_user(user: User, values: Values, actor: Actor) -> None:
    meta_data = {name: values.pop(name) for name in ("meta_data",) if name in values}
    if meta_data:
        metadata.check_all(USER, user.tenant_id, user.meta_data, meta_data["meta_data"])
    if values:
        user = users.update(user.id, values, actor=actor)
    with writes() as w:
        users.update_many([(user, meta_data)], actor=actor, into=w)


def _update_membership(membership: Membership, values: Values, actor: Actor) -> None:
    if "role" in values:
        membership = memberships.set_role(membership.id, Role(values.pop("role")), actor=actor)
    if "is_active" in values:
        is_active = values.pop("is_active")
        membership = memberships.set_active(membership.id, is_active, actor=actor)
    with writes() as w:
        memberships.update_many([(membership, values)], actor=actor, into=w)


def _update_field(field: CustomField, values: Values, actor: Actor) -> None:
    is_active = values.pop("is_active", field.is_active)
    if values:
        custom_fields.update(field.id, values, actor=actor)
    if is_active != field.is_active:
        change = custom_fields.restore if is_active else custom_fields.archive
        change(field.id, actor=actor)


def _remove_field(field: CustomField, actor: Actor) -> None:
    """Archive the field; the next round deletes it, when a job has deleted its index."""
    if field.is_active:
        custom_fields.archive(field.id, actor=actor)
    else:
        custom_fields.delete(field.id, actor=actor)


def _assign_role(values: Values, actor: Actor) -> None:
    place = values["resource_type"] and {
        "type": values["resource_type"],
        "id": values["resource_id"],
    }
    role = queries.get_row(AccessRole, values["role_id"])
    given = {**values, "role": role.key, "resource": place}
    role_assignments.create(values["tenant_id"], given, source=values["source"], actor=actor)


def _update_assignment(assignment: RoleAssignment, values: Values, actor: Actor) -> None:
    """Assign the role that it was: another role took its place when that was deleted."""
    role_assignments.remove(assignment.id, actor=actor)
    again = {**assignment._asdict(), **values, "version": assignment.version + 1}
    _assign_role(again, actor)


def _update_override(override: FeatureOverride, values: Values, actor: Actor) -> None:
    values = {"flag_value": override.flag_value, **values}
    overrides.update_override(override.id, values, is_superadmin=True, actor=actor)


SUBSCRIPTION_FIELDS = tuple(
    column.name
    for column in Subscription.__table__.columns
    if column.name
    not in (
        *("tenant_id", "id", "created_at", "updated_at", "version", "bp_subscription_id"),
        *("status_class", "source_timestamp", "read_at", "missing_since"),
    )
)
OWN_FIELDS = ("billing_", "send_")  # of a subscription that a provider's events keep current


def _left_of_subscription(subscription: Subscription) -> dict[str, str]:
    if subscription.bp_provider is None:
        return {"bp_provider": BY_PROVIDER}
    fields = (name for name in SUBSCRIPTION_FIELDS if not name.startswith(OWN_FIELDS))
    return dict.fromkeys(("id", "billing_cycle", *fields), BY_PROVIDER)


KINDS: Mapping[str, Kind] = {
    "tenant": Kind(
        "tenant",
        Tenant,
        (
            *("idp_org_id", "name", "slug", "primary_contact_name", "primary_contact_email"),
            *("primary_contact_phone", "mailing_address_line_1", "mailing_address_line_2"),
            *("mailing_city", "mailing_state", "mailing_zipcode", "mailing_country", "meta_data"),
            *("is_active", "suspension_reason", "deletes_at", "plan_name"),
        ),
        _update_tenant,
        left_of=lambda _: {
            **dict.fromkeys(("is_active", "suspension_reason", "deletes_at"), "not_going_back"),
            "plan_name": "follows_plan",
        },
    ),
    "custom_fields": Kind(
        "custom_field",
        CustomField,
        ("label", "options", "is_required", "is_searchable", "is_active", "sort_order"),
        _update_field,
        fixed=("entity_type", "field_key", "field_type"),
        create=lambda values, actor: custom_fields.create(
            values.pop("tenant_id"), values, actor=actor
        ),
        remove=_remove_field,
    ),
    "roles": Kind(
        "role",
        AccessRole,
        ("name", "permissions", "inherits", "assignable_by"),
        lambda role, values, actor: roles.update(role.id, values, actor=actor),
        fixed=("key",),
        create=lambda values, actor: roles.create(values.pop("tenant_id"), values, actor=actor),
        remove=lambda role, actor: roles.delete(role.id, actor=actor),
    ),
    "users": Kind(
        "user",
        User,
        ("idp_user_id", "email", "first_name", "last_name", "is_active", "meta_data"),
        _update_user,
        remove=lambda user, actor: users.update(user.id, {"is_active": False}, actor=actor),
        is_removed=lambda user: not user.is_active,
    ),
    "memberships": Kind(
        "membership",
        Membership,
        ("role", "is_active", "idp_membership_id"),
        _update_membership,
        remove=lambda member, actor: memberships.set_active(member.id, False, actor=actor),
        is_removed=lambda member: not member.is_active,
    ),
    "role_assignments": Kind(
        "role_assignment",
        RoleAssignment,
        ("role_id",),
        _update_assignment,
        fixed=(
            *("membership_id", "group_id", "api_key_id", "resource_type", "resource_id"),
            *("expires_at", "source"),
        ),
        create=_assign_role,
        remove=lambda row, actor: role_assignments.remove(row.id, actor=actor),
    ),
    "subscriptions": Kind(
        "subscription",
        Subscription,
        SUBSCRIPTION_FIELDS,
        lambda row, values, actor: subscriptions.write(row, values, {}, actor=actor),
        remove=lambda row, actor: subscriptions.cancel(row.id, at_period_end=False, actor=actor),
        is_removed=is_ended,
        left_of=_left_of_subscription,
    ),
    "overrides": Kind(
        "override",
        FeatureOverride,
        ("plan_preset_id", "flag_value", "expires_at", "carry_over", "reason"),
        _update_override,
        fixed=("flag_key",),
        create=lambda values, actor: overrides.create_override(
            values.pop("tenant_id"), values, actor=actor
        ),
        remove=lambda override, actor: overrides.delete_override(override.id, actor=actor),
        left_of=lambda _: {"plan_preset_id": "follows_plan"},
    ),
}

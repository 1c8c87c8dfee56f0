"""Find the tenant, user, membership, plan preset or subscription that an operator names."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import click
from sqlalchemy import Uuid, bindparam, or_, select

from app.core.db.queries import find_row, id_or_none, parse_id
from app.core.db.statements import Statement
from app.core.errors import NotFound
from app.flags import presets
from app.flags.models import PlanPreset
from app.memberships.models import Membership
from app.subscriptions.models import Subscription
from app.tenants.models import Tenant
from app.users.lookup import find_users
from app.users.models import User

FIND_TENANT = Statement(
    "tenants.find_by_name",
    select(Tenant).where(
        or_(Tenant.slug == bindparam("slug"), Tenant.id == bindparam("id", type_=Uuid))
    ),
)
LIST_TENANT_IDS = Statement(
    "tenants.list_ids", select(Tenant.id).order_by(Tenant.created_at, Tenant.id)
)
FIND_SUBSCRIPTIONS = Statement(
    "subscriptions.find_by_name",
    select(Subscription)
    .where(
        or_(
            Subscription.bp_subscription_id == bindparam("bp_subscription_id"),
            Subscription.id == bindparam("id", type_=Uuid),
        )
    )
    .limit(2),
)


def find_tenant(named: str) -> Tenant:
    """The tenant with this slug or id; ClickException if there is none."""
    tenant: Tenant | None = FIND_TENANT.first(slug=named, id=id_or_none(named))
    if tenant is None:
        raise click.ClickException(f"There is no tenant {named}.")
    return tenant


def list_tenant_ids() -> Sequence[UUID]:
    """The ids of all tenants, oldest first."""
    return LIST_TENANT_IDS.scalars()


def find_user(named: str, tenant: str | None = None) -> User:
    """The user with this id or e-mail address; only of ``tenant`` (slug or id) if it is given.

    Raises ClickException if there is none or more than one.
    """
    found = find_users(named, find_tenant(tenant).id if tenant is not None else None)
    where = f" in {tenant}" if tenant else ""
    if not found:
        raise click.ClickException(f"There is no user {named}{where}.")
    if len(found) > 1:
        raise click.ClickException(
            f"Several users are called {named}{where}: name one by id, or add --tenant SLUG."
        )
    return found[0]


def find_membership(named: str, tenant: str | None = None) -> Membership:
    """The membership with this id, or of the user with this e-mail address.

    Only of ``tenant`` (slug or id) if it is given. Raises NotFound, and ClickException for an
    address of no user or of several.
    """
    if "@" in named:
        user = find_user(named, tenant)
        equal = {"tenant_id": user.tenant_id, "user_id": user.id}
    else:
        equal = {"id": parse_id(named)}
        if tenant is not None:
            equal["tenant_id"] = find_tenant(tenant).id
    membership: Membership | None = find_row(Membership, **equal)
    if membership is None:
        raise NotFound
    return membership


def find_preset(name: str) -> PlanPreset:
    """The plan preset of this name; ClickException if there is none."""
    preset = presets.find_preset(name)
    if preset is None:
        raise click.ClickException(f"There is no preset {name}.")
    return preset


def find_subscription(named: str) -> Subscription:
    """The subscription with this id, or this id at the billing provider.

    Raises ClickException if there is none or more than one.
    """
    found: list[Subscription] = FIND_SUBSCRIPTIONS.all(
        bp_subscription_id=named, id=id_or_none(named)
    )
    if not found:
        raise click.ClickException(f"There is no subscription {named}.")
    if len(found) > 1:
        raise click.ClickException(
            f"Several tenants have a subscription {named}: name one by its id here."
        )
    return found[0]

"""Subscriptions: create, find, apply the provider's updates, record cancellations."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Text, bindparam, exists, or_

from app.audit import service as audit
from app.config import current_config
from app.core.actors import Actor
from app.core.clock import utcnow
from app.core.db import queries
from app.core.db.list_conditions import Condition
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.db.queries import Change
from app.core.db.writes import Writes, writes
from app.core.errors import Conflict, ProviderField
from app.core.json_text import Json
from app.plans.following import DECIDING_FIELDS, Followed, default_plan, follow_plan
from app.plans.models import PlanPreset
from app.search import writer as terms
from app.search.models import EntityType
from app.subscriptions.models import Subscription
from app.subscriptions.statuses import CANCELED, StatusClass, class_of, is_ended, with_class
from app.tenants.models import Tenant

PROVIDER_FIELDS = frozenset(
    {
        "bp_subscription_id",
        "bp_customer_id",
        "bp_plan_id",
        "bp_status",
        "plan_name",
        "is_free_trial",
        "start_date",
        "billing_cycle",
        "per_cycle_billing_amount",
    }
)
"""What only the provider's side writes; a tenant's credential may not, or it would choose its plan."""

MANAGED_FIELDS = PROVIDER_FIELDS | {"auto_renew"}
"""What the provider's events decide, where the service receives them."""

HAS_PRESET = exists().where(PlanPreset.name == Subscription.plan_name)

# A word has one class, unless a provider's events keep the row current. The class has an index.
HAS_CLASS_OF_WORD = or_(
    Subscription.status_class == bindparam("class_of_word", type_=Text),
    Subscription.bp_provider.is_not(None),
)

NO_CANCELLATION: dict[str, Any] = {
    "canceled_at": None,
    "cancel_at_period_end": None,
    "cancel_reason": None,
}


class Updated(NamedTuple):
    """A subscription after an update.

    ``is_applied`` is False for an update that is not newer than the newest applied update.
    ``has_plan`` is False if its plan has no effect, because no preset has its name.
    """

    subscription: Subscription
    is_applied: bool
    has_plan: bool


class BpSubscriptionIdTaken(Conflict):
    code = "bp_subscription_id_taken"
    detail = "This tenant has a subscription with this bp_subscription_id; update that one."


class ManagedByProvider(Conflict):
    code = "managed_by_provider"
    detail = (
        "The billing provider's events keep this subscription current: change it at the provider."
    )


CONFLICTS = {"uq_subscriptions_tenant_id_bp_subscription_id": BpSubscriptionIdTaken}


def get_subscription(subscription_id: UUID | str) -> Subscription:
    return queries.get_row(Subscription, subscription_id)


def list_subscriptions(
    paging: Paging = FIRST_PAGE,
    *,
    tenant_id: UUID | None = None,
    status_class: str | None = None,
    **equal: str,
) -> Page:
    """One page of the subscriptions that match all filters; ``equal`` are values of columns."""
    conditions = []
    if status_class is not None:
        equal["status_class"] = status_class
    elif "bp_status" in equal:
        values = {"class_of_word": class_of(equal["bp_status"]).value}
        conditions.append(Condition(HAS_CLASS_OF_WORD, values))
    return paginate(Subscription, paging, *conditions, equal=equal, tenant_id=tenant_id)


def create(
    tenant_id: UUID, values: Mapping[str, object], *, actor: Actor
) -> tuple[Subscription, bool]:
    """Create a subscription; the tenant's plan follows. Returns also whether its plan has a preset.

    Raises NotFound for an unknown tenant, and BpSubscriptionIdTaken if the tenant already has it.
    """
    queries.get_row(Tenant, tenant_id)
    with writes() as w:
        subscription = insert_in(tenant_id, values, actor=actor, into=w)
    return subscription, follow_plan(tenant_id, [subscription], actor=actor).has_plan(subscription)


def insert_in(
    tenant_id: UUID, values: Mapping[str, object], *, actor: Actor, into: Writes
) -> Subscription:
    """Create a subscription as :func:`create` does.

    The caller calls :func:`follow_plan` after the block.
    """
    values = {**with_class(values), "tenant_id": tenant_id}
    subscription = into.insert(Subscription, values, conflicts=CONFLICTS)
    audit.record_creation("subscription.created", subscription, actor=actor, into=into)
    terms.add(EntityType.SUBSCRIPTION, subscription, into=into)
    return subscription


def update_subscription(
    subscription_id: UUID | str,
    values: Mapping[str, object],
    *,
    source_timestamp: datetime | None = None,
    force: bool = False,
    actor: Actor,
) -> Updated:
    """Set the given fields; the tenant's plan follows.

    ``source_timestamp`` is the provider's time of the values. An update that is not newer than the
    newest applied one changes nothing.
    Raises ProviderField if a tenant's actor sets one of the provider's fields. Without ``force``,
    raises ManagedByProvider for what the provider's events decide.
    """
    if not actor.is_platform and (source_timestamp or PROVIDER_FIELDS & values.keys()):
        get_subscription(subscription_id)  # an unknown subscription is 404, not 403
        raise ProviderField
    subscription, (has_preset,) = queries.lock_with(Subscription, subscription_id, HAS_PRESET)
    if not force and (source_timestamp or MANAGED_FIELDS & values.keys()):
        _check_not_managed(subscription)
    queries.check_precondition(subscription)
    has_plan = has_preset or is_ended(subscription) or subscription.plan_name == default_plan()
    applied = subscription.source_timestamp
    if source_timestamp is not None and applied is not None and source_timestamp <= applied:
        return Updated(subscription, False, has_plan)
    if _withdraws_cancellation(subscription, values):
        values = {**values, **NO_CANCELLATION}
    stamps = {} if source_timestamp is None else {"source_timestamp": source_timestamp}
    subscription, followed = write(subscription, values, stamps, actor=actor)
    return Updated(subscription, True, followed.has_plan(subscription) if followed else has_plan)


def write(
    subscription: Subscription,
    values: Mapping[str, object],
    stamps: Mapping[str, object],
    *,
    actor: Actor,
) -> tuple[Subscription, Followed | None]:
    """Set the fields of a locked row that differ; the tenant's plan follows.

    ``stamps`` are columns that do not change the subscription: they have no audit row and leave the
    version. Returns also what followed, or None if nothing could have.
    """
    subscription, change = queries.update_row(
        Subscription, subscription, with_class(values), actor_id=actor.id, also=stamps
    )
    if change is None and queries.difference(subscription, stamps) is not None:
        key = {"tenant_id": subscription.tenant_id, "id": subscription.id}
        queries.update_where(Subscription, key, stamps)
        subscription = subscription._replace(**stamps)
    return subscription, _record(subscription, change, "subscription.updated", actor=actor)


def cancel(
    subscription_id: UUID | str,
    *,
    at_period_end: bool,
    reason: str | None = None,
    canceled_at: datetime | None = None,
    force: bool = False,
    actor: Actor,
) -> Subscription:
    """Record a cancellation, now or at the end of the paid period; the provider is not called.

    An immediate cancellation sets the status ``canceled``. With ``at_period_end`` the status stays
    until the provider changes it. Nothing changes if the subscription has ended. A second
    cancellation at the period's end changes nothing either. Without ``force``, raises
    ManagedByProvider where the provider's events decide.
    """
    subscription = queries.lock_row(Subscription, subscription_id)
    if not force:
        _check_not_managed(subscription)
    ends_with_period = subscription.cancel_at_period_end and not subscription.auto_renew
    if is_ended(subscription) or (at_period_end and ends_with_period):
        return subscription
    values = {
        "auto_renew": False,
        "canceled_at": canceled_at or utcnow(),
        "cancel_at_period_end": at_period_end,
        "cancel_reason": reason,
    }
    if not at_period_end:
        values["bp_status"] = CANCELED
    subscription, change = queries.update_row(
        Subscription, subscription, with_class(values), actor_id=actor.id
    )
    _record(subscription, change, "subscription.canceled", actor=actor)
    return subscription


def _record(
    subscription: Subscription, change: Change | None, action: str, *, actor: Actor
) -> Followed | None:
    """Record a change in the audit trail, and set the tenant's plan if it may have changed."""
    if change is None:
        return None
    with writes() as w:  # the audit rows of the subscription and of the tenant
        audit.record(action, subscription, change, actor=actor, into=w)
        terms.follow(EntityType.SUBSCRIPTION, subscription, change, into=w)
        if DECIDING_FIELDS.isdisjoint(change.after):
            return None
        class_before = class_of(change.before.get("bp_status", ""))
        was_ended = change.before.get("status_class", class_before) == StatusClass.ENDED
        named = [subscription] if was_ended or "plan_name" in change.after else []
        return follow_plan(subscription.tenant_id, named, actor=actor, into=w)


def is_managed(provider: str | None) -> bool:
    """Whether the service receives the events of this provider."""
    return bool(provider and getattr(current_config(), f"webhook_secrets_{provider}", ""))


def _check_not_managed(subscription: Subscription) -> None:
    """Raise ManagedByProvider while the service receives the events of the row's provider."""
    if is_managed(subscription.bp_provider):
        raise ManagedByProvider


def _withdraws_cancellation(subscription: Subscription, values: Mapping[str, Json]) -> bool:
    if with_class(values).get("status_class", subscription.status_class) == StatusClass.ENDED:
        return False
    return is_ended(subscription) or values.get("auto_renew") is True

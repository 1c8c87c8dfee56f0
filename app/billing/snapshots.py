"""A billing provider's statements about a subscription or a customer, in this service's words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from app.subscriptions.statuses import StatusClass


class Item(NamedTuple):
    """An item of a subscription. ``quantity`` is None for a metered price, or if it is unknown."""

    id: str
    price: str
    quantity: int | None = 1
    lookup_key: str = ""


class Customer(NamedTuple):
    """A customer at the provider; ``tenant`` as in :class:`Snapshot`.

    ``external_id`` is the merchant's own id of it, which may be that of a tenant.
    """

    id: str
    tenant: str = ""
    external_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A subscription as its provider describes it.

    ``status`` is the provider's word, and ``status_class`` its class, which other members can also
    decide. ``tenant`` is ``metadata.tenant_id``: an id, a slug or an ``idp_org_id``; "" if there is
    none. ``items`` are in the provider's order, the plan's first where the provider says which it
    is. ``currency`` has upper case; "" where the provider does not say it. ``amount``: of all items
    for one period, in minor units; None where it is unknown. ``billing_cycle`` is the nearest of
    ours; "" where it is unknown. ``collection_is_paused``: it is served, but not charged.
    ``cancel_at_period_end``: it was cancelled, and ends with the paid period. ``canceled_at``: when
    that was asked for, or when it ended; it counts for one that does not renew. ``changed_at``: the
    provider's time, or version as a time, of this state; None where the object has none, and the
    event's time counts. ``is_live``: False for test mode; None where the provider does not say.
    """

    subscription_id: str
    customer_id: str
    status: str
    status_class: StatusClass
    tenant: str = ""
    items: tuple[Item, ...]
    currency: str = ""
    amount: int | None
    billing_cycle: str
    start_date: datetime
    trial_end: datetime | None = None
    current_period_end: datetime | None = None
    collection_is_paused: bool = False
    canceled_at: datetime | None = None
    cancel_at_period_end: bool = False
    cancel_reason: str = ""
    changed_at: datetime | None = None
    is_live: bool | None = None

    @property
    def auto_renew(self) -> bool:
        return not (self.cancel_at_period_end or self.status_class is StatusClass.ENDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class BillingEvent:
    """The subject of one event: a subscription or a customer; the other member is None.

    ``snapshot`` is the subscription in the payload; None if the payload has none, such as that of a
    failed payment: the subscription has then to be read. ``tenant`` as in :class:`Snapshot`, where
    only the event has it.
    """

    subscription_id: str | None = None
    customer: Customer | None = None
    snapshot: Snapshot | None = None
    tenant: str = ""
    occurred_at: datetime
    is_live: bool | None = None

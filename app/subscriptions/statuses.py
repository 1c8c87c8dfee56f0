"""The billing providers' words for a subscription's state, and the class each belongs to.

``bp_status`` keeps the provider's word; rules and filters look at its class. The vocabulary is that
of Stripe (`subscription.status`), Chargebee (`subscription.status`) and Lago (`subscription.status`),
compared without regard to case. A word that none of them uses is of the class ``unknown``, which
counts as not ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from app.subscriptions.models import Subscription


class StatusClass(StrEnum):
    """What a provider's word means here."""

    PENDING = "pending"
    LIVE = "live"
    PAST_DUE = "past_due"
    PAUSED = "paused"
    ENDED = "ended"
    UNKNOWN = "unknown"


CANCELED = "canceled"
"""The word that an immediate cancellation records."""

VOCABULARY = {
    "incomplete": StatusClass.PENDING,  # Stripe: the first payment is still due
    "future": StatusClass.PENDING,  # Chargebee: starts later
    "pending": StatusClass.PENDING,  # Lago: starts later
    "active": StatusClass.LIVE,  # all three
    "trialing": StatusClass.LIVE,  # Stripe
    "in_trial": StatusClass.LIVE,  # Chargebee
    "non_renewing": StatusClass.LIVE,  # Chargebee: ends with the paid period
    "past_due": StatusClass.PAST_DUE,  # Stripe
    "unpaid": StatusClass.PAST_DUE,  # Stripe: it has given up collecting, the subscription stays
    "paused": StatusClass.PAUSED,  # Stripe, Chargebee
    "canceled": StatusClass.ENDED,  # Stripe, Lago
    "cancelled": StatusClass.ENDED,  # Chargebee
    "incomplete_expired": StatusClass.ENDED,  # Stripe: the first payment never came
    "transferred": StatusClass.ENDED,  # Chargebee: moved to another business entity
    "terminated": StatusClass.ENDED,  # Lago
}


def class_of(bp_status: str) -> StatusClass:
    """The class of a provider's word."""
    return VOCABULARY.get(bp_status.lower(), StatusClass.UNKNOWN)


def with_class(values: Mapping[str, Any]) -> dict[str, Any]:
    """``values`` of a subscription; where they have ``bp_status``, its ``status_class`` too."""
    if "bp_status" not in values:
        return dict(values)
    return {**values, "status_class": class_of(values["bp_status"]).value}


def is_ended(subscription: Subscription) -> bool:
    """Whether the provider, or an immediate cancellation, has ended it."""
    return subscription.status_class == StatusClass.ENDED


def vocabulary_text() -> str:
    """The vocabulary in one line, for documents: ``live: active, trialing …; ended: …``."""
    classes = (status_class for status_class in StatusClass if status_class in VOCABULARY.values())
    return "; ".join(
        f"{status_class.value}: {', '.join(w for w, c in VOCABULARY.items() if c is status_class)}"
        for status_class in classes
    )

"""The billing providers' words for a subscription's state, and the class each belongs to.

``bp_status`` is the provider's word; rules and filters use its class. The vocabulary is that of
Stripe, Paddle, Polar, Chargebee and Lago (`subscription.status`), compared without regard to case.
Any other word has the class ``unknown``, which is not ended.

Lemon Squeezy has a vocabulary of its own, where one word has another class. Some providers also have
facts that decide the class before the word does.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from app.core.json_text import Json
from app.subscriptions.models import Subscription


class StatusClass(StrEnum):
    """The class of a provider's word."""

    PENDING = "pending"
    LIVE = "live"
    PAST_DUE = "past_due"
    PAUSED = "paused"
    ENDED = "ended"
    UNKNOWN = "unknown"


CANCELED = "canceled"
"""The ``bp_status`` of an immediate cancellation."""

VOCABULARY = {
    "incomplete": StatusClass.PENDING,  # Stripe: the first payment is still due
    "future": StatusClass.PENDING,  # Chargebee: starts later
    "pending": StatusClass.PENDING,  # Lago: starts later
    "active": StatusClass.LIVE,  # all three
    "trialing": StatusClass.LIVE,  # Stripe
    "in_trial": StatusClass.LIVE,  # Chargebee
    "non_renewing": StatusClass.LIVE,  # Chargebee: ends with the paid period
    "past_due": StatusClass.PAST_DUE,  # Stripe
    "unpaid": StatusClass.PAST_DUE,  # Stripe: collection has ended, the subscription continues
    "paused": StatusClass.PAUSED,  # Stripe, Chargebee
    "canceled": StatusClass.ENDED,  # Stripe, Lago
    "cancelled": StatusClass.ENDED,  # Chargebee
    "incomplete_expired": StatusClass.ENDED,  # Stripe: the first payment was not made in time
    "transferred": StatusClass.ENDED,  # Chargebee: moved to another business entity
    "terminated": StatusClass.ENDED,  # Lago
}


def class_of(bp_status: str) -> StatusClass:
    return VOCABULARY.get(bp_status.lower(), StatusClass.UNKNOWN)


def with_class(values: Mapping[str, Json]) -> dict[str, Json]:
    """``values`` of a subscription; ``status_class`` is added if they have only ``bp_status``."""
    if "bp_status" not in values or "status_class" in values:
        return dict(values)
    return {**values, "status_class": class_of(values["bp_status"]).value}


def is_ended(subscription: Subscription) -> bool:
    """Whether the provider or an immediate cancellation has ended the subscription."""
    return subscription.status_class == StatusClass.ENDED


def vocabulary_text() -> str:
    """The vocabulary in one line, for the OpenAPI document: ``live: active, …; ended: …``."""
    classes = (status_class for status_class in StatusClass if status_class in VOCABULARY.values())
    return "; ".join(
        f"{status_class.value}: {', '.join(w for w, c in VOCABULARY.items() if c is status_class)}"
        for status_class in classes
    )

"""The billing providers, by name."""

from __future__ import annotations

from collections.abc import Mapping

from app.billing.providers import chargebee, lemonsqueezy, paddle, polar, stripe
from app.billing.providers.provider import BillingProvider

PROVIDERS: Mapping[str, BillingProvider] = {
    each.PROVIDER.name: each.PROVIDER for each in (stripe, paddle, chargebee, lemonsqueezy, polar)
}

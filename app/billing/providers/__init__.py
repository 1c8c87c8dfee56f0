"""The billing providers, by name."""

from __future__ import annotations

from collections.abc import Mapping

from app.billing.providers.provider import BillingProvider

PROVIDERS: Mapping[str, BillingProvider] = {}

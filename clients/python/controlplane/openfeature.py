"""Flags by OpenFeature; needs ``controlplane-client[openfeature]``."""

from __future__ import annotations

from openfeature import api
from openfeature.contrib.provider.ofrep import OFREPProvider


def set_provider(url: str, token: str, *, domain: str | None = None) -> None:
    """Let OpenFeature's clients evaluate the flags of the service."""
    provider = OFREPProvider(url, headers_factory=lambda: {"Authorization": f"Bearer {token}"})
    api.set_provider(provider, domain)

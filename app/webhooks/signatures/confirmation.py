"""Confirming a subscription of Amazon SNS, which delivers nothing before."""

from __future__ import annotations

import http.client
import logging
from urllib.parse import urlsplit

from app.webhooks.providers.payloads import Unreadable
from app.webhooks.signatures.sns import SUBSCRIBE_URL

log = logging.getLogger(__name__)

TIMEOUT = 5.0  # seconds for each step: connecting, and each read


class ConfirmationFailed(Exception):
    """The address did not answer as it should; a retry may."""


def confirm_subscription(url: str) -> None:
    """Visit the address, which has to be one of SNS; redirects are not followed."""
    if not SUBSCRIBE_URL.fullmatch(url):
        raise Unreadable("the address to confirm at is not one of SNS")
    parts = urlsplit(url)
    connection = http.client.HTTPSConnection(parts.netloc, timeout=TIMEOUT)
    try:
        connection.request("GET", f"{parts.path or '/'}?{parts.query}")
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as fault:
        raise ConfirmationFailed(type(fault).__name__) from fault
    finally:
        connection.close()
    if status != 200:
        raise ConfirmationFailed(f"SNS answered {status}")
    log.info("webhook_subscription_confirmed", extra={"host": parts.netloc})

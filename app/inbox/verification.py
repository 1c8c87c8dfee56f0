"""The receivers' secrets, and checking the signature of a request against them."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from flask import Flask, current_app

from app.config import Config, ConfigError
from app.core.errors import TooLarge, Unauthenticated, Unavailable
from app.core.http.body_limits import TOO_LARGE, allow_body
from app.inbox.providers import RECEIVERS, Receiver
from app.inbox.signatures.presets import MAX_BODY
from app.inbox.signatures.proof import BodyTooLarge, SignatureInvalid
from app.inbox.signatures.schemes import Scheme, Verified, parse_schemes, verify
from app.inbox.signatures.sns import CertificateUnavailable

log = logging.getLogger(__name__)

SCHEMES = "webhook_schemes"


class WebhookSecretMissing(Unavailable):
    """The receiver has no configured secret."""

    code = "webhook_secret_missing"
    detail = "This receiver has no signing secret."


class SignatureUncheckable(Unavailable):
    """The sender's certificate cannot be fetched now."""

    code = "certificate_unavailable"
    detail = "The signature cannot be checked at the moment."


def configure(app: Flask) -> None:
    """Read the receivers' secrets. A receiver without secrets refuses every request (503).

    A receiver's path takes the largest body that one of its senders may send.
    Raises ConfigError with the name of each setting that cannot be read, never with its value.
    """
    config, schemes, faults = app.extensions["config"], {}, []
    for receiver in RECEIVERS.values():
        setting = receiver.setting.upper()
        try:
            found = schemes[receiver.name] = parse_schemes(" ".join(pairs(receiver, config)))
        except ValueError as fault:
            faults.append(f"{setting}: {fault}")
            continue
        if not found and not receiver.preset:
            log.warning("webhook_secret_missing", extra={"setting": setting})
        own = {None, *(provider.name for provider in receiver.providers)}
        for misplaced in (one for one in found if one.provider not in own):
            fields = {"setting": setting, "preset": misplaced.preset}
            log.warning("webhook_preset_misplaced", extra=fields)  # its events will be ignored
    if faults:
        raise ConfigError("The configuration is not usable: " + "; ".join(faults) + ".")
    app.extensions[SCHEMES] = schemes
    for name, configured in schemes.items():
        largest = max((scheme.max_body for scheme in configured), default=MAX_BODY)
        allow_body(RECEIVERS[name].path, largest)


def pairs(receiver: Receiver, config: Config) -> list[str]:
    """The configured secrets as ``preset:secret``."""
    values: list[str] = getattr(config, receiver.setting).split()
    return [f"{receiver.preset}:{value}" for value in values] if receiver.preset else values


def verify_request(receiver: Receiver, headers: list[tuple[str, str]], body: bytes) -> Verified:
    """The sender of a request.

    Raises Unauthenticated where no configured secret matches, and TooLarge where one was not tried
    because of the body's size. Raises WebhookSecretMissing where no secret is configured, and
    SignatureUncheckable where the signature cannot be checked now.
    """
    schemes: Sequence[Scheme] = current_app.extensions[SCHEMES][receiver.name]
    if not schemes:
        raise WebhookSecretMissing
    try:
        return verify(schemes, headers, body, time.time())
    except CertificateUnavailable as fault:
        log.warning("webhook_certificate_unavailable", extra={"reason": str(fault)})
        raise SignatureUncheckable from None
    except BodyTooLarge:
        limit = min(scheme.max_body for scheme in schemes)
        raise TooLarge(TOO_LARGE.format(limit=limit)) from None
    except SignatureInvalid as fault:
        log.info("webhook_refused", extra={"reason": str(fault)})
        raise Unauthenticated(reason="signature_invalid") from None

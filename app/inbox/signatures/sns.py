"""Amazon SNS, which carries the events of SES: its signatures, certificates and confirmations.

The steps are those of "Verifying the signatures of Amazon SNS messages" in the SNS developer
guide. Any AWS account can make SNS sign a message, so the topic is compared first. A certificate
is trusted because of its address: https, on a host of SNS.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TypeVar
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from app.core.outgoing import FetchFailed, guarded
from app.inbox.providers.payloads import Unreadable
from app.inbox.signatures.proof import (
    Proof,
    SignatureInvalid,
    SignedRequest,
    check_age,
    decoded,
    json_object,
    required_text,
    utf8,
)

T = TypeVar("T")
log = logging.getLogger(__name__)

HOST = r"https://sns\.[a-zA-Z0-9-]{3,}\.amazonaws\.com(?:\.cn)?/"
CERTIFICATE_URL = re.compile(HOST + r"[a-zA-Z0-9._/-]+\.pem")
SUBSCRIBE_URL = re.compile(HOST + r"[!-~]*")
CONFIRMATION = ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type")
SIGNED_MEMBERS = {
    "Notification": ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"),
    "SubscriptionConfirmation": CONFIRMATION,
    "UnsubscribeConfirmation": CONFIRMATION,
}
HASHES: dict[str, hashes.HashAlgorithm] = {
    "1": hashes.SHA1(),  # noqa: S303 - the default of a topic
    "2": hashes.SHA256(),
}
FETCH_TIMEOUT = 2.0  # seconds; a request waits for it
MAX_CERTIFICATE = 16 * 1024  # bytes
COOL_DOWN = 30.0  # seconds for which an address that gave no certificate is not asked again
MAX_CACHED = 64
CONFIRM_TIMEOUT = 5.0  # seconds; the worker waits for it
MAX_CONFIRMATION = 1 << 20  # bytes


class CertificateUnavailable(SignatureInvalid):
    """The certificate could not be fetched, so the signature was not checked; a retry may work."""


class ConfirmationFailed(Exception):
    """SNS did not answer as it should; a retry may work."""


def fetch_certificate(url: str) -> bytes:
    """The PEM file at an https address."""
    try:
        return guarded().fetch(url, timeout=FETCH_TIMEOUT, max_bytes=MAX_CERTIFICATE)
    except FetchFailed as fault:
        is_refused = fault.status is not None and fault.status < 500
        kind = SignatureInvalid if is_refused else CertificateUnavailable
        raise kind(f"the certificate could not be fetched: {fault}") from fault


class Certificates:
    """A cache of certificates' public keys, and of addresses that gave none.

    A new certificate of Amazon has a new address, so a key never expires.
    """

    def __init__(self, fetch: Callable[[str], bytes] = fetch_certificate) -> None:
        self._fetch = fetch
        self._keys: dict[str, RSAPublicKey] = {}
        self._failures: dict[str, tuple[float, type[SignatureInvalid], str]] = {}
        self._lock = threading.Lock()

    def public_key(self, url: str) -> RSAPublicKey:
        """The key of a certificate; raises SignatureInvalid or CertificateUnavailable."""
        key = self._keys.get(url)
        if key is not None:
            return key
        until, kind, reason = self._failures.get(url, (0.0, SignatureInvalid, ""))
        if time.monotonic() < until:
            raise kind(reason)
        try:
            key = _rsa_key(self._fetch(url))
        except SignatureInvalid as fault:
            until = time.monotonic() + COOL_DOWN
            self._store(self._failures, url, (until, type(fault), str(fault)))
            raise
        self._store(self._keys, url, key)
        return key

    def _store(self, cache: dict[str, T], url: str, value: T) -> None:
        """Add an entry; the oldest is evicted where there are more than :data:`MAX_CACHED`."""
        with self._lock:
            cache[url] = value
            if len(cache) > MAX_CACHED:
                del cache[next(iter(cache))]


def aws_sns(
    request: SignedRequest, *, topic_arn: str, certificates: Certificates, tolerance: int
) -> Proof:
    """Signature versions 1 (SHA-1) and 2 (SHA-256), from the configured topic only."""
    envelope = json_object(request.body)
    if required_text(envelope, "TopicArn") != topic_arn:
        raise SignatureInvalid("another topic")
    members = SIGNED_MEMBERS.get(required_text(envelope, "Type"))
    algorithm = HASHES.get(required_text(envelope, "SignatureVersion"))
    if members is None or algorithm is None:
        raise SignatureInvalid("unknown type or signature version")
    content = _signed_text(envelope, members)
    check_age(request.now - _epoch(required_text(envelope, "Timestamp")), tolerance)
    certificate_url = required_text(envelope, "SigningCertURL")
    if not CERTIFICATE_URL.fullmatch(certificate_url):
        raise SignatureInvalid("the certificate is not on a host of SNS")
    signature = decoded(utf8(required_text(envelope, "Signature")))
    key = certificates.public_key(certificate_url)
    try:
        key.verify(signature, content, PKCS1v15(), algorithm)
    except InvalidSignature as invalid:
        raise SignatureInvalid("the RSA signature does not match") from invalid
    return Proof(message_id=required_text(envelope, "MessageId"))


def confirm_subscription(url: str) -> None:
    """Visit the address of a subscription, before which SNS delivers nothing.

    Raises Unreadable for an address that is not one of SNS, and ConfirmationFailed.
    """
    if not SUBSCRIBE_URL.fullmatch(url):
        raise Unreadable("the address to confirm at is not one of SNS")
    try:
        guarded().fetch(url, timeout=CONFIRM_TIMEOUT, max_bytes=MAX_CONFIRMATION)
    except FetchFailed as fault:
        raise ConfirmationFailed(str(fault)) from fault
    log.info("webhook_subscription_confirmed", extra={"host": urlsplit(url).netloc})


def _rsa_key(pem: bytes) -> RSAPublicKey:
    try:
        key = x509.load_pem_x509_certificate(pem).public_key()
    except (ValueError, UnsupportedAlgorithm) as fault:
        raise SignatureInvalid("not a certificate") from fault
    if not isinstance(key, RSAPublicKey):
        raise SignatureInvalid("not an RSA certificate")
    return key


def _signed_text(envelope: Mapping[str, object], names: tuple[str, ...]) -> bytes:
    """``Name\\nvalue\\n`` of each member; ``Subject`` is left out where there is none."""
    return b"".join(
        utf8(f"{name}\n{required_text(envelope, name)}\n")
        for name in names
        if name != "Subject" or envelope.get("Subject") is not None
    )


def _epoch(timestamp: str) -> float:
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError as fault:
        raise SignatureInvalid("not a timestamp") from fault
    if moment.tzinfo is None:
        raise SignatureInvalid("a timestamp without offset")
    return moment.timestamp()

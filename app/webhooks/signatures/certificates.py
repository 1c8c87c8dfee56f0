"""The signing certificates of Amazon SNS: fetched once, kept in memory.

Amazon names a new certificate by a new address, so one that was read is kept until the process
ends. What makes it trustworthy is the address: https, on a host that the caller has checked.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from app.webhooks.signatures.verifiers import SignatureInvalid

Fetch = Callable[[str], bytes]
T = TypeVar("T")

TIMEOUT = 2.0
"""Seconds for each step of a fetch: connecting, and each read."""
COOL_DOWN = 30.0
"""Seconds for which an address that gave no certificate is not asked again."""
LARGEST = 16 * 1024
MOST_KEPT = 64


class CertificateUnavailable(SignatureInvalid):
    """The certificate could not be fetched: neither valid nor invalid; a retry may tell."""


def fetch_certificate(url: str) -> bytes:
    """Read the PEM file at an https address; redirects are not followed."""
    parts = urlsplit(url)
    connection = http.client.HTTPSConnection(parts.netloc, timeout=TIMEOUT)
    try:
        connection.request("GET", parts.path)
        response = connection.getresponse()
        if response.status >= 500:
            raise CertificateUnavailable(f"the certificate's host answered {response.status}")
        if response.status != 200:
            raise SignatureInvalid(f"no certificate there: {response.status}")
        return response.read(LARGEST)
    except (OSError, http.client.HTTPException) as fault:
        raise CertificateUnavailable("the certificate's host does not answer") from fault
    finally:
        connection.close()


class Certificates:
    """The public keys of the certificates seen so far, and the addresses that had none."""

    def __init__(self, fetch: Fetch = fetch_certificate) -> None:
        self._fetch = fetch
        self._keys: dict[str, RSAPublicKey] = {}
        self._failures: dict[str, tuple[float, type[SignatureInvalid], str]] = {}
        self._lock = threading.Lock()

    def public_key(self, url: str) -> RSAPublicKey:
        """The key to verify with; raises SignatureInvalid or CertificateUnavailable."""
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
            self._keep(self._failures, url, (until, type(fault), str(fault)))
            raise
        self._keep(self._keys, url, key)
        return key

    def _keep(self, cache: dict[str, T], url: str, value: T) -> None:
        """Remember it, forgetting the oldest where there are too many."""
        with self._lock:
            cache[url] = value
            if len(cache) > MOST_KEPT:
                del cache[next(iter(cache))]


def _rsa_key(pem: bytes) -> RSAPublicKey:
    try:
        key = x509.load_pem_x509_certificate(pem).public_key()
    except (ValueError, UnsupportedAlgorithm) as fault:
        raise SignatureInvalid("not a certificate") from fault
    if not isinstance(key, RSAPublicKey):
        raise SignatureInvalid("not an RSA certificate")
    return key

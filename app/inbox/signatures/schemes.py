"""The configuration of a receiver, and verifying requests against it.

The text has ``preset:value`` pairs separated by white space. The first colon separates the two;
``?tolerance=<seconds>`` at the end of a pair replaces the preset's tolerance. The same preset twice
is a rotation of secrets, several presets are several senders. A request is accepted if one pair
matches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from cryptography.exceptions import UnsupportedAlgorithm

from app.inbox.signatures.presets import PRESETS
from app.inbox.signatures.proof import BodyTooLarge, Proof, SignatureInvalid, SignedRequest
from app.inbox.signatures.sns import Certificates, aws_sns

Check = Callable[[SignedRequest], Proof]


@dataclass(frozen=True, slots=True)
class Scheme:
    """One ``preset:value`` pair, parsed; ``check`` verifies a request."""

    preset: str
    provider: str | None
    max_body: int
    check: Check = field(repr=False)


@dataclass(frozen=True, slots=True)
class Verified:
    """The sender of a request, and what its signature says."""

    preset: str
    provider: str | None
    proof: Proof


def parse_schemes(text: str, *, certificates: Certificates | None = None) -> list[Scheme]:
    """Read a receiver's configuration; a ValueError names what is wrong, never the value."""
    store = certificates or Certificates()
    return [_parse_pair(pair, store) for pair in text.split()]


def verify(
    schemes: Iterable[Scheme], headers: Iterable[tuple[str, str]], body: bytes, now: float
) -> Verified:
    """The first scheme that matches; SignatureInvalid where none does.

    ``body`` is the raw bytes, ``now`` seconds since 1970. Every scheme is tried, so the duration
    does not reveal which one matches. Raises CertificateUnavailable where a retry may succeed, and
    BodyTooLarge where the body was too large for a scheme, which did not read it.
    """
    request = SignedRequest(_joined(headers), body, now)
    found: Verified | None = None
    # A stored exception would hold the whole request in memory until a garbage collection.
    kind, reason = SignatureInvalid, "no scheme is configured"
    for scheme in schemes:
        try:
            if len(body) > scheme.max_body:
                raise BodyTooLarge("the body is too large")
            proof = scheme.check(request)
        except SignatureInvalid as invalid:
            if kind is SignatureInvalid:
                kind, reason = type(invalid), str(invalid)
        else:
            found = found or Verified(scheme.preset, scheme.provider, proof)
    if found is None:
        raise kind(reason)
    return found


def _joined(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Lower-case names; the values of a repeated header are joined, so no signature matches it."""
    joined: dict[str, str] = {}
    for name, value in headers:
        key = name.lower()
        joined[key] = f"{joined[key]},{value}" if key in joined else value
    return joined


def _parse_pair(pair: str, certificates: Certificates) -> Scheme:
    name, colon, value = pair.partition(":")
    preset = PRESETS.get(name)
    if not colon or preset is None:
        known = ", ".join(PRESETS)
        raise ValueError(f"expected preset:value, with one of the presets {known}")
    options = dict(preset.options)
    if tuned := re.fullmatch(r"(.*)\?tolerance=([0-9]{1,9})", value):
        if "tolerance" not in options:
            raise ValueError(f"{name}: its requests carry no time, so there is no tolerance")
        value, options["tolerance"] = tuned[1], int(tuned[2])
    if preset.verifier is aws_sns:
        options["certificates"] = certificates
    try:
        options |= preset.value.read(value)
    except (ValueError, UnsupportedAlgorithm) as fault:
        raise ValueError(f"{name}: the value is not {preset.value.expected}") from fault
    return Scheme(name, preset.provider, preset.max_body, partial(preset.verifier, **options))

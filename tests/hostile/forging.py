"""Tokens made by hand, right and wrong."""

import hashlib
import hmac
import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

HASHES = {"256": hashes.SHA256, "384": hashes.SHA384, "512": hashes.SHA512}

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


def encoded(part: bytes) -> str:
    return urlsafe_b64encode(part).rstrip(b"=").decode()


def token(header: Mapping[str, Any] | bytes, payload: Any, key: PrivateKey | bytes | None) -> str:
    """A token of exactly this header and payload (bytes as they are), signed as ``alg`` says."""
    raw_header, raw_payload = (
        part if isinstance(part, bytes) else json.dumps(part).encode() for part in (header, payload)
    )
    signed = f"{encoded(raw_header)}.{encoded(raw_payload)}"
    algorithm = str(header.get("alg")) if isinstance(header, Mapping) else ""
    return f"{signed}.{encoded(signature(algorithm, signed.encode(), key))}"


def signature(algorithm: str, signed: bytes, key: PrivateKey | bytes | None) -> bytes:
    """The signature; of HS algorithms where the key is bytes, none where there is no key."""
    digest = HASHES.get(algorithm[2:], hashes.SHA256)()
    match key:
        case None:
            return b""
        case bytes():
            return hmac.new(key, signed, getattr(hashlib, f"sha{algorithm[2:]}")).digest()
        case rsa.RSAPrivateKey() if algorithm.startswith("PS"):
            salted = padding.PSS(padding.MGF1(digest), digest.digest_size)
            return key.sign(signed, salted, digest)
        case rsa.RSAPrivateKey():
            return key.sign(signed, padding.PKCS1v15(), digest)
        case ec.EllipticCurvePrivateKey():
            size = (key.key_size + 7) // 8
            numbers = decode_dss_signature(key.sign(signed, ec.ECDSA(digest)))
            return b"".join(number.to_bytes(size) for number in numbers)
        case ed25519.Ed25519PrivateKey():
            return key.sign(signed)


def claims(**changed: Any) -> dict[str, Any]:
    """Good claims for an hour, but for what is changed; ``...`` leaves one out."""
    now = int(time.time())
    good = {"iat": now, "exp": now + 3600, "iss": "https://issuer.example/", "aud": "service"}
    return {name: value for name, value in {**good, **changed}.items() if value is not ...}


def public_pem(key: PrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def published(key: PrivateKey, kid: str | None = None, **values: Any) -> dict[str, Any]:
    """The public half as a JWK (RFC 7517)."""
    kinds = {
        rsa.RSAPrivateKey: RSAAlgorithm,
        ec.EllipticCurvePrivateKey: ECAlgorithm,
        ed25519.Ed25519PrivateKey: OKPAlgorithm,
    }
    kind = next(algorithm for type_, algorithm in kinds.items() if isinstance(key, type_))
    named = {} if kid is None else {"kid": kid}
    return {**kind.to_jwk(key.public_key(), as_dict=True), "use": "sig", **named, **values}

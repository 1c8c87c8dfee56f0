"""Attacks on user tokens, each against a service that accepts the right ones."""

import base64
import dataclasses
import json
import time
from itertools import product
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from app.auth.tokens import LEEWAY, TokenVerifier
from tests import factories
from tests.hostile.forging import PrivateKey, claims, encoded, public_pem, published, token
from tests.hostile.forging import signature as sign
from tests.hostile.publishing import provider
from tests.hostile.wire import Answer, send

KEYS: dict[str, PrivateKey] = {
    "RS256": rsa.generate_private_key(65537, 2048),
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
}
FOREIGN: dict[str, PrivateKey] = {
    "RS256": rsa.generate_private_key(65537, 2048),
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
}
PEOPLE_ONLY = {"detail": "Not authenticated"}
NOW = int(time.time())
DAY = 86_400  # longer than any run of the tests

WRONG_CLAIMS: dict[str, dict[str, Any]] = {
    "no exp": {"exp": ...},
    "no iss": {"iss": ...},
    "no aud": {"aud": ...},
    "no iat": {"iat": ...},
    "no sub": {"sub": ...},
    "another issuer": {"iss": "https://issuer.example"},
    "issuers": {"iss": ["https://issuer.example/"]},
    "an issuer of null": {"iss": None},
    "another audience": {"aud": "services"},
    "other audiences": {"aud": ["a", "b"]},
    "no audiences": {"aud": []},
    "an audience that is an object": {"aud": {"service": 1}},
    "audiences that are no texts": {"aud": ["service", 1]},
    "expired": {"exp": NOW - LEEWAY - 60},
    "expired in 1970": {"exp": 0},
    "expired before time": {"exp": -(10**18)},
    "exp as a date": {"exp": "2099-01-01T00:00:00Z"},
    "exp as true": {"exp": True},
    "exp as null": {"exp": None},
    "exp as an array": {"exp": [NOW + 60]},
    "exp as an object": {"exp": {}},
    "not yet valid": {"nbf": NOW + DAY},
    "nbf as a date": {"nbf": "2020-01-01"},
    "issued in the future": {"iat": NOW + DAY},
    "iat as a date": {"iat": "now"},
    "an empty sub": {"sub": ""},
    "sub as a number": {"sub": 1},
    "sub as null": {"sub": None},
    "sub as true": {"sub": True},
    "sub as an array": {"sub": ["user"]},
    "sub as an object": {"sub": {"$ne": ""}},
    "a sub of 256 characters": {"sub": "a" * 256},
    "a sub with NUL": {"sub": "a\0"},
    "a sub with a newline": {"sub": "a\nb"},
    "a sub that is no text": {"sub": "\ud800"},
    "org as a number": {"org_id": 1},
    "org as false": {"org_id": False},
    "org as an array": {"org_id": ["a"]},
    "org as an object": {"org_id": {}},
    "an empty org": {"org_id": ""},
    "an org with NUL": {"org_id": "\0"},
    "an org of 100 KB": {"org_id": "a" * 100_000},
}
ODD_NUMBERS = (b"NaN", b"Infinity", b"1e400", b"9" * 5000, b"-Infinity")
CREDENTIALS = {
    "nothing": "",
    "the scheme alone": "Bearer",
    "the scheme and white space": "Bearer    ",
    "another scheme": "Basic dXNlcjpwYXNzd29yZA==",
    "no scheme": "a.b.c",
    "bytes beyond ASCII": "Bearer \xff\xfe\x80",
    "UTF-8": "Bearer " + "\u00e9\U0001f600".encode().decode("latin-1"),
    "bytes beyond ASCII in a token": "Bearer eyJ\xff.eyJ\xff.\xff",
    "dots": "Bearer ..",
    "many dots": "Bearer " + "." * 10_000,
    "a word": "Bearer null",
    "1 MB": "Bearer " + "a" * 1_000_000,
    "1 MB of a token": "Bearer " + f"{encoded(b'{}')}." * 300_000,
    "a key's prefix": "Bearer sk_",
    "a key that is none": "Bearer sk_" + "a" * 43,
    "a key of 1 MB": "Bearer sk_" + "a" * 1_000_000,
    "a key with NUL": "Bearer sk_\0",
    "a key beyond ASCII": "Bearer sk_\xff\xfe",
    "a key in SQL": "Bearer sk_' OR '1'='1",
    "a control character": "Bearer a\x07b",
    "two credentials": "Bearer a, Bearer b",
}


@pytest.fixture(params=["RS256", "ES256", "EdDSA"])
def algorithm(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def subject() -> dict[str, str]:
    """The claims of an owner."""
    tenant = factories.create_tenant()
    user, _, _ = factories.create_member(tenant, "owner")
    return {"sub": user.idp_user_id, "org_id": tenant.idp_org_id}


@pytest.fixture
def ask(app, monkeypatch, algorithm):
    """A request with an ``Authorization`` header, where the algorithm's key is the pinned one."""
    config = dataclasses.replace(
        app.extensions["config"],
        jwt_public_key=public_pem(KEYS[algorithm]).decode(),
        jwt_issuer="https://issuer.example/",
        jwt_audience="service",
    )
    monkeypatch.setitem(app.extensions, "token_verifier", TokenVerifier(config))
    return lambda credential: send(
        app, "get", "/v1/users", headers={"Authorization": f"Bearer {credential}"}
    )


def is_refused(answer: Answer) -> bool:
    """Whether it is the one generic 401, which says nothing about the reason."""
    return (
        answer.status == 401
        and answer.json == PEOPLE_ONLY
        and answer.headers["WWW-Authenticate"] == "Bearer"
    )


class TestRightTokens:
    def test_are_accepted(self, ask, subject, algorithm):
        good = {
            "plain": claims(**subject),
            "several audiences": claims(**subject, aud=["a", "service"]),
            "times with fractions": claims(**subject, iat=NOW + 0.5, exp=NOW + DAY + 0.5),
            "expired within the leeway": claims(**subject, exp=int(time.time()) - LEEWAY + 20),
            "valid within the leeway": claims(**subject, nbf=int(time.time()) + LEEWAY - 10),
            "other claims": claims(**subject, role="owner", scope="*", tenant_id="x"),
            "an end far away": claims(**subject, exp=10**400),
        }

        answers = {
            name: ask(token({"alg": algorithm}, payload, KEYS[algorithm])).status
            for name, payload in good.items()
        }

        assert set(answers.values()) == {200}, answers

    def test_may_name_a_key_which_is_not_looked_at(self, ask, subject, algorithm):
        header = {"alg": algorithm, "typ": "at+jwt", "kid": "../../dev/null"}

        answer = ask(token(header, claims(**subject), KEYS[algorithm]))

        assert answer.status == 200


class TestAttacks:
    def test_with_wrong_claims(self, ask, subject, algorithm):
        for name, changed in WRONG_CLAIMS.items():
            forged = token({"alg": algorithm}, claims(**subject | changed), KEYS[algorithm])

            assert is_refused(ask(forged)), name

    def test_with_numbers_that_are_none(self, ask, subject, algorithm):
        for claim, number in product(("exp", "nbf", "iat"), ODD_NUMBERS):
            payload = json.dumps(claims(**subject | {claim: "@"})).encode().replace(b'"@"', number)

            forged = token({"alg": algorithm}, payload, KEYS[algorithm])
            assert is_refused(ask(forged)), (claim, number[:9])

    def test_confusing_the_algorithm(self, ask, subject, algorithm):
        """The public key, which everybody knows, as the secret of an HMAC."""
        key = KEYS[algorithm].public_key()
        pem = public_pem(KEYS[algorithm])
        secrets = [pem, pem.strip(), pem.replace(b"\n", b"\r\n"), b"", b"\0"]
        secrets.append(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))
        if algorithm == "RS256":
            secrets.append(key.public_bytes(Encoding.PEM, PublicFormat.PKCS1))

        for name, secret in product(("HS256", "HS384", "HS512"), secrets):
            assert is_refused(ask(token({"alg": name}, claims(**subject), secret)))

    def test_without_a_signature(self, ask, subject, algorithm):
        signed = token({"alg": algorithm}, claims(**subject), KEYS[algorithm])
        for name in ("none", "None", "NONE", "nOnE", "", " none", None):
            unsigned = token({"alg": name}, claims(**subject), None)

            for forged in (unsigned, unsigned + signed.rpartition(".")[2], unsigned.rstrip(".")):
                assert is_refused(ask(forged)), name

    def test_signed_by_a_foreign_key(self, ask, subject, algorithm):
        for name, key in FOREIGN.items():
            assert is_refused(ask(token({"alg": name}, claims(**subject), key)))

    def test_signed_by_the_right_key_in_another_way(self, ask, subject, algorithm):
        for name in ("RS384", "RS512", "PS256", "PS512", "ES384", "ES256K", "x"):
            assert is_refused(ask(token({"alg": name}, claims(**subject), KEYS[algorithm])))

    def test_that_bring_their_own_key(self, ask, subject, algorithm):
        with provider() as (attacker, _):
            attacker.publish(published(FOREIGN[algorithm], "evil"))
            embedded = (
                {"jwk": published(FOREIGN[algorithm])},
                {"jku": attacker.url, "kid": "evil"},
                {"x5u": attacker.url},
                {"x5c": [encoded(b"certificate")]},
                {"kid": attacker.url},
                {"iss": attacker.url},
            )
            for header in embedded:
                forged = token({"alg": algorithm, **header}, claims(**subject), FOREIGN[algorithm])

                assert is_refused(ask(forged))

        assert attacker.fetched == 0

    def test_with_headers_that_are_none(self, ask, subject, algorithm):
        name = algorithm.encode()
        headers = (
            *(b"[]", b"null", b'"alg"', b"", b"{", b"\xff", b'{"alg": {}}'),
            *(b'{"alg": ["%b"]}' % name, b'{"alg": "%b", "kid": []}' % name),
            *(b'{"alg": "%b", "kid": 1}' % name, b"[" * 100_000, b'{"alg":' * 10_000),
        )
        for header in headers:
            assert is_refused(ask(token(header, claims(**subject), KEYS[algorithm])))

    def test_with_critical_headers_that_are_not_understood(self, ask, subject, algorithm):
        for header in ({"crit": ["exp"], "exp": 1}, {"crit": ["b64"], "b64": False}, {"crit": []}):
            forged = token({"alg": algorithm, **header}, claims(**subject), KEYS[algorithm])

            assert is_refused(ask(forged))

    def test_with_payloads_that_are_none(self, ask, algorithm):
        odd = (b"", b"[]", b"null", b"1", b"{", b"\xff")
        for payload in (*odd, b"[" * 100_000, b'{"a":' * 10_000):
            assert is_refused(ask(token({"alg": algorithm}, payload, KEYS[algorithm])))

    def test_that_alter_what_was_signed(self, ask, subject, algorithm):
        header, payload, signature = token(
            {"alg": algorithm}, claims(**subject), KEYS[algorithm]
        ).split(".")
        other = encoded(json.dumps(claims(**subject | {"sub": "somebody else"})).encode())
        flipped = ("A" if signature[0] != "A" else "B") + signature[1:]
        altered = (
            f"{header}.{other}.{signature}",
            f"{header}.{payload}.{flipped}",
            f"{header}.{payload}.{signature[:-4]}",
            f"{header}.{payload}.{signature}AAAA",
            f"{header}.{payload}.",
            f"{header}.{payload}",
            f"{header}.{payload}.{encoded(bytes(64))}",
            f"{header}.{payload}.{encoded(bytes(256))}",
            f"{header}.{payload}.{signature}.{signature}",
            f".{payload}.{signature}",
            f"{header}..{signature}",
            f"{payload}.{header}.{signature}",
            f"{header}.{payload}.{signature[:20]}%00{signature[20:]}",
        )
        for forged in altered:
            assert is_refused(ask(forged)), forged

    def test_spelt_in_another_way(self, ask, subject, algorithm):
        """Each decodes to the same bytes; accepted, it would have a rate limit of its own."""
        good = token({"alg": algorithm}, claims(**subject), KEYS[algorithm])
        signed, _, signature = good.rpartition(".")
        next_letter = {"A": "B", "Q": "R", "g": "h", "w": "x"}[signature[-1]]
        spellings = (
            f"{good}=",
            f"{good}==",
            f"{good}====",
            f"{good}==AAAA",
            f"{signed}.{signature[:-1]}{next_letter}",
            f"{signed}.{signature[:8]}!{signature[8:]}",
            f"{signed}.{signature[:8]}\t{signature[8:]}",
            f"{signed}.!!!!{signature}",
        )
        for spelling in spellings:
            assert is_refused(ask(spelling)), spelling
        assert ask(good).status == 200

    def test_signed_with_padding(self, ask, subject, algorithm):
        """RFC 7515, section 2, has base64url without it."""
        header = encoded(json.dumps({"alg": algorithm}).encode())
        payload = json.dumps(claims(**subject)).encode()
        payload += b" " * ((1 - len(payload)) % 3)  # JSON may end in white space
        padded = base64.urlsafe_b64encode(payload).decode()
        signature = encoded(sign(algorithm, f"{header}.{padded}".encode(), KEYS[algorithm]))

        answer = ask(f"{header}.{padded}.{signature}")

        assert padded.endswith("=")
        assert is_refused(answer)

    def test_with_a_credential_that_is_none(self, app, ask):
        for name, credential in CREDENTIALS.items():
            answer = send(app, "get", "/v1/users", headers={"Authorization": credential})

            assert is_refused(answer), name

    def test_do_not_outlive_their_end_by_being_remembered(self, app, ask, subject, algorithm):
        ends = int(time.time()) - LEEWAY + 2
        short = token({"alg": algorithm}, claims(**subject, exp=ends), KEYS[algorithm])

        first = ask(short).status
        time.sleep(max(0, ends + LEEWAY - time.time()) + 0.05)

        assert first == 200
        assert is_refused(ask(short))

"""The identity provider's published keys: rotation, and a provider that misbehaves."""

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from app.auth.published import Published
from app.auth.tokens import TokenVerifier
from app.core.errors import Unauthenticated, Unavailable
from tests import factories
from tests.concurrency import at_once
from tests.hostile.forging import claims, published, token
from tests.hostile.publishing import Provider, provider
from tests.hostile.wire import send

FIRST = ec.generate_private_key(ec.SECP256R1())
SECOND = ec.generate_private_key(ec.SECP256R1())
SHORT = rsa.generate_private_key(65537, 1024)
WITHOUT_PROVIDER = {
    "broken JSON": b"{",
    "HTML": b"<html>maintenance</html>",
    "an array": b"[]",
    "no keys": b'{"keys": []}',
    "keys that are none": b'{"keys": [1, null, "a", {}, {"kty": "EC"}]}',
    "keys of null": b'{"keys": null}',
    "deep JSON": b"[" * 100_000,
    "too much": b'{"keys": [' + b" " * (2 << 20) + b"]}",
}


@pytest.fixture
def keys():
    with provider() as (found, server):
        found.server = server
        found.publish(published(FIRST, "first"))
        yield found


@pytest.fixture
def verifier(app, keys) -> TokenVerifier:
    config = dataclasses.replace(
        app.extensions["config"],
        jwt_public_key="",
        jwt_jwks_url=keys.url,
        jwt_issuer="https://issuer.example/",
        jwt_audience="service",
    )
    return TokenVerifier(config)


@pytest.fixture
def cool_down(monkeypatch) -> Callable[[float], None]:
    """Set the seconds between two fetches."""
    return lambda seconds: monkeypatch.setattr(Published, "COOL_DOWN", seconds)


def signed(key: Any = FIRST, kid: str | None = "first", **changed: Any) -> str:
    header = {"alg": "ES256"} if kid is None else {"alg": "ES256", "kid": kid}
    return token(header, claims(**{"sub": "user", **changed}), key)


def seconds_of(action: Callable[[], Any]) -> float:
    started = time.monotonic()
    action()
    return time.monotonic() - started


class TestKeySets:
    def test_are_fetched_once(self, verifier, keys):
        for number in range(20):
            verifier.verify(signed(sub=f"user {number}"))

        assert keys.fetched == 1

    def test_are_fetched_once_by_many_at_once(self, verifier, keys):
        keys.delay = 0.2

        at_once([lambda n=n: verifier.verify(signed(sub=f"user {n}")) for n in range(8)])

        assert keys.fetched == 1

    def test_rotate(self, verifier, keys, cool_down):
        cool_down(0)
        verifier.verify(signed())
        keys.publish(published(FIRST, "first"), published(SECOND, "second"))

        verifier.verify(signed(SECOND, "second"))
        keys.publish(published(SECOND, "second"))
        verifier.verify(signed(SECOND, "second", sub="another"))
        with pytest.raises(Unauthenticated):
            verifier.verify(signed(SECOND, "third"))
        with pytest.raises(Unauthenticated):
            verifier.verify(signed(sub="late"))

        assert keys.fetched >= 3

    def test_are_not_fetched_for_each_unknown_key(self, verifier, keys):
        verifier.verify(signed())
        for number in range(1000):
            with pytest.raises(Unauthenticated):
                verifier.verify(signed(SECOND, f"unknown-{number}"))

        assert keys.fetched == 1

    def test_name_the_key_and_nothing_else_counts(self, verifier, keys):
        keys.publish(published(FIRST, "first"), published(SECOND, "second"))
        for forged in (
            signed(SECOND, "first"),
            signed(FIRST, "second"),
            signed(FIRST, None),
            token({"alg": "HS256", "kid": "first"}, claims(sub="user"), b"secret"),
        ):
            with pytest.raises(Unauthenticated):
                verifier.verify(forged)

    def test_offer_no_key_that_is_secret_weak_or_for_something_else(self, verifier, keys):
        secret = {"kty": "oct", "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0", "kid": "secret"}
        keys.publish(
            published(FIRST, "first"),
            secret,
            published(SECOND, "encrypts", use="enc"),
            published(SHORT, "short"),
        )
        verifier.verify(signed())
        for forged in (
            token(
                {"alg": "HS256", "kid": "secret"},
                claims(sub="user"),
                b"secret-secret-secret-secret",
            ),
            signed(SECOND, "encrypts"),
            token({"alg": "RS256", "kid": "short"}, claims(sub="user"), SHORT),
        ):
            with pytest.raises(Unauthenticated):
                verifier.verify(forged)


class TestProviderAway:
    def test_known_keys_go_on_working(self, verifier, keys, monkeypatch, cool_down):
        verifier.verify(signed())
        keys.server.shutdown()
        keys.server.server_close()
        monkeypatch.setattr(Published, "MAX_AGE", 0.0)
        cool_down(0)

        assert verifier.verify(signed(sub="later")).subject == "later"
        with pytest.raises(Unauthenticated):
            verifier.verify(signed(SECOND, "unknown"))

    @pytest.mark.parametrize("name", WITHOUT_PROVIDER)
    def test_known_keys_outlive_an_answer_that_is_none(
        self, verifier, keys, monkeypatch, cool_down, name
    ):
        verifier.verify(signed())
        monkeypatch.setattr(Published, "MAX_AGE", 0.0)
        cool_down(0)

        keys.body = WITHOUT_PROVIDER[name]

        assert verifier.verify(signed(sub="later")).subject == "later"
        assert keys.fetched >= 2

    def test_nobody_who_is_known_waits_for_it(self, verifier, keys, monkeypatch, cool_down):
        verifier.verify(signed())
        monkeypatch.setattr(Published, "MAX_AGE", 0.0)
        cool_down(0)
        keys.delay = 1.9

        waited = at_once(
            [
                lambda n=n: seconds_of(lambda: verifier.verify(signed(sub=f"user {n}")))
                for n in range(6)
            ]
        )

        assert sorted(waited)[-2] < 1.5  # all but the one who fetches

    @pytest.mark.parametrize("how", ["delay", "drip"])
    def test_it_is_not_waited_for_longer_than_two_seconds(self, verifier, keys, how):
        setattr(keys, how, 0.15 if how == "drip" else 20)

        def ask() -> None:
            with pytest.raises(Unavailable):
                verifier.verify(signed())

        assert seconds_of(ask) < 10
        assert seconds_of(ask) < 1.5  # the cool-down

    def test_without_any_key_it_is_503(self, app, verifier, keys: Provider, monkeypatch):
        keys.status = 500
        monkeypatch.setitem(app.extensions, "token_verifier", verifier)
        tenant = factories.create_tenant()
        key = factories.create_api_key(tenant, ["users:read"])

        answer = send(app, "get", "/v1/users", token=signed())
        with_key = send(app, "get", "/v1/users", token=key)

        assert answer.status == 503
        assert answer.json["code"] == "keys_unavailable"
        assert int(answer.headers["Retry-After"]) > 0
        assert with_key.status == 200

"""Limits per credential, and per address for failed authentication, with Redis and without."""

import time
from collections.abc import Callable
from functools import partial

import pytest
from flask import Flask
from redis.exceptions import RedisError

from app.core import redis_clients
from app.core.http.rate_counts import INTERVAL
from tests import factories
from tests.hostile.wire import Answer, send

ALLOWED = 5
FAILURES = 3
NOWHERE = "unix:///nowhere/redis.sock?db=0"


@pytest.fixture
def process(with_limits) -> Callable[..., Flask]:
    """Call it for the service in another process, so far as limits are concerned."""
    wait_for_a_whole_test()
    return partial(with_limits, **LIMITS)


@pytest.fixture
def limited(process) -> Flask:
    return process()


@pytest.fixture
def without_redis(process) -> Flask:
    return process(REDIS_URL=NOWHERE)


@pytest.fixture(params=["limited", "without_redis"])
def either(request: pytest.FixtureRequest) -> Flask:
    """The service with Redis, and with none at all."""
    return request.getfixturevalue(request.param)


LIMITS = {
    "RATELIMIT_DEFAULT": f"{ALLOWED}/minute",
    "RATELIMIT_FAILED_AUTH": f"{FAILURES}/minute",
}


def wait_for_a_whole_test() -> None:
    """Windows are aligned to the clock; return when the present one lasts for a test."""
    remaining = 60 - time.time() % 60
    if remaining < 10:
        time.sleep(remaining)


def wait_for_exchange() -> None:
    """Return when each process knows what all have counted before, if it counts again."""
    time.sleep(INTERVAL + 0.25)


def new_token() -> str:
    return factories.create_member(factories.create_tenant())[2]


def limits_of(answer: Answer) -> tuple[int, int]:
    """The limit and what remains of it; the reset is always within the minute."""
    assert 1 <= int(answer.headers["RateLimit-Reset"]) <= 60
    return int(answer.headers["RateLimit-Limit"]), int(answer.headers["RateLimit-Remaining"])


def ask(app: Flask, token: str, **options) -> Answer:
    return send(app, "get", "/v1/users", token=token, **options)


class TestPerCredential:
    def test_tells_what_remains_and_refuses_what_is_too_much(self, either):
        token = new_token()

        answers = [ask(either, token) for _ in range(ALLOWED + 2)]

        assert [answer.status for answer in answers] == [200] * ALLOWED + [429] * 2
        assert [limits_of(answer) for answer in answers] == [
            (ALLOWED, max(ALLOWED - number, 0)) for number in range(1, ALLOWED + 3)
        ]
        assert "Retry-After" not in answers[0].headers
        assert answers[-1].headers["Retry-After"] == answers[-1].headers["RateLimit-Reset"]
        assert answers[-1].json == {"detail": "Too Many Requests"}
        for answer in answers:
            _, remaining = limits_of(answer)
            reset = answer.headers["RateLimit-Reset"]
            assert answer.headers["RateLimit-Policy"] == f'"credential";q={ALLOWED};w=60'
            assert answer.headers["RateLimit"] == f'"credential";r={remaining};t={reset}'

    def test_counts_all_endpoints_together(self, limited):
        token = new_token()
        for path in ("/v1/users", "/v1/audit-events", "/v1/custom-fields", "/v1/nowhere"):
            send(limited, "get", path, token=token)

        assert limits_of(ask(limited, token)) == (ALLOWED, ALLOWED - 4)

    def test_is_not_evaded_by_another_spelling(self, either):
        token = new_token()
        spellings = [f"{'Bearer' if n % 2 else 'bEARER'}{' ' * (n + 1)}{token}" for n in range(10)]

        statuses = [
            send(either, "get", "/v1/users", headers={"Authorization": spelling}).status
            for spelling in spellings
        ]

        assert statuses == [200] * ALLOWED + [429] * (10 - ALLOWED)

    def test_does_not_concern_public_endpoints(self, limited):
        answers = [send(limited, "get", "/healthz") for _ in range(ALLOWED * 2)]
        webhooks = [send(limited, "post", "/webhooks/idp", body=b"{}") for _ in range(FAILURES * 2)]

        assert {answer.status for answer in answers} == {200}
        assert {answer.status for answer in webhooks} == {401}
        assert "RateLimit-Limit" not in answers[0].headers


class TestFailedAuthentication:
    def test_is_refused_beyond_the_limit_of_an_address(self, either):
        answers = [ask(either, f"forged-{number}") for number in range(FAILURES + 2)]

        assert [answer.status for answer in answers] == [401] * FAILURES + [429] * 2
        assert limits_of(answers[0]) == (FAILURES, FAILURES - 1)
        assert answers[-1].headers["Retry-After"] == answers[-1].headers["RateLimit-Reset"]
        assert answers[-1].json == {"detail": "Too many failed authentications from this address."}

    def test_counts_unknown_keys_and_missing_credentials_too(self, limited):
        ask(limited, "sk_unknown")
        send(limited, "get", "/v1/users")
        ask(limited, "")

        assert ask(limited, "forged").status == 429


class TestRedisAway:
    def test_no_request_waits_for_it(self, process, frozen_redis):
        """A Redis that takes connections and says nothing costs the requests no time."""
        url, accepted = frozen_redis
        frozen = process(REDIS_URL=url, REDIS_TIMEOUT="10")
        token = new_token()
        ask(frozen, token)
        wait_for_exchange()

        started = time.monotonic()
        statuses = [ask(frozen, token).status for _ in range(ALLOWED)]
        seconds = time.monotonic() - started

        assert statuses == [200] * (ALLOWED - 1) + [429]
        assert seconds < 8
        assert len(accepted) == 1

    def test_is_asked_again_later(self, frozen_redis, monkeypatch):
        monkeypatch.setattr(redis_clients, "PAUSE", 1)
        url, accepted = frozen_redis
        client = redis_clients.request_client(url, 0.1)
        for _ in range(20):
            with pytest.raises(RedisError):
                client.ping()
        asked_first = len(accepted)
        time.sleep(1.05)
        with pytest.raises(RedisError):
            client.ping()

        assert asked_first == 1
        assert len(accepted) == 2

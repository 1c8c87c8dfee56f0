"""The limit of each kind of credential, and what a refused request costs."""

import pytest
from flask import Flask

from app.auth import principals
from app.connections.service import TOKEN_PREFIX
from app.scim import access
from tests.conftest import Api
from tests.factories import create_api_key, create_member, create_tenant, platform_token

TENANT, PLATFORM = 3, 6
# Windows of a month, which do not end during a test.
LIMITS = {
    "RATELIMIT_DEFAULT": f"{TENANT}/month",
    "RATELIMIT_PLATFORM": f"{PLATFORM}/month",
    "RATELIMIT_FAILED_AUTH": "1000/month",
}


@pytest.fixture
def limited(with_limits) -> Flask:
    return with_limits(**LIMITS)


@pytest.fixture
def statuses(limited: Flask):
    """The statuses of so many requests in a row."""
    return lambda token, times: [
        Api(limited).get("/v1/users", token=token).status_code for _ in range(times)
    ]


class TestPlatformCredential:
    def test_has_a_limit_of_its_own(self, limited, statuses, tenant):
        for token in (platform_token(), create_api_key(None, ["users:read"])):
            assert statuses(token, PLATFORM + 1) == [200] * PLATFORM + [429]
        for token in (create_member(tenant)[2], create_api_key(tenant, ["users:read"])):
            assert statuses(token, TENANT + 1) == [200] * TENANT + [429]

    def test_sees_its_own_limit_from_the_first_answer_on(self, limited):
        token = platform_token()

        answers = [Api(limited).get("/v1/users", token=token) for _ in range(2)]

        assert [answer.headers["RateLimit-Limit"] for answer in answers] == [str(PLATFORM)] * 2
        assert [answer.headers["RateLimit-Remaining"] for answer in answers] == ["5", "4"]

    def test_loses_its_limit_with_its_rank(self, app, statuses, tenant):
        subject = create_member(tenant)[0].idp_user_id
        token = platform_token(subject=subject, tenant=tenant)
        before = statuses(token, TENANT + 1)
        app.test_cli_runner().invoke(args=["platform-admins", "remove", subject, "--yes"])

        after = statuses(token, 2)

        assert before == [200] * (TENANT + 1)
        assert after == [200, 429]


class TestBeyondTheLimit:
    @pytest.fixture
    def without_database(self, with_limits) -> Flask:
        return with_limits(**LIMITS, DATABASE_URL="postgresql://nobody@127.0.0.1:1/nothing")

    @pytest.mark.parametrize("kind", ["key", "token"])
    def test_costs_no_database_work(self, without_database, kind, tenant):
        token = (
            create_api_key(tenant, ["users:read"]) if kind == "key" else create_member(tenant)[2]
        )

        answers = [Api(without_database).get("/v1/users", token=token) for _ in range(TENANT + 1)]

        assert [answer.status_code for answer in answers] == [503] * TENANT + [429]


class TestFailures:
    """Beyond RATELIMIT_FAILED_AUTH of an address."""

    @pytest.fixture
    def limited(self, with_limits) -> Flask:
        return with_limits(RATELIMIT_DEFAULT="100/month", RATELIMIT_FAILED_AUTH="2/month")

    @pytest.fixture
    def looked_up(self, monkeypatch) -> list[str]:
        """The digests of API keys and SCIM tokens that were looked up."""
        found = []
        for statement in (principals.AUTHENTICATE_KEY, access.AUTHENTICATE):
            first = statement.first

            def look_up(first=first, **values):
                found.append(values["digest"])
                return first(**values)

            monkeypatch.setattr(statement, "first", look_up)
        return found

    @pytest.mark.parametrize(
        ("path", "prefix"), [("/v1/users", "sk_"), ("/scim/v2/Users", TOKEN_PREFIX)]
    )
    def test_unknown_credentials_are_not_looked_up(self, limited, looked_up, path, prefix):
        client = limited.test_client()

        answers = [
            client.get(path, headers={"Authorization": f"Bearer {prefix}{number}"})
            for number in range(5)
        ]

        assert [answer.status_code for answer in answers] == [401, 401, 429, 429, 429]
        assert len(looked_up) == 2
        assert int(answers[-1].headers["Retry-After"]) > 0

    def test_good_credentials_of_the_address_are_accepted(self, limited, statuses):
        key = create_api_key(create_tenant(), ["users:read"])
        assert statuses(key, 1) == [200]
        for number in range(3):
            statuses(f"sk_{number}", 1)

        assert statuses("sk_x", 1) == [429]
        assert statuses(key, 2) == [200, 200]
        assert statuses(create_member(create_tenant())[2], 1) == [200]

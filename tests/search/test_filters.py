"""?q= of the lists of tenants, users and memberships."""

import pytest

from app.core.db.writes import writes
from app.search import writer
from app.search.models import EntityType
from tests.database import platform_transaction
from tests.factories import create_member, create_tenant, platform_token


@pytest.fixture
def world(app):
    """Two tenants with a member each, which the search finds."""
    acme = create_tenant(name="Acme Ltd", slug="acme")
    initech = create_tenant(name="Initech", slug="initech")
    ada, membership, owner = create_member(acme, first_name="Ada", last_name="Lovelace")
    grace, _, _ = create_member(initech, first_name="Grace", last_name="Hopper")
    with platform_transaction(), writes() as w:
        writer.add(EntityType.TENANT, acme, initech, into=w)
        writer.add(EntityType.USER, ada, grace, into=w)
    return {"acme": acme, "ada": ada, "membership": membership, "owner": owner}


@pytest.fixture
def ids(api, world):
    def ask(path, q, token=None, **query):
        answer = api.get(path, token=token or platform_token(), query_string={"q": q, **query})
        assert answer.status_code == 200, answer.text
        return [row["id"] for row in answer.get_json()["data"]]

    return ask


class TestWordsOfLists:
    @pytest.mark.parametrize("q", ["ac", "ACME", "ltd acme", "Acme L"])
    def test_narrow_the_list_of_tenants(self, ids, world, q):
        assert ids("/v1/tenants", q) == [str(world["acme"].id)]

    def test_must_all_match(self, ids):
        assert ids("/v1/tenants", "acme initech") == []

    def test_narrow_the_list_of_users(self, ids, world):
        assert ids("/v1/users", "love") == [str(world["ada"].id)]
        assert ids("/v1/users", "lovelace ada") == [str(world["ada"].id)]
        assert ids("/v1/users", str(world["ada"].id)) == [str(world["ada"].id)]
        assert ids("/v1/users", "love", is_active="false") == []

    def test_narrow_the_list_of_memberships_by_the_user(self, ids, world):
        assert ids("/v1/memberships/tenant", "ada") == [str(world["membership"].id)]

    @pytest.mark.parametrize("path", ["/v1/tenants", "/v1/users", "/v1/memberships/tenant"])
    @pytest.mark.parametrize("q", ["a", "--", "q" * 256])
    def test_refuse_fewer_than_two_letters_or_too_many(self, api, world, path, q):
        answer = api.get(path, token=platform_token(), query_string={"q": q})

        assert answer.status_code == 422
        assert answer.get_json()["detail"][0]["loc"] == ["query", "q"]

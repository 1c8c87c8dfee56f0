"""The demo data, by the command that prints them."""

import json

import pytest

from app import create_app
from app.auth.permissions import Role
from app.extensions import db
from app.tenants.models import Tenant
from tests import database
from tests.factories import platform_token

KEYS = ["tenant_id", "slug", "idp_org_id", "subscription_id", "field_id", "override_id", "users"]


def invoke(app, *words: str):
    return app.test_cli_runner().invoke(args=[*words])


@pytest.fixture
def demo(app) -> dict:
    """What `flask seed --json` prints."""
    return json.loads(invoke(app, "seed", "--json").stdout)


@pytest.fixture
def acme(demo) -> dict:
    return demo["tenants"][0]


def token_of(tenant: dict, role: str) -> str:
    return next(user["token"] for user in tenant["users"] if user["role"] == role)


class TestSeed:
    def test_prints_the_ids_and_tokens_of_two_tenants(self, demo):
        assert list(demo) == ["platform_token", "tenants"]
        assert [tenant["slug"] for tenant in demo["tenants"]] == ["acme", "globex"]
        for tenant in demo["tenants"]:
            assert list(tenant) == KEYS
            assert all(tenant.values())
            assert [user["role"] for user in tenant["users"]] == list(Role)
            assert all(list(u) == ["id", "role", "membership_id", "token"] for u in tenant["users"])

    def test_says_the_same_again_and_changes_nothing(self, app, demo, acme):
        again = json.loads(invoke(app, "seed", "--json").stdout)

        assert [ids(tenant) for tenant in again["tenants"]] == [ids(t) for t in demo["tenants"]]

    def test_makes_what_was_deleted_anew(self, app, api, demo, acme):
        path = f"/v1/billing/flags/overrides/{acme['override_id']}"
        deleted = api.delete(path, token=demo["platform_token"])

        again = json.loads(invoke(app, "seed", "--json").stdout)

        assert deleted.status_code == 204
        assert again["tenants"][0]["override_id"] not in (None, acme["override_id"])

    def test_each_tenant_uses_its_limits_now_and_before(self, api, demo):
        for tenant, months in zip(demo["tenants"], (7, 4), strict=True):
            query = {"tenant_id": tenant["tenant_id"], "feature": "api-calls"}
            periods = api.get(
                "/v1/usage", token=demo["platform_token"], query_string=query
            ).get_json()["data"]

            assert len(periods) == months
            assert all(period["used"] > 0 for period in periods)
            ends = [period["resets_at"] for period in periods[1:]]
            assert ends == [period["period_start"] for period in periods[:-1]]

    def test_an_address_is_suppressed_until_it_is_lifted(self, app, demo):
        listed = json.loads(invoke(app, "emails", "suppressions", "--json").stdout)
        lifted = invoke(app, "emails", "lift", listed[0]["address"], "--yes")
        invoke(app, "seed", "--json")

        assert [one["address"] for one in listed] == ["viewer@acme.example"]
        assert lifted.exit_code == 0
        assert json.loads(invoke(app, "emails", "suppressions", "--json").stdout) == []

    def test_credits_can_be_granted(self, app, demo):
        words = "credits grant --tenant acme --feature ai-credits --amount 5000 --source purchase"

        assert invoke(app, *words.split()).exit_code == 0

    def test_the_named_field_is_archived_and_searchable_and_none_is_required(self, api, acme):
        fields = api.get("/v1/custom-fields", token=token_of(acme, "owner")).json["data"]

        named = next(field for field in fields if field["id"] == acme["field_id"])
        assert (named["is_active"], named["is_searchable"]) == (False, True)
        assert not any(field["is_required"] for field in fields)
        assert len({field["field_type"] for field in fields}) >= 5


class TestProduction:
    @pytest.mark.parametrize("command", [["tokens", "issue", "--superadmin"], ["seed"], ["dev"]])
    def test_refuses_without_a_development_key(self, environment, app, command):
        platform_token()
        production = create_app({**environment, "JWT_SIGNING_KEY": ""})

        refused = invoke(production, *command)

        assert refused.exit_code == 1
        assert "JWT_SIGNING_KEY is not set" in refused.stderr
        with production.app_context():
            db.engine.dispose()
        assert database.rows(Tenant) == []


def ids(tenant: dict) -> list:
    """All of a demo tenant but the tokens, which are new each time."""
    people = [(user["id"], user["role"], user["membership_id"]) for user in tenant["users"]]
    return [value for key, value in tenant.items() if key != "users"] + people

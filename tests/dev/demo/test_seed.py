"""The demo data, by the command that prints them."""

import json

import pytest

from app import create_app
from app.extensions import db
from app.tenants.models import Tenant
from tests import database
from tests.factories import platform_token


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
            assert list(tenant) == [
                "tenant_id",
                "slug",
                "idp_org_id",
                "subscription_id",
                "field_id",
                "override_id",
                "users",
            ]
            assert all(tenant.values())
            assert [user["role"] for user in tenant["users"]] == [
                "owner",
                "admin",
                "billing",
                "member",
                "viewer",
            ]
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

    def test_the_tokens_are_accepted(self, api, demo, acme):
        member = api.get("/v1/users", token=token_of(acme, "viewer"))
        superadmin = api.get("/v1/tenants", token=demo["platform_token"])

        assert len(member.json["data"]) == 5
        assert [tenant["slug"] for tenant in superadmin.json["data"]] == ["acme", "globex"]

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

    def test_each_tenants_plan_is_a_preset(self, api, demo):
        tenants = api.get("/v1/tenants", token=demo["platform_token"]).json["data"]
        presets = api.get("/v1/billing/plans", token=demo["platform_token"]).json["data"]

        assert {tenant["plan_name"] for tenant in tenants} == {preset["name"] for preset in presets}
        for preset in presets:
            types = {flag["flag_type"] for flag in preset["flags"]}
            assert types == {"boolean", "string", "number", "json", "limit"}

    def test_the_named_field_is_archived_and_searchable_and_none_is_required(self, api, acme):
        fields = api.get("/v1/custom-fields", token=token_of(acme, "owner")).json["data"]

        named = next(field for field in fields if field["id"] == acme["field_id"])
        assert (named["is_active"], named["is_searchable"]) == (False, True)
        assert not any(field["is_required"] for field in fields)
        assert len({field["field_type"] for field in fields}) >= 5

    def test_archives_the_named_field_again(self, app, api, acme):
        path = f"/v1/custom-fields/{acme['field_id']}"
        owner = token_of(acme, "owner")
        api.post(f"{path}/restore", json={"confirm": True}, token=owner)

        invoke(app, "seed")

        assert api.get(path, token=owner).json["data"]["is_active"] is False


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

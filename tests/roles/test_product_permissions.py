"""/v1/permissions."""

import pytest

from tests.factories import create_permission, create_role, platform_token

PATH = "/v1/permissions"


class TestPut:
    def test_creates_and_replaces(self, api, admin):
        body = {"description": "Approve.", "group": "Invoices", "requires_flag": "invoicing"}

        first = api.put(f"{PATH}/invoices:approve", token=platform_token(), json=body)
        second = api.put(f"{PATH}/invoices:approve", token=platform_token(), json={"group": "x"})
        read = api.get(f"{PATH}/invoices:approve", token=admin)

        made = first.get_json()["data"]
        assert made.items() >= {**body, "kind": "product", "requires_limit": None}.items()
        assert (
            second.get_json()["data"].items() >= {"description": "", "requires_flag": None}.items()
        )
        assert (read.get_json(), read.headers["ETag"]) == (second.get_json(), '"2"')

    def test_is_an_event_of_the_platform(self, api, admin):
        made = api.put(f"{PATH}/invoices:approve", token=platform_token(), json={})
        api.delete(f"{PATH}/invoices:approve", token=platform_token())
        api.sequence()

        events = api.get("/v1/events?types=permission.*", token=platform_token()).get_json()["data"]

        assert [event["type"] for event in events] == ["permission.created", "permission.deleted"]
        assert events[0]["data"] == made.get_json()["data"]
        assert api.get("/v1/events?types=permission.*", token=admin).get_json()["data"] == []

    @pytest.mark.parametrize(
        "key", ["Invoices", "1x", "a b", "x" * 129, "users:read", "platform:superadmin"]
    )
    def test_refuses_other_keys_and_those_of_the_service(self, api, key):
        answer = api.put(f"{PATH}/{key}", token=platform_token(), json={})

        assert answer.status_code == 422
        assert answer.get_json()["detail"][0]["loc"][0] == "path"

    def test_there_are_at_most_1000(self, api, monkeypatch):
        from app.roles import product_permissions

        monkeypatch.setattr(product_permissions, "MAX_PERMISSIONS", 1)
        create_permission("a")

        answer = api.put(f"{PATH}/b", token=platform_token(), json={})

        assert answer.get_json()["code"] == "too_many_permissions"


class TestList:
    def test_has_the_services_and_the_products(self, api, admin):
        create_permission("invoices:approve", group_name="Invoices")

        everything = api.get(PATH, token=admin).get_json()["data"]
        product = api.get(f"{PATH}?kind=product", token=admin).get_json()["data"]
        group = api.get(f"{PATH}?group=users", token=admin).get_json()["data"]

        kinds = {one["key"]: one["kind"] for one in everything}
        assert kinds["users:read"] == "service"
        assert {"usage:write", "platform:superadmin"}.isdisjoint(kinds)
        assert [one["key"] for one in product] == ["invoices:approve"]
        assert [one["key"] for one in group] == ["users:read", "users:write"]

    def test_gets_one_of_the_service(self, api, admin):
        assert api.get(f"{PATH}/users:read", token=admin).get_json()["data"]["kind"] == "service"
        assert api.get(f"{PATH}/no:such", token=admin).get_json()["code"] == "permission_not_found"


class TestDelete:
    def test_refuses_one_that_a_role_has(self, api, tenant):
        create_permission("invoices:approve")
        create_role(tenant, "invoices:approve", key="clerk")

        answer = api.delete(f"{PATH}/invoices:approve", token=platform_token())

        assert (answer.status_code, answer.get_json()["code"]) == (409, "permission_in_use")
        assert answer.get_json()["detail"].startswith("1 ")

"""/v1/tenants."""

from functools import partial

import pytest

from tests.concurrency import at_once
from tests.factories import PLATFORM_SUBJECT, create_member, create_tenant, platform_token

BAD_SLUGS = ["Acme", "acme_inc", "-acme", "acme-", "a--b", "a b", "acme\n", "é", "a/b"]


@pytest.fixture
def superadmin(app):
    return platform_token()


class TestCreateTenant:
    def test_fills_in_what_is_left_out(self, api, superadmin):
        body = {"idp_org_id": "org_new", "name": "Acme", "mailing_city": "Oslo"}

        created = api.post("/v1/tenants", token=superadmin, json=body).get_json()["data"]

        filled = {"slug": "acme", "plan_name": "free", "is_active": True}
        assert (body | filled).items() <= created.items()

    @pytest.mark.parametrize(
        ("name", "slug"),
        [
            ("Acme, Inc.", "acme-inc"),
            ("  Ünïcode & Söhne  ", "unicode-sohne"),
            ("北京", "tenant"),
            ("--", "tenant"),
            ("A" * 255, "a" * 255),
        ],
    )
    def test_derives_the_slug_from_the_name(self, api, superadmin, name, slug):
        answer = api.post("/v1/tenants", token=superadmin, json={"idp_org_id": "o", "name": name})

        assert answer.get_json()["data"]["slug"] == slug

    def test_numbers_a_long_slug_that_is_cut_at_a_hyphen_with_one_hyphen(self, api, superadmin):
        name = "a" * 242 + " " + "b" * 12
        for org_id in ("org_1", "org_2"):
            body = {"name": name, "idp_org_id": org_id}
            answer = api.post("/v1/tenants", token=superadmin, json=body)

        assert answer.get_json()["data"]["slug"] == "a" * 242 + "-2"

    def test_numbers_slugs_that_are_derived_at_the_same_moment(self, api, superadmin):
        bodies = [{"idp_org_id": f"org_{number}", "name": "Acme"} for number in range(12)]

        answers = at_once(
            [partial(api.post, "/v1/tenants", token=superadmin, json=body) for body in bodies]
        )

        slugs = {answer.get_json()["data"]["slug"] for answer in answers}
        assert slugs == {"acme", *(f"acme-{number}" for number in range(2, 13))}

    @pytest.mark.parametrize(
        ("taken", "code"),
        [({"slug": "acme"}, "slug_taken"), ({"idp_org_id": "org_acme"}, "idp_org_id_taken")],
    )
    def test_refuses_what_another_tenant_has(self, api, superadmin, taken, code):
        create_tenant(slug="acme", idp_org_id="org_acme")
        body = {"idp_org_id": "org_new", "name": "New", **taken}

        answer = api.post("/v1/tenants", token=superadmin, json=body)

        assert (answer.status_code, answer.get_json()["code"]) == (409, code)


class TestListTenants:
    def test_narrows_by_each_filter(self, api, superadmin):
        wanted = create_tenant(slug="one", plan_name="gold", is_active=False)
        create_tenant()

        for query in (
            "slug=one",
            "plan_name=gold",
            "is_active=false",
            f"idp_org_id={wanted.idp_org_id}",
        ):
            answer = api.get(f"/v1/tenants?{query}", token=superadmin).get_json()
            assert [tenant["id"] for tenant in answer["data"]] == [str(wanted.id)], query


class TestUpdateTenant:
    def test_takes_a_contact_address_away(self, api, superadmin):
        tenant = create_tenant(primary_contact_email="a@b.co")
        path = f"/v1/tenants/{tenant.id}"

        emptied = api.patch(path, token=superadmin, json={"primary_contact_email": ""})
        wrong = api.patch(path, token=superadmin, json={"primary_contact_email": "x"})

        assert emptied.get_json()["data"]["primary_contact_email"] == ""
        assert wrong.status_code == 422

    @pytest.mark.parametrize("slug", BAD_SLUGS)
    def test_refuses_a_new_slug_of_another_form(self, api, superadmin, slug, tenant):
        path, stale = f"/v1/tenants/{tenant.id}", {"If-Match": '"9"'}

        answer = api.patch(path, token=superadmin, json={"slug": slug}, headers=stale)

        (entry,) = answer.get_json()["detail"]
        pattern = "^[a-z0-9]+(-[a-z0-9]+)*$"
        assert answer.status_code == 422
        assert entry == {
            "type": "string_pattern_mismatch",
            "loc": ["body", "slug"],
            "msg": f"String should match pattern '{pattern}'",
            "input": slug,
            "ctx": {"pattern": pattern},
        }

    def test_takes_back_the_slug_that_is_stored_whatever_its_form(self, api, superadmin):
        tenant = create_tenant(slug="Old_Slug")
        body = {"slug": "Old_Slug", "name": "New"}

        answer = api.patch(f"/v1/tenants/{tenant.id}", token=superadmin, json=body)

        assert answer.status_code == 200
        assert body.items() <= answer.get_json()["data"].items()

    def test_leaves_idp_org_id_to_the_platform(self, api, superadmin, tenant):
        user, membership, owner = create_member(tenant, role="owner")
        path = f"/v1/tenants/{tenant.id}"

        refused = api.patch(path, token=owner, json={"idp_org_id": "org_moved"})
        changed = api.patch(path, token=superadmin, json={"idp_org_id": "org_moved"})

        assert (refused.status_code, refused.get_json()["code"]) == (403, "provider_field")
        assert changed.get_json()["data"]["idp_org_id"] == "org_moved"
        for carried in (f"/v1/users/{user.id}", f"/v1/memberships/tenant/{membership.id}"):
            row = api.get(carried, token=superadmin).get_json()["data"]
            assert row["idp_org_id"] == "org_moved"


class TestSuspend:
    def test_records_the_reason(self, api, superadmin, tenant):
        _, _, owner = create_member(tenant, role="owner")
        path = f"/v1/tenants/{tenant.id}"

        answer = api.post(f"{path}/suspend", token=superadmin, json={"reason": "Unpaid."})

        refused = api.get(path, token=owner)
        (event,) = api.get("/v1/audit-events", token=superadmin).get_json()["data"]
        assert (answer.status_code, answer.get_json()["data"]["is_active"]) == (200, False)
        assert refused.get_json()["code"] == "tenant_suspended"
        assert (event["action"], event["actor"]) == (
            "tenant.suspended",
            f"platform:{PLATFORM_SUBJECT}",
        )
        assert event["before"] == {"is_active": True, "suspension_reason": ""}
        assert event["after"] == {"is_active": False, "suspension_reason": "Unpaid."}

    def test_changes_only_the_reason_of_a_suspended_tenant(self, api, superadmin):
        path = f"/v1/tenants/{create_tenant().id}/suspend"
        for reason in ("Unpaid.", "Fraud.", "Fraud."):
            api.post(path, token=superadmin, json={"reason": reason})

        events = api.get("/v1/audit-events", token=superadmin).get_json()["data"]

        assert [(one["action"], one["before"], one["after"]) for one in events[1:]] == [
            ("tenant.updated", {"suspension_reason": "Unpaid."}, {"suspension_reason": "Fraud."})
        ]


class TestSetActive:
    def test_removes_the_reason_of_a_suspension(self, api, superadmin):
        path = f"/v1/tenants/{create_tenant().id}"
        api.post(f"{path}/suspend", token=superadmin, json={"reason": "Unpaid."})

        api.patch(f"{path}/active?is_active=false", token=superadmin)
        kept = api.get(f"{path}?include=suspension_reason", token=superadmin).get_json()["data"]
        api.patch(f"{path}/active?is_active=true", token=superadmin)
        gone = api.get(f"{path}?include=suspension_reason", token=superadmin).get_json()["data"]

        assert (kept["suspension_reason"], gone["suspension_reason"]) == ("Unpaid.", "")

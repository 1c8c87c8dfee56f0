"""A company brings its customers in, finds one, explains a refusal, and ends a customer."""

from datetime import timedelta

from app.core.clock import utcnow
from app.privacy.jobs import delete_tenant
from app.users.models import User
from tests import database
from tests.factories import create_preset, platform_token, user_token
from tests.imports.files import (
    as_file,
    finish,
    member_line,
    override_line,
    post,
    subscription_line,
    tenant_line,
    user_line,
)

COUNT = "SELECT count(*) AS number FROM {} WHERE tenant_id = :id"


def customers() -> bytes:
    """Two customers with their people; one line names an unknown organization."""
    return as_file(
        tenant_line("org", name="Müller & Söhne", slug="mueller"),
        user_line("ada", email="Ada.Lovelace@mueller.example"),
        user_line("bob", email="bob@mueller.example"),
        member_line("ada", role="owner"),
        member_line("bob"),
        subscription_line(),
        override_line("exports", True),
        user_line("nobody", org_id="unknown"),
        tenant_line("other", name="Another customer", slug="other"),
    )


class TestCustomers:
    def test_are_imported_found_explained_and_deleted(self, app, api):
        create_preset("growth", exports=False)
        operator = platform_token()

        # Bring them in. One line is wrong, and the others are applied.
        first = finish(app, post(api, customers()).get_json()["data"]["id"])
        second = finish(app, post(api, customers()).get_json()["data"]["id"])
        report = api.get(f"/v1/imports/{first.id}", token=operator).get_json()["data"]
        assert (report["state"], report["lines_done"], report["lines_failed"]) == (
            "completed",
            9,
            1,
        )
        assert [fault["line"] for fault in report["faults"]] == [8]
        assert second.counts["user"]["unchanged"] == 2

        # Find one by the middle of an e-mail address.
        (found,) = api.get("/v1/search?q=LOVELACE@mue", token=operator).get_json()["data"]
        assert (found["type"], found["tenant"]["slug"]) == ("user", "mueller")
        tenant_id = found["tenant"]["id"]
        assert api.get("/v1/search?q=muller", token=operator).get_json()["data"]

        # See why another person of theirs is refused, and what would change it.
        bob = database.row(User, email="bob@mueller.example")
        refused = api.get("/v1/audit-events", token=user_token(bob))
        assert (refused.status_code, refused.get_json()["code"]) == (403, "permission_denied")
        query = {"user_id": str(bob.id), "permission": "audit:read"}
        why = api.get("/v1/access/explain", token=operator, query_string=query).get_json()["data"]
        assert (why["allowed"], why["decided_by"]) == (False, "permission")

        # See what decides a flag and the plan, and who changed the tenant.
        path = f"/v1/billing/flags/exports/explain?tenant_id={tenant_id}"
        flag = api.get(path, token=operator).get_json()["data"]
        plan = api.get(f"/v1/tenants/{tenant_id}/plan", token=operator).get_json()["data"]
        history = api.get(f"/v1/tenants/{tenant_id}/history", token=operator).get_json()["data"]
        assert flag["decided_by"] == "override"
        assert (plan["plan_name"], plan["source"]) == ("growth", "subscription")
        assert history[-1]["action"] == "tenant.created"

        # End the customer: suspended first, deleted after the grace.
        tenant = f"/v1/tenants/{tenant_id}"
        too_early = api.delete(tenant, token=operator, json={"slug": "mueller"})
        api.patch(f"{tenant}/active?is_active=false", token=operator)
        accepted = api.delete(tenant, token=operator, json={"slug": "mueller"})
        assert (too_early.status_code, too_early.get_json()["code"]) == (409, "tenant_active")
        assert accepted.status_code == 202
        assert api.get(tenant, token=operator).status_code == 200
        let_the_grace_pass(tenant_id)
        with app.app_context():
            delete_tenant(tenant_id)
        assert api.get(tenant, token=operator).status_code == 404
        assert api.get("/v1/search?q=lovelace", token=operator).get_json()["data"] == []
        for table in ("users", "memberships", "subscriptions", "search_terms"):
            (counted,) = database.query(COUNT.format(table), id=tenant_id)
            assert counted.number == 0
        assert api.get("/v1/tenants?slug=other", token=operator).get_json()["data"]


def let_the_grace_pass(tenant_id: str) -> None:
    moment = utcnow() - timedelta(seconds=1)
    statement = "UPDATE tenants SET deletes_at = :moment WHERE id = :id"
    database.execute(statement, id=tenant_id, moment=moment)

"""``flask tenants`` and ``flask platform-admins``."""

import json

from app.core.actors import SYSTEM_CLI
from tests.factories import create_member, create_tenant, platform_token


def run(app, *words):
    return app.test_cli_runner().invoke(args=words)


def answer(app, *words):
    result = run(app, *words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


class TestTenants:
    def test_creates_shows_changes_and_lists(self, app):
        created = answer(
            app, "tenants", "create", "--idp-org-id", "org", "--name", "Acme", "--set",
            "mailing_city=Oslo",
        )  # fmt: skip
        changed = answer(app, "tenants", "update", "acme", "--set", "name=New")
        shown = answer(app, "tenants", "show", created["id"])
        listed = answer(app, "tenants", "list")

        assert (created["slug"], created["mailing_city"]) == ("acme", "Oslo")
        assert changed["name"] == "New"
        assert listed == [shown] == [changed]

    def test_counts(self, app):
        tenant = create_tenant(slug="acme")
        create_member(tenant)

        counts = answer(app, "tenants", "counts", "acme")

        assert (counts["active_users"], counts["tenant_id"]) == (1, str(tenant.id))

    def test_suspends_and_activates(self, app, api):
        tenant = create_tenant()
        _, _, token = create_member(tenant)

        suspended = answer(app, "tenants", "suspend", tenant.slug, "--yes")
        while_suspended = api.get("/v1/users", token=token).status_code
        active = answer(app, "tenants", "activate", tenant.slug)

        events = api.get("/v1/audit-events", token=token).get_json()["data"]
        assert (suspended["is_active"], while_suspended, active["is_active"]) == (False, 403, True)
        assert answer(app, "tenants", "list", "--suspended") == []
        assert [(event["action"], event["actor"]) for event in events] == [
            ("tenant.suspended", SYSTEM_CLI.id),
            ("tenant.activated", SYSTEM_CLI.id),
        ]

    def test_suspends_with_a_reason(self, app, api):
        tenant = create_tenant()

        for reason in ("not paid", "fraud"):
            answer(app, "tenants", "suspend", tenant.slug, "--yes", "--reason", reason)
        wrong = run(app, "tenants", "suspend", tenant.slug, "--yes", "--reason", "")

        path = f"/v1/tenants/{tenant.id}?include=suspension_reason"
        shown = api.get(path, token=platform_token()).get_json()["data"]
        assert (shown["is_active"], shown["suspension_reason"]) == (False, "fraud")
        assert "--reason: String should have at least 1" in wrong.stderr

    def test_shows_and_patches_metadata(self, app):
        create_tenant(slug="acme", meta_data={"a": 1})

        patched = answer(app, "tenants", "patch-meta-data", "acme", '{"a": null, "b": [2.0]}')
        shown = answer(app, "tenants", "show-meta-data", "acme")
        wrong = run(app, "tenants", "patch-meta-data", "acme", "{")

        assert shown == patched
        assert (shown["tenant_id"], shown["meta_data"]) == (patched["tenant_id"], {"b": [2.0]})
        assert wrong.exit_code != 0
        assert "This is not JSON" in wrong.stderr

    def test_says_in_a_sentence_what_is_wrong_and_fails(self, app):
        create_tenant(slug="taken")

        for words, said in (
            (["show", "nobody"], "There is no tenant nobody."),
            (["create", "--idp-org-id", "o", "--name", "n", "--slug", "taken"], "slug is taken"),
            (["create", "--idp-org-id", "", "--name", "n"], "--idp-org-id: String should have"),
            (
                ["update", "taken", "--set", "plan_name=gold"],
                "plan_name: no such field; there are: idp_org_id, name, slug,",
            ),
            (["update", "taken", "--set", "name"], "write FIELD=VALUE"),
        ):
            result = run(app, "tenants", *words)
            assert result.exit_code != 0
            assert said in result.stderr
            assert result.stdout == ""


class TestPlatformAdmins:
    def test_add_and_remove_count_on_the_next_request(self, app, api):
        tenant = create_tenant()
        user, _, token = create_member(tenant, role="viewer")

        before = api.get("/v1/tenants", token=token).status_code
        added = answer(app, "platform-admins", "add", user.idp_user_id)
        again = answer(app, "platform-admins", "add", user.idp_user_id)
        as_admin = api.get("/v1/tenants", token=token).status_code
        listed = answer(app, "platform-admins", "list")
        run(app, "platform-admins", "remove", user.idp_user_id, "--yes")
        after = api.get("/v1/tenants", token=token).status_code

        assert [before, as_admin, after] == [403, 200, 403]
        assert added == again == listed
        assert listed[0]["subject"] == user.idp_user_id

    def test_are_audited_once_each(self, app, api):
        for words in (["add", "ada"], ["add", "ada"], ["remove", "ada", "--yes"]):
            run(app, "platform-admins", *words)

        events = api.get("/v1/audit-events", token=platform_token()).get_json()["data"]
        assert [(event["action"], event["target_id"]) for event in events] == [
            ("platform_admin.added", "ada"),
            ("platform_admin.removed", "ada"),
        ]

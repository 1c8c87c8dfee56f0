"""``flask platform-admins``."""

import json

from tests.factories import create_member, create_tenant, platform_token


def run(app, *words):
    return app.test_cli_runner().invoke(args=words)


def answer(app, *words):
    result = run(app, *words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


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

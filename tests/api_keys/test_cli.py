"""``flask api-keys``."""

import json
from datetime import datetime, timedelta

from app.core.actors import SYSTEM_CLI
from app.core.clock import utcnow
from tests.factories import create_tenant


def run(app, *words):
    return app.test_cli_runner().invoke(args=["api-keys", *words])


def answer(app, *words):
    result = run(app, *words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


class TestApiKeys:
    def test_creates_a_platform_key_that_works_until_it_is_revoked(self, app, api):
        created = answer(app, "create", "--name", "ops", "--permission", "platform:superadmin")
        secret = created["secret"]

        works = api.get("/v1/tenants", token=secret).status_code
        answer(app, "revoke", created["id"], "--yes")
        ended = api.get("/v1/tenants", token=secret).status_code

        assert (created["tenant_id"], created["created_by_user_id"]) == (None, SYSTEM_CLI.id)
        assert (works, ended) == (200, 401)

    def test_creates_a_tenants_key_that_ends(self, app):
        tenant = create_tenant(slug="acme")

        created = answer(
            app, "create", "--name", "n", "--tenant", "acme", "--days", "7",
            "--permission", "users:read", "--permission", "billing:write",
        )  # fmt: skip

        lifetime = datetime.fromisoformat(created["expires_at"]) - utcnow()
        assert created["tenant_id"] == str(tenant.id)
        assert created["permissions"] == ["billing:write", "users:read"]
        assert timedelta(days=6, hours=23) < lifetime < timedelta(days=7)

    def test_shows_the_secret_once_only(self, app):
        table = run(app, "create", "--name", "n", "--permission", "users:read")
        secret = next(
            word for word in table.stdout.split() if word.startswith("sk_") and len(word) > 30
        )

        listed = run(app, "list")
        shown = answer(app, "show", answer(app, "list")[0]["id"])

        assert listed.exit_code == 0
        assert secret[:10] in listed.stdout
        assert secret not in listed.stdout
        assert shown["prefix"] == secret[:10]
        assert "secret" not in shown

    def test_lists_a_tenants_usable_keys(self, app):
        create_tenant(slug="acme")
        platform = answer(app, "create", "--name", "p", "--permission", "users:read")
        own = answer(app, "create", "--name", "t", "--tenant", "acme", "--permission", "users:read")
        answer(app, "revoke", platform["id"], "--yes")

        assert [key["id"] for key in answer(app, "list", "--tenant", "acme")] == [own["id"]]
        assert [key["id"] for key in answer(app, "list", "--ended")] == [platform["id"]]

    def test_refuses_what_no_tenants_key_can_have(self, app):
        create_tenant(slug="acme")

        result = run(
            app, "create", "--name", "n", "--tenant", "acme", "--permission", "webhooks:read"
        )

        assert (result.exit_code, result.stdout) == (1, "")
        assert "no tenant's key can have webhooks:read" in result.stderr

"""``flask access``."""

from __future__ import annotations

import json

from app.auth.models import ApiKey
from tests.database import row
from tests.factories import create_api_key, create_member, create_tenant


def run(app, *words):
    return app.test_cli_runner().invoke(args=["access", "explain", *map(str, words)])


class TestExplain:
    def test_shows_the_steps_and_the_decision(self, app):
        tenant = create_tenant(is_active=False)
        user, _, _ = create_member(tenant, role="viewer")

        ended = run(app, "users:read", "--user", user.email)

        assert ended.exit_code == 0
        assert f"The tenant {tenant.slug} is suspended." in ended.stdout
        assert ended.stdout.endswith("Refused with 403 tenant_suspended; decided by: tenant.\n")

    def test_prints_json(self, app):
        tenant = create_tenant()
        user, _, _ = create_member(tenant, role="owner")
        create_api_key(tenant, ["users:read"])
        key = row(ApiKey)
        questions = [
            ("--user", user.id, "--tenant", tenant.slug),
            ("--subject", user.idp_user_id, "--org-id", tenant.idp_org_id),
            ("--key", key.id),
        ]

        told = [json.loads(run(app, "users:read", *words, "--json").stdout) for words in questions]

        assert [one["allowed"] for one in told] == [True] * 3
        assert {one["tenant_id"] for one in told} == {str(tenant.id)}

    def test_refuses_an_unclear_question(self, app):
        assert "exactly one" in run(app, "users:read").stderr
        assert "--key: " in run(app, "users:read", "--key", "x").stderr
        both = ("--org-id", "o", "--tenant", "t")
        assert "either" in run(app, "users:read", "--subject", "s", *both).stderr
        assert run(app, "users:eat").exit_code == 2

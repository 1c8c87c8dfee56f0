"""``flask users export`` and ``flask tenants export``."""

import json
import re
import stat

from app.core.clock import utcnow
from app.extensions import db
from app.imports.models import Import, ImportPiece
from tests.factories import create_member, create_tenant, save
from tests.imports.files import as_file, user_line
from tests.privacy import life

# What is about the product or the operators, not about a person or a tenant.
NOBODYS = {
    "alembic_version", "billing_comparisons", "deleted_organizations", "event_feed", "plan_presets", "plan_prices", "product_permissions",
    "search_builds", "webhook_feed",
}  # fmt: skip


def export(app, *words):
    result = app.test_cli_runner().invoke(args=[*words])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def canaries(text):
    """Every canary in a text, whatever case it is kept in."""
    return set(re.findall(rf"{life.CANARY}[-.][a-z0-9-]+", text.lower()))


class TestUser:
    def test_has_every_canary_that_the_database_has_and_nothing_of_others(
        self, app, api, sender, dump, tmp_path
    ):
        user_id = life.live(app, api, sender)
        create_member(create_tenant(), email="other@example.com")
        failed = save(Import, created_by_user_id="cli:root", state="failed", finished_at=utcnow())
        lines = as_file(*(user_line(name, "first") for name in ("other", life.SUBJECT)))
        save(ImportPiece, import_id=failed.id, number=0, body=lines)
        path = tmp_path / "export.json"

        text = json.dumps(export(app, "users", "export", life.SUBJECT))
        result = app.test_cli_runner().invoke(
            args=["users", "export", user_id, "--output", str(path)]
        )

        found = canaries(dump())
        assert {name for name in found if name not in text.lower()} == set()
        assert len(found) >= 30
        assert "other@example.com" not in text
        assert "bystander@example.com" not in text.replace("made_by_canary", "")
        # The file, which nobody else reads.
        assert (result.exit_code, result.stdout) == (0, "")
        assert "users: 2" in result.stderr
        assert len(json.loads(path.read_text())["users"]) == 2
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


class TestTenant:
    def test_has_every_canary_but_no_other_tenants_rows_and_no_secret(self, app, api, sender, dump):
        life.live(app, api, sender)
        other = create_tenant(slug="other")

        first, second = (export(app, "tenants", "export", slug) for slug in ("first", "second"))

        text = json.dumps([first, second]).lower()
        assert {name for name in canaries(dump()) if name not in text} == set()
        assert str(other.id) not in text
        assert len(first["api_keys"]) == 1
        assert "digest" not in first["api_keys"][0]


class TestCoverage:
    def test_every_table_is_looked_at(self, app):
        tenant = create_tenant()
        user, _, _ = create_member(tenant)

        of_person = export(app, "users", "export", str(user.id))
        of_tenant = export(app, "tenants", "export", tenant.slug)

        tables = set(db.metadata.tables) - NOBODYS
        # Definitions, and what other than the person is described by its tenant.
        assert tables - set(of_person) == {
            "api_keys", "billing_customers", "credit_balances", "credit_entries", "credit_holds",
            "credit_lots", "custom_fields", "custom_field_indexes", "domains",
            "feature_overrides", "log_stream_progress", "log_streams",
            "access_resources", "audit_positions", "past_bases", "plan_assignments", "rewinds", "roles", "scim_access_tokens", "scim_connections", "scim_groups", "scim_requests",
            "sso_connections",
            "tenant_deletions", "tenant_notes", "usage_counters", "usage_days", "usage_holds",
            "usage_keys", "webhook_endpoint_states", "webhook_endpoints",
        }  # fmt: skip
        assert tables - set(of_tenant) == {
            "console_sessions", "console_tickets", "imports", "platform_admins",
            "log_stream_progress", "tenant_notes", "webhook_endpoint_states",
        }  # fmt: skip

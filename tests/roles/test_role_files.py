"""``flask roles apply``."""

import json

import pytest

from app.auth.permissions import ROLE_PERMISSIONS
from app.roles.models import AccessRole, ProductPermission
from tests import database

FILE = """
permissions:
  - key: invoices:approve
    group: Invoices
    requires_flag: invoicing
roles:
  - key: member
    name: Member
    permissions: &approve [invoices:approve]
  - {key: billing, name: Billing, permissions: *approve}
  - {key: admin, name: Admin, permissions: *approve}
  - key: accountant
    name: Accountant
    inherits: member
    permissions: [invoices:approve, billing:read]
"""


def apply(app, text, *options):
    return app.test_cli_runner().invoke(args=["roles", "apply", "-", *options], input=text)


class TestApply:
    def test_creates_and_updates(self, app):
        first = apply(app, FILE, "--json")
        again = apply(app, FILE)
        changed = apply(app, FILE.replace("invoicing", "billing-2"), "--json")

        assert first.exit_code == again.exit_code == 0, first.output
        assert "No difference." in again.output
        assert json.loads(changed.stdout) == [
            {
                "item": "permission invoices:approve",
                "field": "requires_flag",
                "before": "invoicing",
                "after": "billing-2",
            }
        ]
        member = database.row(AccessRole, tenant_id=None, key="member")
        assert member.permissions == sorted([*ROLE_PERMISSIONS["member"], "invoices:approve"])
        assert database.row(AccessRole, key="accountant").inherits == "member"

    def test_a_dry_run_changes_nothing(self, app):
        result = apply(app, FILE, "--dry-run")

        assert "would differ; nothing was changed." in result.output
        assert database.rows(ProductPermission) == []

    @pytest.mark.parametrize(
        "text",
        ["[", "3", "others: []", "roles: 3", "roles: [{key: x}]", "permissions: [{key: A b}]"],
    )
    def test_refuses_other_files(self, app, text):
        result = apply(app, text)

        assert result.exit_code == 2, result.output

    def test_applies_all_or_nothing(self, app):
        result = apply(app, FILE.replace("billing:read", "no:such"))

        assert result.exit_code == 2
        assert database.rows(ProductPermission) == []

    def test_gives_no_role_what_a_higher_one_lacks(self, app):
        result = apply(app, FILE.replace("Admin, permissions: *approve", "Admin, permissions: []"))

        assert result.exit_code == 1
        assert "The role admin lacks invoices:approve, which billing has." in result.output
        assert database.rows(ProductPermission) == []

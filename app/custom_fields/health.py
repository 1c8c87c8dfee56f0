"""Select fields that accept no value."""

from __future__ import annotations

from app.core.db.statements import Statement
from app.core.health import SHOWN, Finding, shortened

LIST_EMPTY_SELECTS = Statement(
    "custom_fields.list_empty_selects",
    "SELECT slug, array_agg(field_key ORDER BY field_key) AS keys"
    " FROM custom_fields JOIN tenants ON tenants.id = tenant_id"
    " WHERE field_type IN ('select', 'multi_select') AND custom_fields.is_active"
    " AND coalesce(options::text, '[]') IN ('[]', 'null')"
    " GROUP BY slug ORDER BY slug LIMIT :tenants",
)


def check_selects() -> Finding:
    tenants = LIST_EMPTY_SELECTS.all(tenants=SHOWN + 1)
    if not tenants:
        return Finding("select fields", True, "all have options")
    listed = shortened([f"{one.slug}: {shortened(one.keys, ' ')}" for one in tenants], "; ")
    fix = "These custom fields accept no value until they have options."
    return Finding("select fields", True, f"without options: {listed}", fix)


CHECKS = {"select fields": check_selects}

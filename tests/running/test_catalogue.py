"""Keys of tenant-owned tables, looked up in the database's catalogue: none leads to another tenant."""

from tests.running import documented

# Of each table with forced row-level security: its keys, as the names of their columns in order.
KEYS = """
SELECT relname, contype, array(
    SELECT attname FROM unnest(conkey) WITH ORDINALITY AS k(number, place)
    JOIN pg_attribute ON attrelid = conrelid AND attnum = number ORDER BY place
)::text[], confrelid::regclass::text
FROM pg_constraint JOIN pg_class t ON t.oid = conrelid
WHERE relforcerowsecurity AND contype IN ('p', 'u', 'f')
"""
UNIQUE = """
SELECT t.relname, attname FROM pg_index
JOIN pg_class t ON t.oid = indrelid
JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
WHERE relforcerowsecurity AND indisunique
"""
GLOBAL = {
    "plan_presets",
    "roles",
    "api_keys",
}  # any table may point to it: templates have no tenant
OF_ONE_TENANT = {
    ("domains", "name"),  # one tenant at most has verified a name
    ("roles", "id"),
    *(("role_assignments", name) for name in ("membership_id", "group_id", "api_key_id")),
}
BY_PROVIDER = {"billing_customers"}
"""A provider's customer has one tenant. Only the platform writes these rows."""


class TestCatalogue:
    def test_every_key_of_a_tenants_table_begins_with_the_tenant(self, app, instance):
        rows = fetch(instance, KEYS)

        wrong = [
            (table, columns)
            for table, _, columns, target in rows
            if columns[0] != "tenant_id"
            and (table, columns[0]) not in OF_ONE_TENANT
            and target not in GLOBAL
            and table not in BY_PROVIDER
        ]
        assert wrong == []
        assert {kind for _, kind, _, _ in rows} == {"p", "u", "f"}

    def test_every_unique_index_of_a_tenants_table_begins_with_the_tenant(self, app, instance):
        rows = fetch(instance, UNIQUE)

        rows = [one for one in rows if tuple(one) not in OF_ONE_TENANT]
        firsts = {first for table, first in rows if table not in BY_PROVIDER}
        assert firsts == {"tenant_id"}
        assert len({table for table, _ in rows}) >= 8

    def test_no_tenants_table_is_pointed_to_by_a_global_one(self, app, instance):
        rows = fetch(
            instance,
            "SELECT conname FROM pg_constraint JOIN pg_class s ON s.oid = conrelid"
            " JOIN pg_class t ON t.oid = confrelid"
            " WHERE contype = 'f' AND t.relforcerowsecurity AND NOT s.relforcerowsecurity",
        )

        assert rows == []


def fetch(instance, query: str) -> list[tuple]:
    session = documented.superuser(instance)
    with session.cursor() as cursor:
        cursor.execute(query)
        rows = cursor.fetchall()
    session.close()
    return rows

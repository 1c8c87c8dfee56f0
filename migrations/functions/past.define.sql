-- Make the view `past.<table>`: the rows that the table had at the position that is asked for.
--
-- A row's columns are those that its audit rows have recorded up to the position, with the defaults
-- of today for columns that were added later. A deleted row is absent, and one whose creation is not
-- in the trail. A migration that changes the columns of one of these tables calls this again.
--
-- wanted_table: the table. kind: the target type of its audit rows. The rows are those of past.rows,
-- unless `trail` says where all audit rows are read; past.platform_trail for a table of the platform's,
-- which every tenant may read. changes: a condition on such an audit row `a`; others say something
-- about the row, but do not change it. key: the column of the trail that tells the rows of one tenant
-- apart; not `row_id` where ids are no UUIDs.
CREATE OR REPLACE FUNCTION past.define(
    wanted_table text, kind text, changes text DEFAULT 'true', trail text DEFAULT NULL,
    key text DEFAULT 'row_id'
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    source regclass := 'public.' || quote_ident(wanted_table);
    is_tenants boolean := wanted_table = 'tenants';
    columns text;
    rows text := 'SELECT * FROM past.rows WHERE target_type = %1$L';
BEGIN
    SELECT string_agg(CASE
            WHEN c.attname = 'id' AND key = 'row_id' THEN 'g.row_id'
            WHEN c.attname = 'tenant_id' AND c.attnotnull THEN 'g.tenant_id'
            WHEN c.attname = 'tenant_id' THEN 'nullif(g.tenant_id, ''00000000-0000-0000-0000-000000000000'')'
            WHEN c.attname IN ('version', 'updated_at') THEN format('coalesce(g.%1$I, r.%1$I)', c.attname)
            WHEN c.attname = 'updated_by_user_id' THEN 'g.actor'
            WHEN c.attname = 'idp_org_id' AND NOT is_tenants THEN 't.idp_org_id'
            WHEN c.attname = 'email_key' THEN 'lower(normalize(r.email, NFC))'  -- is not in the trail
            WHEN c.attgenerated <> '' THEN pg_get_expr(d.adbin, d.adrelid)
            WHEN d.adbin IS NOT NULL AND c.attnotnull
                THEN format('coalesce(r.%I, %s)', c.attname, pg_get_expr(d.adbin, d.adrelid))
            ELSE format('r.%I', c.attname) END || format(' AS %I', c.attname), ', ' ORDER BY c.attnum)
        INTO columns
        FROM pg_attribute c
        LEFT JOIN pg_attrdef d ON d.adrelid = c.attrelid AND d.adnum = c.attnum
        WHERE c.attrelid = source AND c.attnum > 0 AND NOT c.attisdropped;
    IF trail IS NOT NULL THEN
        rows := $rows$
            SELECT * FROM (
                SELECT a.tenant_id, a.%4$I, max(a.version) AS version,
                    max(a.updated_at) AS updated_at,
                    json_object_agg(c.key, c.value ORDER BY a.position, a.number)
                        FILTER (WHERE c.key IS NOT NULL) AS state, NULL::json AS changes,
                    (array_agg(a.actor ORDER BY a.position DESC, a.number DESC))[1] AS actor,
                    (array_agg(a.action ORDER BY a.position DESC, a.number DESC))[1] AS action
                FROM %2$s a LEFT JOIN LATERAL json_each(a.after) c ON true
                WHERE a.target_type = %1$L AND a.position <= past.last_position() AND %3$s
                GROUP BY a.tenant_id, a.%4$I
                HAVING bool_or(c.key = 'created_at')  -- which no change has
            ) g WHERE g.action <> %1$L || '.deleted'
            $rows$;
    END IF;
    EXECUTE format('DROP VIEW IF EXISTS past.%I CASCADE', wanted_table);
    EXECUTE format($view$
        CREATE VIEW past.%1$I WITH (security_invoker = true) AS
        SELECT %2$s FROM (%3$s) g
        CROSS JOIN LATERAL json_populate_record(
            json_populate_record(NULL::public.%1$I, g.state), g.changes
        ) r
        %4$s
        $view$, wanted_table, columns, format(rows, kind, trail, changes, key),
        CASE WHEN columns LIKE '%t.idp_org_id%' THEN 'LEFT JOIN past.tenants t ON t.id = g.tenant_id' END);
    EXECUTE format('GRANT SELECT ON past.%I TO PUBLIC', wanted_table);
END
$$

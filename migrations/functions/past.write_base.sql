-- Write the rows of a tenant as of a position into past_bases, read from the base before.
--
-- row_ids: only these rows; NULL for all. A row of no type lets there be a base where there are no
-- rows. Settings of the transaction remain as for a read of this position.
-- Called by: past.add_base, past.write_bases_again
CREATE OR REPLACE FUNCTION past.write_base(wanted_tenant uuid, wanted_position bigint, row_ids uuid[])
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('app.as_of_position', wanted_position::text, true),
        set_config('app.as_of_base', (wanted_position - 1)::text, true),
        set_config('app.as_of_tenant', wanted_tenant::text, true);
    -- EXECUTE makes a plan for these values.
    EXECUTE $insert$
        INSERT INTO public.past_bases (tenant_id, position, target_type, row_id, version, updated_at,
            actor, state)
        SELECT r.tenant_id, $2, r.target_type, r.row_id, r.version, r.updated_at, r.actor,
            CASE WHEN r.changes IS NULL THEN r.state ELSE (
                SELECT json_object_agg(f.key, f.value) FROM (
                    SELECT DISTINCT ON (p.key) p.key, p.value FROM (
                        SELECT 1 AS part, * FROM json_each(r.state) WITH ORDINALITY
                        UNION ALL SELECT 2, * FROM json_each(r.changes) WITH ORDINALITY
                    ) p ORDER BY p.key, p.part DESC, p.ordinality DESC
                ) f
            ) END
        FROM past.rows r
        WHERE r.tenant_id = $1 AND ($3 IS NULL OR r.row_id = ANY ($3)) AND r.target_type <> ''
        UNION ALL SELECT $1, $2, '', $1, NULL, NULL, '', '{}'
        ON CONFLICT (tenant_id, position, target_type, row_id)
        DO UPDATE SET actor = excluded.actor, state = excluded.state
        $insert$ USING wanted_tenant, wanted_position, row_ids;
END
$$

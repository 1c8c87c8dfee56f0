-- List the registered resources of a type on which the principal has the permission, by their ids.
--
-- At most 10,000 resources after the id `after` are looked at.
-- Called by: access_candidates
CREATE OR REPLACE FUNCTION find_permitted_resources(
    wanted_tenant_id uuid, wanted_permission text, wanted_principal_id uuid, wanted_type text,
    after text, wanted_count integer
) RETURNS TABLE (place text) LANGUAGE sql STABLE AS $$
    WITH RECURSIVE held AS MATERIALIZED (
        SELECT g.resource_type AS type, g.resource_id AS id FROM access_grants g
        WHERE g.tenant_id = wanted_tenant_id AND g.principal_id = wanted_principal_id
            AND g.role_id IN (
                SELECT r.role_id FROM granting_roles(wanted_tenant_id, ARRAY[wanted_permission]) r
            )
        UNION ALL
        SELECT NULL, NULL FROM api_keys k
        WHERE k.id = wanted_principal_id AND wanted_permission = ANY (k.permissions)
    ), seen AS MATERIALIZED (
        SELECT x.id, x.parent_type, x.parent_id FROM access_resources x
        WHERE x.tenant_id = wanted_tenant_id AND x.type = wanted_type AND x.id > after
        ORDER BY x.id LIMIT 10000
    ), above AS (
        SELECT DISTINCT s.parent_type AS from_type, s.parent_id AS from_id, s.parent_type AS type,
            s.parent_id AS id, 2 AS depth
        FROM seen s WHERE s.parent_id IS NOT NULL
        UNION ALL
        SELECT a.from_type, a.from_id, x.parent_type, x.parent_id, a.depth + 1 FROM above a
        JOIN access_resources x
            ON x.tenant_id = wanted_tenant_id AND x.type = a.type AND x.id = a.id
        WHERE x.parent_id IS NOT NULL AND a.depth < 8
    )
    SELECT s.id FROM seen s
    WHERE EXISTS (SELECT FROM held WHERE type IS NULL)
        OR s.id IN (SELECT h.id FROM held h WHERE h.type = wanted_type)
        OR (s.parent_type, s.parent_id) IN (
            SELECT a.from_type, a.from_id
            FROM above a JOIN held h ON h.type = a.type AND h.id = a.id
        )
    ORDER BY s.id LIMIT wanted_count
$$

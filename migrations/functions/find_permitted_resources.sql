-- List the registered resources of a type on which the principal has the permission, by their ids.
--
-- At most 10,000 resources after the id `after` are looked at, and of assignments those for them and
-- for resources above them.
-- Called by: access_candidates
CREATE OR REPLACE FUNCTION find_permitted_resources(
    wanted_tenant_id uuid, wanted_permission text, wanted_principal_id uuid, wanted_type text,
    after text, wanted_count integer
) RETURNS TABLE (place text) LANGUAGE sql STABLE AS $$
    WITH RECURSIVE granting AS MATERIALIZED (
        SELECT r.role_id FROM granting_roles(wanted_tenant_id, ARRAY[wanted_permission]) r
    ), everywhere AS MATERIALIZED (
        SELECT FROM access_grants g
        WHERE g.tenant_id = wanted_tenant_id AND g.principal_id = wanted_principal_id
            AND g.resource_type IS NULL AND g.role_id IN (SELECT role_id FROM granting)
        UNION ALL
        SELECT FROM api_keys k
        WHERE k.id = wanted_principal_id AND wanted_permission = ANY (k.permissions)
    ), seen AS MATERIALIZED (
        SELECT x.id, x.parent_type, x.parent_id FROM access_resources x
        WHERE x.tenant_id = wanted_tenant_id AND x.type = wanted_type AND x.id > after
        ORDER BY x.id LIMIT 10000
    ), own AS MATERIALIZED (
        SELECT g.resource_id AS id FROM access_grants g
        WHERE g.tenant_id = wanted_tenant_id AND g.principal_id = wanted_principal_id
            AND g.resource_type = wanted_type AND g.resource_id > after
            AND g.resource_id <= (SELECT s.id FROM seen s ORDER BY s.id DESC LIMIT 1)
            AND g.role_id IN (SELECT role_id FROM granting)
    ), above AS (
        SELECT DISTINCT s.parent_type AS from_type, s.parent_id AS from_id, s.parent_type AS type,
            s.parent_id AS id, 2 AS depth
        FROM seen s WHERE s.parent_id IS NOT NULL
        UNION ALL
        SELECT a.from_type, a.from_id, x.parent_type, x.parent_id, a.depth + 1 FROM above a
        JOIN access_resources x
            ON x.tenant_id = wanted_tenant_id AND x.type = a.type AND x.id = a.id
        WHERE x.parent_id IS NOT NULL AND a.depth < 8
    ), held AS MATERIALIZED (
        SELECT a.type, a.id FROM (SELECT DISTINCT type, id FROM above) a
        CROSS JOIN LATERAL (  -- reads only the grants for this one, by LIMIT
            SELECT FROM access_grants g
            WHERE g.tenant_id = wanted_tenant_id AND g.principal_id = wanted_principal_id
                AND g.resource_type = a.type AND g.resource_id = a.id
                AND g.role_id IN (SELECT role_id FROM granting)
            LIMIT 1
        ) g
    )
    SELECT s.id FROM seen s
    WHERE EXISTS (SELECT FROM everywhere)
        OR s.id IN (SELECT o.id FROM own o)
        OR (s.parent_type, s.parent_id) IN (
            SELECT a.from_type, a.from_id
            FROM above a JOIN held h ON h.type = a.type AND h.id = a.id
        )
    ORDER BY s.id LIMIT wanted_count
$$

-- List a resource and those above it; one that is not registered is listed too, alone.
--
-- Called by: app/roles/access_resources.py, find_held_permissions, find_permitted_members
CREATE OR REPLACE FUNCTION resource_chain(wanted_tenant_id uuid, wanted_type text, wanted_id text)
RETURNS TABLE (type text, id text) LANGUAGE sql STABLE ROWS 3 AS $$
    WITH RECURSIVE chain AS (
        SELECT wanted_type AS type, wanted_id AS id, 1 AS depth
        UNION ALL
        SELECT x.parent_type, x.parent_id, c.depth + 1 FROM chain c
        JOIN access_resources x
            ON x.tenant_id = wanted_tenant_id AND x.type = c.type AND x.id = c.id
        WHERE x.parent_id IS NOT NULL AND c.depth < 8
    )
    SELECT c.type, c.id FROM chain c
$$

-- The resources of a tenant. It is a part of the statement that calls it, and uses indexes.
--
-- Reads of the past find past.resources_of_tenant in its place.
-- Called by: access_facts
CREATE OR REPLACE FUNCTION resources_of_tenant(wanted_tenant_id uuid)
RETURNS SETOF access_resources LANGUAGE sql STABLE AS $$
    SELECT * FROM access_resources WHERE tenant_id = wanted_tenant_id
$$

-- The assignments of roles in a tenant. It is a part of the statement that calls it, and uses indexes.
--
-- Reads of the past find past.assignments_of_tenant in its place.
-- Called by: access_facts
CREATE OR REPLACE FUNCTION assignments_of_tenant(wanted_tenant_id uuid)
RETURNS SETOF role_assignments LANGUAGE sql STABLE AS $$
    SELECT * FROM role_assignments WHERE tenant_id = wanted_tenant_id
$$

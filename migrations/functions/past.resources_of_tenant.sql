-- As public.resources_of_tenant, of an earlier moment. A statement computes them once and then searches
-- them, as there are no indexes. For this it must not be a part of the statement, so it is PL/pgSQL.
CREATE OR REPLACE FUNCTION past.resources_of_tenant(wanted_tenant_id uuid)
RETURNS SETOF public.access_resources LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY SELECT * FROM past.access_resources WHERE tenant_id = wanted_tenant_id;
END
$$

-- Tell the version of all that decides about access in a tenant, except its flags.
--
-- It differs after each change, and costs some index look-ups: it has the positions of the last events
-- of `types`, the numbers of those in the outbox, the versions of what has no events or few rows, and
-- the limits that permissions require and that have nothing left.
--
-- Called by: app/access/snapshot.py
CREATE OR REPLACE FUNCTION access_version(wanted_tenant_id uuid, types text[])
RETURNS text LANGUAGE sql STABLE AS $$
    SELECT md5(concat_ws('|', (
        SELECT concat(count(*), '.', sum(p.version), '.', max(p.updated_at)) FROM product_permissions p
    ), (
        SELECT concat(count(*), '.', sum(r.version), '.', max(r.updated_at)) FROM roles r
        WHERE r.tenant_id = wanted_tenant_id OR r.tenant_id IS NULL
    ), (
        SELECT concat(count(*), '.', sum(g.version), '.', max(g.updated_at)) FROM scim_groups g
        WHERE g.tenant_id = wanted_tenant_id
    ), (
        SELECT max(last.position) FROM unnest(types) t (type)
        CROSS JOIN LATERAL (
            SELECT e.position FROM events e WHERE e.tenant_id = wanted_tenant_id AND e.type = t.type
            ORDER BY e.position DESC LIMIT 1
        ) last
    ), (
        SELECT string_agg(o.number::text, ',' ORDER BY o.number) FROM event_outbox o
        WHERE o.tenant_id = wanted_tenant_id AND o.type = ANY (types)
    ), (
        SELECT string_agg(u.feature, ',' ORDER BY u.feature)
        FROM (SELECT DISTINCT p.requires_limit AS key FROM product_permissions p) required
        CROSS JOIN LATERAL tenant_usage(wanted_tenant_id, required.key) u
        WHERE required.key IS NOT NULL AND u.most <> -1 AND u.used + u.held >= u.most
    )))
$$

-- Find all that decides questions about one tenant, except its flags.
--
-- asked: the `tenant` by name (id in `tenant_id` too, if it is one), or NULL for the scope's tenant,
-- else that of the first subject; `subjects` (each with those of `id`, `name`, `email_key` and
-- `key_id` that may be meant), `actions`, and `resources` (`type`, `id`). No list has a thing twice.
-- `pairs` are the places of a subject and a resource that are asked about together. `flag_keys` are the
-- flags that the actions require. Lists in `facts` are in the order of `asked`; `grants` has only those
-- that matter to the actions and pairs. Returns no row for an unknown tenant, and for another one than
-- the scope's.
--
-- Its plans are made once in a session, because planning takes much longer than one question. So they
-- must be right for one question and for 100: LIMIT 1 below lets each row be found by its index, and
-- `membership_id IS NULL` those of groups and keys, where a resource has many of memberships.
-- Called by: app/access/facts.py
CREATE OR REPLACE FUNCTION access_facts(asked json)
RETURNS TABLE (tenant_id uuid, flag_keys text[], facts json) LANGUAGE plpgsql STABLE ROWS 1
SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    own_id uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
    wanted_actions text[] := ARRAY(SELECT json_array_elements_text(asked -> 'actions'));
    tenant record;
    required record;
    granting record;
    subjects record;
    resources record;
    grants json;
    limits json;
BEGIN
    IF asked ->> 'tenant' IS NOT NULL THEN
        SELECT t.id, t.slug, t.is_active INTO tenant FROM tenants t
            WHERE t.id = (asked ->> 'tenant_id')::uuid OR t.idp_org_id = asked ->> 'tenant'
                OR t.slug = asked ->> 'tenant'
            ORDER BY t.id = (asked ->> 'tenant_id')::uuid DESC NULLS LAST,
                t.idp_org_id = asked ->> 'tenant' DESC
            LIMIT 1;
    ELSE
        SELECT t.id, t.slug, t.is_active INTO tenant FROM tenants t
            WHERE t.id = coalesce(own_id, (
                SELECT u.tenant_id FROM users u WHERE u.id = (asked #>> '{subjects,0,id}')::uuid
            ), (
                SELECT k.tenant_id FROM api_keys k
                WHERE k.id = (asked #>> '{subjects,0,key_id}')::uuid
            ));
    END IF;
    IF tenant.id IS NULL OR tenant.id <> own_id THEN
        RETURN;
    END IF;

    SELECT coalesce(json_object_agg(
            p.key, json_build_object('flag', p.requires_flag, 'limit', p.requires_limit)
        ), '{}') AS permissions,
        coalesce(array_agg(p.requires_flag) FILTER (WHERE p.requires_flag IS NOT NULL), '{}')
            AS flags,
        array_agg(DISTINCT p.requires_limit) FILTER (WHERE p.requires_limit IS NOT NULL) AS limits
        INTO required
        FROM product_permissions p WHERE p.key = ANY (wanted_actions);

    SELECT array_agg(g.role_id) AS ids, array_agg(g.role_key) AS keys,
        json_agg(json_build_array(g.permission, g.role_id, g.role_key)) AS listed
        INTO granting
        FROM granting_roles(tenant.id, wanted_actions) g;

    SELECT array_agg(s.place) AS places, array_agg(u.id) AS user_ids, array_agg(u.role) AS roles,
        array_agg(u.membership_id) AS membership_ids, array_agg(k.id) AS key_ids,
        json_agg(json_build_object(
            'user_id', u.id, 'email', u.email, 'is_active', u.is_active,
            'membership_id', u.membership_id, 'role', u.role,
            'is_member', u.is_member, 'key_id', k.id, 'key_name', k.name,
            'permissions', k.permissions, 'is_usable', k.is_usable,
            'meta_data', CASE WHEN required.flags <> '{}' THEN u.meta_data END
        ) ORDER BY s.place) AS listed
        INTO subjects
        FROM json_to_recordset(asked -> 'subjects')
            AS s (place integer, id uuid, name text, email_key text, key_id uuid)
        LEFT JOIN LATERAL (
            SELECT u.id, u.email, u.is_active, u.meta_data, m.id AS membership_id, m.role,
                m.is_active AS is_member
            FROM users u
            LEFT JOIN memberships m ON m.tenant_id = u.tenant_id AND m.user_id = u.id
            WHERE u.tenant_id = tenant.id
                AND (u.id = s.id OR u.idp_user_id = s.name OR u.email_key = s.email_key)
            ORDER BY u.id = s.id DESC NULLS LAST, u.idp_user_id = s.name DESC NULLS LAST,
                u.is_active DESC, u.id
            LIMIT 1
        ) u ON true
        LEFT JOIN LATERAL (
            SELECT k.id, k.name, k.permissions, k.revoked_at IS NULL
                AND (k.expires_at IS NULL OR k.expires_at > now()) AS is_usable
            FROM api_keys k WHERE k.id = s.key_id AND k.tenant_id = tenant.id
        ) k ON true;

    WITH RECURSIVE chain AS (
        SELECT r.place, 1 AS depth, r.type, r.id, x.parent_type, x.parent_id, x.attributes
        FROM json_to_recordset(asked -> 'resources') AS r (place integer, type text, id text)
        LEFT JOIN LATERAL (
            SELECT x.parent_type, x.parent_id, x.attributes FROM access_resources x
            WHERE x.tenant_id = tenant.id AND x.type = r.type AND x.id = r.id LIMIT 1
        ) x ON true
        UNION ALL
        SELECT c.place, c.depth + 1, x.type, x.id, x.parent_type, x.parent_id, NULL::jsonb
        FROM chain c
        CROSS JOIN LATERAL (
            SELECT x.* FROM access_resources x
            WHERE x.tenant_id = tenant.id AND x.type = c.parent_type AND x.id = c.parent_id LIMIT 1
        ) x
        WHERE c.parent_id IS NOT NULL AND c.depth < 8
    ), listed AS (
        SELECT c.place, json_build_object(
                'chain', json_agg(json_build_array(c.type, c.id) ORDER BY c.depth),
                'attributes', CASE WHEN required.flags <> '{}' THEN
                    (array_agg(c.attributes ORDER BY c.depth))[1] END
            ) AS one
        FROM chain c GROUP BY c.place
    )
    SELECT (SELECT json_agg(l.one ORDER BY l.place) FROM listed l) AS listed,
        array_agg(c.place) AS places, array_agg(c.type) AS types, array_agg(c.id) AS ids
        INTO resources FROM chain c;

    WITH principals AS MATERIALIZED (
        SELECT p.place, coalesce(p.membership_id, p.key_id) AS id, p.user_id, p.membership_id, p.key_id, p.role
        FROM unnest(
            subjects.places, subjects.user_ids, subjects.membership_ids, subjects.key_ids, subjects.roles
        ) p (place, user_id, membership_id, key_id, role)
        WHERE coalesce(p.membership_id, p.key_id) IS NOT NULL
    ), targets AS MATERIALIZED (  -- what may have assignments, for each principal
        SELECT p.place, p.id, p.membership_id, NULL::uuid AS group_id, p.key_id AS api_key_id
        FROM principals p
        UNION ALL
        SELECT p.place, p.id, NULL, s.group_id, NULL
        FROM principals p
        CROSS JOIN LATERAL (
            SELECT s.group_id FROM scim_members s
            WHERE s.tenant_id = tenant.id AND s.user_id = p.user_id OFFSET 0
        ) s
    ), assigned AS (
        SELECT t.id AS principal_id, a.*
        FROM targets t
        CROSS JOIN LATERAL (
            SELECT a.* FROM role_assignments a
            WHERE a.tenant_id = tenant.id AND a.membership_id = t.membership_id
                AND a.resource_type IS NULL
            UNION ALL
            SELECT a.* FROM role_assignments a
            WHERE a.tenant_id = tenant.id AND a.membership_id IS NULL AND a.group_id = t.group_id
                AND a.resource_type IS NULL
            UNION ALL
            SELECT a.* FROM role_assignments a
            WHERE a.tenant_id = tenant.id AND a.membership_id IS NULL
                AND a.api_key_id = t.api_key_id AND a.resource_type IS NULL
            OFFSET 0
        ) a
        UNION ALL
        SELECT t.id, a.*
        FROM (
            SELECT DISTINCT t.id, t.membership_id, t.group_id, t.api_key_id, r.type, r.name
            FROM json_array_elements(asked -> 'pairs') pair
            JOIN targets t ON t.place = (pair ->> 0)::integer
            JOIN unnest(resources.places, resources.types, resources.ids) r (place, type, name)
                ON r.place = (pair ->> 1)::integer
        ) t
        CROSS JOIN LATERAL (
            SELECT a.* FROM role_assignments a
            WHERE a.tenant_id = tenant.id AND a.membership_id = t.membership_id
                AND a.resource_type = t.type AND a.resource_id = t.name
            UNION ALL
            SELECT a.* FROM role_assignments a
            WHERE a.tenant_id = tenant.id AND a.membership_id IS NULL AND a.group_id = t.group_id
                AND a.resource_type = t.type AND a.resource_id = t.name
            UNION ALL
            SELECT a.* FROM role_assignments a
            WHERE a.tenant_id = tenant.id AND a.membership_id IS NULL
                AND a.api_key_id = t.api_key_id AND a.resource_type = t.type AND a.resource_id = t.name
            OFFSET 0
        ) a
    )
    SELECT json_agg(json_build_array(g.principal_id, g.role_id, g.resource_type, g.resource_id, g.id)
            ORDER BY g.id NULLS FIRST)
        INTO grants
        FROM (
            SELECT p.id AS principal_id, r.id AS role_id, NULL AS resource_type,
                NULL AS resource_id, NULL::uuid AS id
            FROM principals p
            JOIN unnest(granting.ids, granting.keys) r (id, key) ON r.key = p.role
            UNION ALL
            SELECT a.principal_id, a.role_id, a.resource_type, a.resource_id, a.id FROM assigned a
            WHERE a.role_id = ANY (granting.ids) AND (a.expires_at IS NULL OR a.expires_at > now())
        ) g;

    IF required.limits IS NOT NULL THEN
        SELECT json_object_agg(l.feature, u.fault IS NULL AND u.is_allowed) INTO limits
            FROM unnest(required.limits) l (feature)
            CROSS JOIN LATERAL consume_usage(
                tenant.id, ARRAY[l.feature], ARRAY[1]::bigint[], ARRAY[NULL]::timestamptz[],
                ARRAY[NULL]::uuid[], false
            ) u;
    END IF;

    tenant_id := tenant.id;
    flag_keys := required.flags;
    facts := json_build_object(
        'tenant', json_build_object('id', tenant.id, 'slug', tenant.slug, 'is_active', tenant.is_active),
        'permissions', required.permissions, 'roles', coalesce(granting.listed, '[]'),
        'subjects', subjects.listed, 'resources', resources.listed,
        'grants', coalesce(grants, '[]'), 'limits', coalesce(limits, '{}')
    );
    RETURN NEXT;
END
$$

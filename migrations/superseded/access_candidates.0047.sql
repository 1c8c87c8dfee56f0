-- List the subjects, resources or actions of which a role has the permission, in the order of `place`.
--
-- wanted_kind: `subject` (of `wanted_subject_type`), `resource` or `action`. after: the `place` before
-- the first row; '' for the first page. principal_id: the subject's membership or API key.
-- The subject's type and id in `asked_type` and `asked_id` mean it without doubt; `shown_id` is that of
-- the wanted type. At most 10,000 members or resources are looked at: a row with only a `place` is the
-- last one of them.
-- Called by: app/access/searching.py
CREATE OR REPLACE FUNCTION access_candidates(
    wanted_tenant_id uuid, wanted_principal_id uuid, wanted_kind text, wanted_subject_type text,
    wanted_permission text, wanted_type text, wanted_id text, after text, wanted_count integer
) RETURNS TABLE (place text, asked_type text, asked_id text, shown_id text)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    after_id uuid;
    found_count bigint;
BEGIN
    IF wanted_kind = 'subject' THEN
        after_id := coalesce(nullif(after, '')::uuid, '00000000-0000-0000-0000-000000000000');
    END IF;
    IF wanted_kind = 'subject' AND wanted_subject_type = 'api_key' THEN
        RETURN QUERY SELECT k.id::text, 'api_key', k.id::text, k.id::text FROM api_keys k
            WHERE k.tenant_id = wanted_tenant_id AND k.id > after_id AND k.revoked_at IS NULL
            ORDER BY k.id LIMIT wanted_count;
    ELSIF wanted_kind = 'subject' AND wanted_subject_type IN ('user', 'identity', 'email') THEN
        RETURN QUERY SELECT m.place::text, 'user', m.id::text, CASE wanted_subject_type
                WHEN 'user' THEN coalesce(nullif(m.idp_user_id, ''), m.id::text)
                WHEN 'identity' THEN m.idp_user_id ELSE m.email END
            FROM find_permitted_members(
                wanted_tenant_id, wanted_permission, wanted_type, wanted_id, after_id, wanted_count
            ) m ORDER BY m.place;
        GET DIAGNOSTICS found_count = ROW_COUNT;
        IF found_count < wanted_count THEN
            RETURN QUERY SELECT m.id::text, NULL, NULL, NULL FROM memberships m
                WHERE m.tenant_id = wanted_tenant_id AND m.id > after_id
                ORDER BY m.id OFFSET 9999 LIMIT 1;
        END IF;
    ELSIF wanted_kind = 'resource' THEN
        RETURN QUERY SELECT r.place, NULL, r.place, r.place FROM find_permitted_resources(
                wanted_tenant_id, wanted_permission, wanted_principal_id, wanted_type, after,
                wanted_count
            ) r ORDER BY r.place;
        GET DIAGNOSTICS found_count = ROW_COUNT;
        IF found_count < wanted_count THEN
            RETURN QUERY SELECT x.id, NULL, NULL, NULL FROM access_resources x
                WHERE x.tenant_id = wanted_tenant_id AND x.type = wanted_type AND x.id > after
                ORDER BY x.id OFFSET 9999 LIMIT 1;
        END IF;
    ELSIF wanted_kind = 'action' THEN
        RETURN QUERY SELECT p.place, NULL, p.place, p.place FROM find_held_permissions(
                wanted_tenant_id, wanted_principal_id, wanted_type, wanted_id, after, wanted_count
            ) p ORDER BY p.place;
    END IF;
END
$$

-- List the active custom fields of a type of entity, and lock these rules in shared mode.
--
-- The transaction that reads the rules writes entities by them. No other transaction can change
-- meanwhile which fields are indexed. The function is in PL/pgSQL and volatile, so that the query has
-- a newer snapshot than the lock.
--
-- Returns one JSON array a field, in the fields' order; NULL without fields.
-- Called by: app/custom_fields/values/rules.py
CREATE OR REPLACE FUNCTION custom_field_rules(wanted_tenant uuid, wanted_entity text) RETURNS json
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(
        hashtextextended('custom_fields:' || wanted_tenant || ':' || wanted_entity, 0)
    );
    RETURN (
        SELECT json_agg(
            json_build_array(f.id, f.field_key, f.field_type, f.options, f.is_required,
                             f.is_searchable)
            ORDER BY f.sort_order, f.created_at, f.id
        )
        FROM custom_fields f
        WHERE f.tenant_id = wanted_tenant AND f.entity_type = wanted_entity AND f.is_active
    );
END
$$

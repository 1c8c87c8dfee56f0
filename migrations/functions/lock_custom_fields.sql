-- Wait for the transactions that use the rules of custom fields, and let no other read them.
--
-- A transaction that changes which fields are indexed calls it. It holds the lock until it ends. See
-- custom_field_rules, which takes the same lock in shared mode.
--
-- wanted_entity: the type of entity, such as `user`.
-- Called by: app/custom_fields/search_index/index_state.py
CREATE OR REPLACE FUNCTION lock_custom_fields(wanted_tenant uuid, wanted_entity text) RETURNS void
LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock(
        hashtextextended('custom_fields:' || wanted_tenant || ':' || wanted_entity, 0)
    )
$$

-- List the lots that a tenant could use at a moment, in the order in which they are used.
--
-- The ledger knows what was left: each entry has what its lot had after it.
--
-- wanted_feature: only this balance; NULL for all. moment: NULL for now. shown: the most lots of each
-- balance.
-- Returns the lots; `balance` is what was left in all lots of the same balance.
-- Called by: app/credits/statements.py
CREATE OR REPLACE FUNCTION credit_lots_at(
    wanted_tenant_id uuid, wanted_feature text, moment timestamptz, shown integer
) RETURNS TABLE (
    id uuid, feature text, source text, granted bigint, remaining bigint, priority bigint,
    starts_at timestamptz, expires_at timestamptz, reference text, created_at timestamptz,
    balance bigint
) LANGUAGE sql STABLE AS $$
    SELECT l.id, l.feature, l.source, l.granted, l.rest, l.priority, l.starts_at, l.expires_at,
        l.reference, l.created_at, l.balance
    FROM (
        SELECT l.*, e.remaining AS rest,
            (sum(e.remaining) OVER (PARTITION BY l.feature))::bigint AS balance,
            row_number() OVER (
                PARTITION BY l.feature
                ORDER BY l.priority, coalesce(l.expires_at, 'infinity'), l.created_at, l.id
            ) AS place
        FROM credit_lots l
        CROSS JOIN LATERAL (
            SELECT e.remaining FROM credit_entries e
            WHERE e.tenant_id = l.tenant_id AND e.lot_id = l.id
                AND e.at <= coalesce(moment, statement_timestamp())
            ORDER BY e.at DESC, e.number DESC LIMIT 1
        ) e
        WHERE l.tenant_id = wanted_tenant_id AND l.feature = coalesce(wanted_feature, l.feature)
            AND l.starts_at <= coalesce(moment, statement_timestamp())
            AND coalesce(l.expires_at, 'infinity') > coalesce(moment, statement_timestamp())
            AND e.remaining > 0
    ) l
    WHERE l.place <= shown
    ORDER BY l.feature COLLATE "C", l.place
$$

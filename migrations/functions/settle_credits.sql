-- Give back all credits that a hold took, and consume an amount.
--
-- The amount is taken from the lots of the hold, also if they have expired since, and what these do
-- not have from the others. What goes back to an expired lot expires at once. The caller has refreshed
-- the balance.
-- Called by: refresh_credits, settle_hold
CREATE OR REPLACE FUNCTION settle_credits(
    wanted_tenant_id uuid, wanted_feature text, wanted_hold_id uuid, amount bigint
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    taken record;
    part bigint;
    missing bigint := amount;
BEGIN
    FOR taken IN
        SELECT h.lot_id, h.amount, l.expires_at
        FROM credit_holds h
        JOIN credit_lots l ON l.tenant_id = h.tenant_id AND l.id = h.lot_id
        WHERE h.tenant_id = wanted_tenant_id AND h.hold_id = wanted_hold_id
        ORDER BY l.priority, coalesce(l.expires_at, 'infinity'), l.created_at, l.id
    LOOP
        PERFORM post_credits(
            wanted_tenant_id, taken.lot_id, 'release', taken.amount, wanted_hold_id, NULL
        );
        part := least(taken.amount, missing);
        IF part > 0 THEN
            PERFORM post_credits(
                wanted_tenant_id, taken.lot_id, 'consume', -part, wanted_hold_id, NULL
            );
            missing := missing - part;
        END IF;
        IF taken.expires_at <= clock_timestamp() AND taken.amount > part THEN
            PERFORM post_credits(
                wanted_tenant_id, taken.lot_id, 'expire', part - taken.amount, NULL, NULL
            );
        END IF;
    END LOOP;
    DELETE FROM credit_holds h
        WHERE h.tenant_id = wanted_tenant_id AND h.hold_id = wanted_hold_id;
    IF missing > 0 THEN
        PERFORM burn_credits(wanted_tenant_id, wanted_feature, missing, wanted_hold_id, NULL);
    END IF;
END
$$

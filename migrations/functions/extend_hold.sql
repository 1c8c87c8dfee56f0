-- Let an open hold expire later.
--
-- What it took of credits is locked before the hold, as when it is settled. If that was given back
-- meanwhile, because the hold had expired, the hold is not extended.
--
-- wanted_tenant_id: NULL for the platform. seconds: from now.
-- Returns the hold; no row for one that is unknown, a lease or not open.
-- Called by: app/usage/hold_statements.py
CREATE OR REPLACE FUNCTION extend_hold(wanted_tenant_id uuid, wanted_id uuid, seconds integer)
RETURNS SETOF usage_holds LANGUAGE plpgsql AS $$
DECLARE
    hold usage_holds;
BEGIN
    PERFORM FROM usage_holds h
        JOIN credit_holds c ON c.tenant_id = h.tenant_id AND c.hold_id = h.id
        WHERE h.id = wanted_id AND h.tenant_id = coalesce(wanted_tenant_id, h.tenant_id)
        ORDER BY c.lot_id
        FOR UPDATE OF c;
    UPDATE usage_holds h SET expires_at = now() + seconds * interval '1 second'
        WHERE h.id = wanted_id AND h.tenant_id = coalesce(wanted_tenant_id, h.tenant_id)
            AND h.kind = 'hold' AND h.state = 'open' AND h.expires_at > now()
            AND (h.credits IS NULL OR FOUND)
        RETURNING h.* INTO hold;
    IF FOUND THEN
        UPDATE credit_holds c SET expires_at = hold.expires_at
            WHERE c.tenant_id = hold.tenant_id AND c.hold_id = hold.id;
        RETURN NEXT hold;
    END IF;
END
$$

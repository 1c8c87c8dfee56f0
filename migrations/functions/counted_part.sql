-- Decide how much is counted of what was used under a hold or a lease.
--
-- All is counted if it fits into the limit and the credits suffice. Else a hold has at most what was
-- held, a lease what it has or what is free, and an expired one what is free.
--
-- added: what was used since the last report. own: what the hold still has; 0 after its end.
-- free: what the limit has for it. funds: what the credits suffice for; NULL: it takes none.
-- Called by: settle_hold
CREATE OR REPLACE FUNCTION counted_part(
    kind text, is_open boolean, added bigint, own bigint, free bigint, funds bigint
) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN added <= free AND added <= coalesce(funds, added) THEN added
        WHEN kind = 'hold' AND is_open THEN least(added, own, funds)
        ELSE least(added, greatest(own, free), funds)
    END
$$

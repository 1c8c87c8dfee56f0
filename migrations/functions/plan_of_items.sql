-- Choose the plan of a subscription by its items' prices, and the limits that get quantities.
--
-- The mapping of a price's id takes precedence over that of its lookup key. Of several mapped
-- items, the one with the lowest sort_order, then the first, decides. Without one, the first item's
-- lookup key, else its price, is the name of the plan. Without items there is no row.
--
-- items: a list of objects with `price`, `lookup_key` and `quantity`.
-- price: that of the item that decides. limits: the sum of the quantities by limit, at most 10^15;
-- NULL if no item is mapped.
-- Called by: app/billing/mirror.py, app/plans/prices.py
CREATE OR REPLACE FUNCTION plan_of_items(wanted_provider text, items json)
RETURNS TABLE (plan_name text, price text, limits json)
LANGUAGE sql STABLE AS $$
    WITH priced AS (
        SELECT i.position, i.item ->> 'price' AS price, i.item ->> 'lookup_key' AS lookup_key,
            (i.item ->> 'quantity')::numeric AS quantity, p.plan_name, p.limit_key, p.sort_order
        FROM json_array_elements(items) WITH ORDINALITY AS i (item, position)
        LEFT JOIN LATERAL (
            SELECT p.plan_name, p.limit_key, p.sort_order FROM plan_prices p
            WHERE p.provider = wanted_provider AND NOT p.is_deleted
                AND (p.price_id = i.item ->> 'price' OR p.lookup_key = i.item ->> 'lookup_key')
            ORDER BY p.price_id IS NULL LIMIT 1
        ) p ON true
    )
    SELECT coalesce(c.plan_name, nullif(c.lookup_key, ''), c.price), c.price,
        CASE WHEN c.plan_name IS NOT NULL THEN coalesce(l.limits, '{}') END
    FROM (SELECT * FROM priced p ORDER BY p.sort_order, p.position LIMIT 1) c
    CROSS JOIN (
        SELECT json_object_agg(q.limit_key, q.quantity ORDER BY q.limit_key) AS limits
        FROM (
            SELECT p.limit_key, least(sum(p.quantity), 1e15)::bigint AS quantity FROM priced p
            WHERE p.limit_key IS NOT NULL AND p.quantity IS NOT NULL GROUP BY p.limit_key
        ) q
    ) l
$$

-- The moment as of which this transaction reads the past. With the schema first on the search path it
-- takes the place of PostgreSQL's now().
--
-- Called by: past.plans_in_force
CREATE OR REPLACE FUNCTION past.now() RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT current_setting('app.as_of')::timestamptz
$$

-- Fail the transaction (SQLSTATE 40001) unless exactly one row was changed.
--
-- changed: the number of rows that a statement has changed.
-- No release calls it any more.
CREATE OR REPLACE FUNCTION must_change_one(changed bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF changed <> 1 THEN
        RAISE EXCEPTION 'the row has changed meanwhile' USING ERRCODE = 'serialization_failure';
    END IF;
END
$$

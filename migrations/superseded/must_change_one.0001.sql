CREATE OR REPLACE FUNCTION must_change_one(changed bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF changed <> 1 THEN
        RAISE EXCEPTION 'the row has changed meanwhile' USING ERRCODE = 'serialization_failure';
    END IF;
END
$$

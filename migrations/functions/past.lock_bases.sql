-- Let no other transaction write bases until this one ends: it writes one, or erases a person.
--
-- Called by: app/privacy/people/redaction.py, past.add_base
CREATE OR REPLACE FUNCTION past.lock_bases() RETURNS void LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock(7021118)
$$

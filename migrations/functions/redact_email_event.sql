-- Replace the texts of an e-mail event that name an erased person. Runs with the rights of the owner.
--
-- redacted: the new values of the columns.
-- Called by: app/privacy/people/redaction.py
CREATE OR REPLACE FUNCTION redact_email_event(wanted_id uuid, redacted json)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF public.may_erase(NULL) IS NOT TRUE THEN
        RAISE EXCEPTION 'nobody to erase' USING ERRCODE = 'insufficient_privilege';
    END IF;
    UPDATE public.email_events e SET (message_id, reason, response, url, tags, metadata) = (
        SELECT r.message_id, r.reason, r.response, r.url, r.tags, r.metadata
        FROM json_populate_record(e, redacted) r
    ) WHERE e.id = wanted_id;
END
$$

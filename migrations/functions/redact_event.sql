-- Replace what names an erased person in an event. Runs with the rights of the owner.
--
-- It changes both tables, because the sequencer may move the event meanwhile.
--
-- redacted: the new values of the columns.
-- Called by: app/privacy/people/redaction.py
CREATE OR REPLACE FUNCTION redact_event(wanted_tenant uuid, wanted_id uuid, redacted json)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF public.may_erase(wanted_tenant) IS NOT TRUE THEN
        RAISE EXCEPTION 'nobody to erase' USING ERRCODE = 'insufficient_privilege';
    END IF;
    UPDATE public.event_outbox e SET (before, after, data, actor, request_id) = (
        SELECT r.before, r.after, r.data, r.actor, r.request_id
        FROM json_populate_record(e, redacted) r
    ) WHERE e.tenant_id = wanted_tenant AND e.id = wanted_id;
    UPDATE public.events e SET (before, after, data, actor, request_id) = (
        SELECT r.before, r.after, r.data, r.actor, r.request_id
        FROM json_populate_record(e, redacted) r
    ) WHERE e.tenant_id = wanted_tenant AND e.id = wanted_id;
END
$$

-- Refuse a tenant whose organization belonged to a deleted tenant. A trigger of `tenants`.
--
-- It runs after the row is written. So it also sees a deletion that commits while the row waits for
-- its unique key. The constraint's name tells the application which rule it was.
CREATE OR REPLACE FUNCTION refuse_deleted_organization() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM deleted_organizations d WHERE d.idp_org_id = NEW.idp_org_id) THEN
        RAISE EXCEPTION 'the tenant of this organization was deleted'
            USING ERRCODE = 'unique_violation', CONSTRAINT = 'tr_tenants_deleted_organization';
    END IF;
    RETURN NULL;
END
$$

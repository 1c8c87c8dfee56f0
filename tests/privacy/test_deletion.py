"""A tenant whose time has come: nothing of it is left, everything else is."""

import json
from datetime import UTC, datetime
from uuid import UUID, uuid4

import psycopg2
import pytest

from app.audit.models import AuditEvent
from app.billing.models import BillingCustomer
from app.core.clock import utcnow
from app.core.http.idempotency import IdempotencyKey
from app.credits.models import CreditEntry, CreditHold
from app.emails.models import EmailEventRecord, EmailMessage, Suppression
from app.identity_sync.models import IdentityObject
from app.imports.models import Import, ImportFault
from app.inbox.models import WebhookEvent
from app.plans.models import PlanAssignment
from app.privacy.jobs import delete_due_tenants, delete_tenant
from app.privacy.tenants import deletion_stages
from app.tenants.models import DeletedOrganization, Tenant, TenantDeletion
from app.usage.models import UsageCounter, UsageDay, UsageKey
from app.users.models import User
from tests import database
from tests.billing.samples import document
from tests.custom_fields.fields import build_index, create_field, create_users
from tests.database import platform_transaction
from tests.factories import (
    create_api_key,
    create_assignment,
    create_domain,
    create_hold,
    create_invitation,
    create_join_request,
    create_log_stream,
    create_lot,
    create_member,
    create_membership,
    create_override,
    create_preset,
    create_resource,
    create_rewind,
    create_role,
    create_setup_link,
    create_sso_connection,
    create_subscription,
    create_tenant,
    create_user,
    create_webhook_endpoint,
    platform_token,
    save,
)
from tests.history.writing import add_bases
from tests.scim.directory import Directory, create_connection

LATER = datetime(2999, 1, 1, tzinfo=UTC)
TABLES = """
    SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
        AND a.attname = 'tenant_id' AND NOT c.relispartition
"""


def fill(app, api, sender, slug, preset):
    """A tenant with rows in every table."""
    tenant = create_tenant(slug=slug, idp_org_id=f"org_{slug}")
    _, membership, token = create_member(tenant, role="owner")
    field = create_field(tenant, field_key="note", is_searchable=True)
    build_index(app, field)
    create_override(tenant, preset, "seats", 7)
    subscription = create_subscription(tenant)
    create_api_key(tenant, ["users:read"])
    body = {"idp_user_id": f"by_api_{slug}", "email": f"{slug}@api.zz", "meta_data": {"note": "x"}}
    keyed = {"Idempotency-Key": slug}
    user = api.post("/v1/users", token=token, json=body, headers=keyed).get_json()["data"]
    for method, path, body in (
        ("PATCH", f"/v1/billing/subscriptions/{subscription.id}", {"billing_city": slug}),
        ("PATCH", f"/v1/custom-fields/{field.id}", {"label": slug}),
    ):
        answer = api.request(method, path, token=token, json=body, headers=keyed)
        assert answer.status_code == 200
    database.execute(
        "INSERT INTO tenant_notes (tenant_id, version, updated_at, updated_by, text)"
        " VALUES (:id, 1, now(), 'platform:ops', :slug)",
        id=tenant.id,
        slug=slug,
    )
    api.sequence()
    add_bases(app)
    api.delete(f"/v1/users/{user['id']}", token=token)
    pair = {"organization_id": f"org_{slug}", "user_id": f"idp_{slug}", "role": "member"}
    person = {"id": f"idp_{slug}", "email": f"{slug}@idp.zz", "first_name": slug}
    mail = {"recipient": f"{slug}@idp.zz", "message_id": slug, "bounce_type": "hard"}
    for kind, data in (
        ("organization.updated", {"id": f"org_{slug}", "name": slug}),
        ("user.created", person),
        ("membership.created", pair),
        ("email.bounced", mail),
    ):
        sender.tell(kind, delivery=f"{kind} {slug}", **data)
    place = {"tenant_id": tenant.id, "plan_name": "growth", "next_plan_name": "free"}
    save(PlanAssignment, **place, reason="Pilot", created_by="cli:root")
    connection, secret = create_connection(tenant)
    directory = Directory(app, secret)
    emails = [{"value": f"{slug}@scim.zz"}]
    directory.add_group("All", directory.add_user(f"{slug}@scim.zz", emails=emails)["id"])
    form = {"grant_type": "client_credentials", "client_id": connection.id}
    app.test_client().post("/scim/oauth/token", data={**form, "client_secret": secret})
    counter = {"tenant_id": tenant.id, "feature": "calls", "period_start": utcnow()}
    save(UsageCounter, **counter, used=1, announced=0)
    create_hold(tenant.id)
    save(UsageDay, **counter, day=utcnow().date(), used=1, added=1)
    lot = create_lot(tenant.id)
    place = {"tenant_id": tenant.id, "feature": lot.feature}
    entry = {"kind": "grant", "at": utcnow(), "amount": 1, "remaining": 1, "balance": 1}
    save(CreditEntry, **place, lot_id=lot.id, **entry)
    save(CreditHold, **place, lot_id=lot.id, hold_id=uuid4(), amount=1, expires_at=utcnow())
    save(UsageKey, tenant_id=tenant.id, digest=uuid4(), amount=1, created_at=utcnow())
    made = save(Import, created_by_user_id="cli:root")
    place = {"idp_org_id": f"org_{slug}", "name": slug}
    save(ImportFault, import_id=made.id, line=1, type="user", errors=[], **place)
    create_webhook_endpoint(tenant.id)
    create_log_stream(tenant.id)
    create_setup_link(tenant.id)
    create_rewind(tenant.id)
    create_invitation(tenant.id)
    create_sso_connection(tenant.id)
    role = create_role(tenant)
    folder = create_resource(tenant, "folder", "1")
    create_resource(tenant, "folder", "2", parent=folder)
    create_assignment(tenant, role, membership_id=membership.id, resource=folder)
    create_domain(tenant)
    create_join_request(tenant, state="accepted", user_id=UUID(user["id"]))
    customer = {"provider": "stripe", "customer_id": slug, "is_manual": True}
    save(BillingCustomer, tenant_id=tenant.id, **customer)
    return tenant


def make_due(tenant):
    """Suspend the tenant and request its deletion, as if the grace had passed."""
    database.execute(
        "UPDATE tenants SET is_active = false, deletes_at = :now WHERE id = :id",
        id=tenant.id,
        now=utcnow(),
    )
    save(TenantDeletion, tenant_id=tenant.id, requested_by="platform:operator")


def delete(app, tenant):
    with app.app_context():
        delete_tenant(str(tenant.id))


@pytest.fixture
def preset(app):
    return create_preset("free", seats=5)


@pytest.fixture
def small(monkeypatch):
    """Batches of a few rows."""
    for name in ("BATCH", "PEOPLE", "PAYLOADS"):
        monkeypatch.setattr(deletion_stages, name, 2)


class TestDeletion:
    @pytest.mark.parametrize("have_positions", [False, True])
    def test_leaves_nothing_but_a_tombstone_and_one_audit_row_with_its_event(
        self, app, api, sender, preset, dump, small, have_positions
    ):
        gone = fill(app, api, sender, "gone", preset)
        if have_positions:
            api.sequence()
        expected = {
            name: database.query(
                f'SELECT count(*) AS number FROM "{name}" WHERE tenant_id = :id', id=gone.id
            )[0].number
            for (name,) in database.query(TABLES)
        }
        empty = {name for name, number in expected.items() if not number}
        assert empty == {"tenant_deletions", *["event_outbox"] * have_positions}
        make_due(gone)

        delete(app, gone)

        lines = [line for line in dump().splitlines() if not line.startswith("webhook_events ")]
        left = sorted(line for line in lines if "gone" in line.lower() or str(gone.id) in line)
        (event,) = database.rows(AuditEvent, action="tenant.deleted")
        assert [line.split(" ")[0] for line in left] == [
            "audit_events", "deleted_organizations", "event_outbox",
        ]  # fmt: skip
        assert {row.body for row in database.rows(WebhookEvent)} == {None}
        assert event.target_id == str(gone.id)
        assert event.actor == "platform:operator"
        assert event.before == {"idp_org_id": "org_gone"}
        counted = event.after["rows"]
        assert {name: counted.get(name, 0) for name in expected} == expected
        assert counted["tenants"] == counted["email_events"] == counted["suppressions"] == 1
        assert (counted["identity_objects"], counted["webhook_events"]) == (3, 4)
        assert counted["idempotency_keys"] == 3

    def test_knows_every_table_of_tenants_in_the_catalogue(self, app):
        known = {*deletion_stages.tables(), "tenant_deletions"}

        assert known == {name for (name,) in database.query(TABLES)}

    def test_removes_payloads_of_billing_events_about_its_subscriptions(self, app):
        gone, other = create_tenant(), create_tenant()
        names = {
            name: document("stripe", name)
            for name in ("customer.subscription.created", "customer.updated")
        }
        ours = names["customer.subscription.created"]["data"]["object"]
        values = {"bp_provider": "stripe", "bp_customer_id": ours["customer"]}
        create_subscription(gone, bp_subscription_id=ours["id"], **values)
        create_subscription(other, bp_subscription_id="sub_other", bp_provider="stripe")
        foreign = json.loads(json.dumps(names["customer.subscription.created"]))
        foreign["data"]["object"] |= {"id": "sub_other", "customer": "cus_other"}
        for number, body in enumerate([*names.values(), foreign]):
            save(
                WebhookEvent, source="stripe", external_id=str(number), event_type="x",
                status="succeeded", processed_at=utcnow(), headers={}, digest="", request_id="",
                body=json.dumps(body).encode(),
            )  # fmt: skip
        make_due(gone)

        delete(app, gone)

        kept = [row.external_id for row in database.rows(WebhookEvent) if row.body is not None]
        assert kept == ["2"]

    def test_leaves_other_tenants_alone(self, app, api, sender, preset, dump):
        gone = create_tenant()
        create_users(gone, 3)
        fill(app, api, sender, "kept", preset)
        before = [line for line in dump().splitlines() if str(gone.id) not in line]
        make_due(gone)

        delete(app, gone)

        after = set(dump().splitlines())
        assert [line for line in before if line not in after] == []

    def test_deletes_records_of_former_addresses_unless_another_tenant_has_them(
        self, app, api, sender
    ):
        gone = create_tenant()
        user, _, token = create_member(gone, role="owner", email="First@IDP.zz")
        create_user(create_tenant(), email="Second@IDP.zz")
        for name in ("second", "third"):
            path, body = f"/v1/users/{user.id}", {"email": f"{name}@idp.zz"}
            assert api.patch(path, token=token, json=body).status_code == 200
        for name in ("first", "second", "third"):
            mail = {"recipient": f"{name}@idp.zz", "message_id": name, "bounce_type": "hard"}
            sender.tell("email.bounced", **mail)
        make_due(gone)

        delete(app, gone)

        for model in (EmailEventRecord, EmailMessage, Suppression):
            assert [row.address for row in database.rows(model)] == ["second@idp.zz"]

    @pytest.mark.parametrize("email", ["gone@idp.zz", "GONE@idp.zz"])
    def test_keeps_what_is_about_people_whom_another_tenant_has_too(
        self, app, api, sender, preset, email
    ):
        gone = fill(app, api, sender, "gone", preset)
        other = create_tenant(idp_org_id="org_other")
        create_user(other, idp_user_id="idp_gone", email=email)
        pair = {"organization_id": "org_other", "user_id": "idp_gone", "role": "member"}
        sender.tell("membership.created", delivery="other", **pair)
        make_due(gone)

        delete(app, gone)

        stored = {row.event_type for row in database.rows(WebhookEvent) if row.body is not None}
        kept = {(row.kind, row.object_id) for row in database.rows(IdentityObject)}
        assert stored == {"user.created", "email.bounced", "membership.created"}
        assert kept == {("user", "idp_gone"), ("membership", "org_other idp_gone")}
        for model in (EmailEventRecord, EmailMessage, Suppression):
            assert len(database.rows(model)) == 1

    def test_frees_the_slug_and_keeps_the_idp_org_id(self, app, api):
        gone = create_tenant(slug="acme", idp_org_id="org_gone")
        make_due(gone)

        delete(app, gone)

        body = {"idp_org_id": "org_new", "name": "Acme", "slug": "acme"}
        made = api.post("/v1/tenants", token=platform_token(), json=body)
        body = {"idp_org_id": "org_gone", "name": "Again"}
        again = api.post("/v1/tenants", token=platform_token(), json=body)
        assert made.status_code == 201
        assert again.get_json()["code"] == "idp_org_id_deleted"

    def test_waits_for_the_end_of_the_grace(self, app):
        tenant = create_tenant(is_active=False, deletes_at=LATER)
        save(TenantDeletion, tenant_id=tenant.id, requested_by="x")

        delete(app, tenant)

        assert database.rows(DeletedOrganization) == []
        assert len(database.rows(Tenant)) == 1

    def test_continues_where_it_was_stopped(self, app, api, sender, preset, small):
        gone = fill(app, api, sender, "gone", preset)
        make_due(gone)

        stages = []
        with app.app_context():
            while deletion_stages.delete_batch(gone.id):
                stages += [row.stage for row in database.rows(TenantDeletion)]

        assert list(dict.fromkeys(stages)) == ["payloads", "people", "answers", "rows"]
        assert len(stages) > 10
        assert database.rows(Tenant) == []

    def test_forgets_people_who_came_while_it_went_on(self, app, preset):
        gone = create_tenant()
        create_users(gone, 3)
        make_due(gone)

        with app.app_context():
            while deletion_stages.delete_batch(gone.id):
                if database.rows(User) == []:
                    create_membership(gone, create_user(gone))
                    break
            while deletion_stages.delete_batch(gone.id):
                pass

        assert database.rows(User) == database.rows(Tenant) == []

    def test_lets_nobody_be_added_when_it_is_due(self, app, api):
        gone, waiting = create_tenant(), create_tenant(deletes_at=LATER)
        make_due(gone)

        def create(tenant):
            query = {"tenant_id": str(tenant.id)}
            body = {"idp_user_id": "ada", "email": "ada@example.com"}
            return api.post("/v1/users", token=platform_token(), query_string=query, json=body)

        refused, made = create(gone), create(waiting)
        assert (refused.status_code, refused.get_json()["code"]) == (409, "tenant_deleting")
        assert made.status_code == 201
        assert database.rows(User, tenant_id=gone.id) == []


class TestRights:
    """What the function of the database refuses, whoever asks."""

    def call(self, tenant, table="users", limit=10):
        with platform_transaction():
            return deletion_stages.statements.DELETE_BATCH.scalar(
                tenant_id=tenant.id, table=table, limit=limit
            )

    def test_a_tenant_without_a_due_deletion(self, app):
        waiting, activated = create_tenant(is_active=False, deletes_at=LATER), create_tenant()
        save(TenantDeletion, tenant_id=waiting.id, requested_by="x")
        make_due(activated)
        database.execute("UPDATE tenants SET is_active = true WHERE id = :id", id=str(activated.id))

        for tenant in (create_tenant(), create_tenant(is_active=False), waiting, activated):
            with pytest.raises(psycopg2.errors.InsufficientPrivilege):
                self.call(tenant)

    @pytest.mark.parametrize(
        ("values", "error"),
        [
            *(
                ({"table": name}, psycopg2.errors.UndefinedTable)
                for name in ("tenants", "suppressions", "pg_class", "users; --", None)
            ),
            *(({"limit": n}, psycopg2.errors.InvalidParameterValue) for n in (0, 10_001, None)),
        ],
    )
    def test_a_table_that_is_not_of_tenants_and_a_batch_without_bounds(self, app, values, error):
        tenant = create_tenant()
        make_due(tenant)

        with pytest.raises(error):
            self.call(tenant, **values)

    @pytest.mark.parametrize(
        "condition",
        [
            "has_function_privilege('public', oid, 'EXECUTE')",
            "('search_path=pg_catalog, pg_temp' = ANY (proconfig)) IS NOT TRUE",
        ],
        ids=["to other roles", "on tables of others"],
    )
    def test_the_functions_that_run_as_their_owner(self, app, superuser, condition):
        superuser.execute(
            f"SELECT proname FROM pg_proc WHERE prosecdef AND {condition}"
            " AND pronamespace = 'public'::regnamespace"
        )

        assert superuser.fetchall() == []


class TestJobs:
    def test_queues_what_is_due_and_idle(self, app, monkeypatch):
        due, waiting = create_tenant(), create_tenant(is_active=False)
        make_due(due)
        save(TenantDeletion, tenant_id=waiting.id, requested_by="x")
        database.execute("UPDATE tenant_deletions SET worked_at = now() - interval '2 minutes'")
        pushed = []
        monkeypatch.setattr(type(delete_tenant), "push", lambda job, *ids: pushed.append(ids))

        with app.app_context():
            delete_due_tenants()
            delete_due_tenants()

        assert pushed == [(str(due.id),)]

    def test_of_a_request_for_a_row_that_is_deleted_meanwhile_is_404(self, app, api):
        tenant = create_tenant(is_active=False)
        make_due(tenant)
        token = platform_token()
        body = {"idp_user_id": "late", "email": "late@example.com"}

        delete(app, tenant)

        answer = api.post(
            "/v1/users", token=token, json=body, query_string={"tenant_id": str(tenant.id)}
        )
        assert answer.status_code == 404
        assert len(database.rows(IdempotencyKey)) == 0

"""``POST /v1/tenants/{id}/rewind``: a tenant's rows are made again what they were."""

import json
import shlex
from uuid import UUID, uuid4

import pytest

from app import create_app
from app.audit.models import AuditEvent
from app.core.jobs.queues import Queue, connection, queue_named
from app.rewinds import service, work
from app.rewinds.jobs import rewind
from app.tenants.models import Tenant
from tests import database
from tests.factories import create_limits, create_preset, limit_flag, platform_token
from tests.imports.files import as_file, finish, member_line, post, user_line
from tests.scim.directory import Directory, create_connection, replace

SUBSCRIPTION = {
    "bp_subscription_id": "sub_1",
    "bp_customer_id": "cus_1",
    "bp_plan_id": "price_1",
    "bp_status": "active",
    "plan_name": "free",
    "start_date": "2026-01-01T00:00:00Z",
    "billing_cycle": "monthly",
    "per_cycle_billing_amount": 4900,
}


def about_user(user_id, name):
    return {"kind": "users", "id": user_id, "name": f"{name}@example.com"}


def codes_of(done):
    return [(one["kind"], one["code"]) for one in done["left_out"]]


class TestPreview:
    def test_shows_what_would_change_and_changes_nothing(self, call, tenant, add_user, position):
        user = add_user("ada", first_name="Ada")
        to = position()
        call("PATCH", f"/v1/users/{user}", {"first_name": "Augusta"})
        new = add_user("new")
        now = position()

        found = call("POST", f"/v1/tenants/{tenant}/rewind", {"to": to})

        assert (found["state"], found["id"], found["done"]) == ("preview", None, 2)
        assert found["counts"] == {"users": {"updated": 1, "removed": 1}}
        names = {"first_name": {"before": "Augusta", "after": "Ada"}}
        assert found["changes"] == [
            {"action": "updated", "changes": names, **about_user(user, "ada")},
            {"action": "removed", "changes": {}, **about_user(new, "new")},
        ]
        assert position() == now

    def test_is_limited_to_kinds_and_ids(self, call, tenant, add_user, position):
        users = [add_user(name) for name in ("a", "b")]
        to = position()
        for user in users:
            call("PATCH", f"/v1/users/{user}", {"first_name": "Changed"})
        call("PATCH", f"/v1/tenants/{tenant}", {"name": "Other"})
        position()

        path = f"/v1/tenants/{tenant}/rewind"
        one = call("POST", path, {"to": to, "only": [users[1]]})
        other = call("POST", path, {"to": to, "kinds": ["tenant", "tenant"]})

        assert [each["id"] for each in one["changes"]] == [users[1]]
        assert other["counts"] == {"tenant": {"updated": 1}}

    def test_neither_waits_for_writers_nor_holds_them_up(self, call, tenant, position, superuser):
        to = position()
        superuser.execute("BEGIN; SELECT FROM tenants WHERE id = %s FOR UPDATE", [tenant])

        found = call("POST", f"/v1/tenants/{tenant}/rewind", {"to": to})

        assert (found["state"], found["done"]) == ("preview", 0)


class TestRewind:
    def test_makes_the_rows_what_they_were(self, call, tenant, add_user, position, go_back):
        user = add_user("ada", first_name="Ada")
        to = position()
        call("PATCH", f"/v1/users/{user}", {"first_name": "Augusta"})
        call("PATCH", f"/v1/tenants/{tenant}", {"name": "Other"})
        new = add_user("new")

        done = go_back(tenant, to)

        assert (done["state"], done["done"], done["left_out"]) == ("completed", 3, [])
        assert call("GET", f"/v1/users/{user}")["first_name"] == "Ada"
        assert call("GET", f"/v1/tenants/{tenant}")["name"] == "Acme"
        assert call("GET", f"/v1/users/{new}")["is_active"] is False

    def test_each_change_is_audited_with_its_event(self, call, tenant, add_user, position, go_back):
        user = add_user("ada", first_name="Ada")
        to = position()
        call("PATCH", f"/v1/users/{user}", {"first_name": "Augusta"})

        done = go_back(tenant, to)

        start = position()
        feed = call("GET", "/v1/events", after=done["position"])
        (event,) = [each for each in feed if each["type"] == "user.updated"]
        audited = database.rows(AuditEvent, request_id=f"rewind:{done['id']}")
        assert UUID(event["id"].removeprefix("evt_")) in {each.id for each in audited}
        assert {each.actor for each in audited} == {done["created_by_user_id"]}
        assert int(start) > int(done["position"])

    def test_the_trail_and_the_changes_say_that_a_rewind_made_them(
        self, api, call, tenant, add_user, position, go_back
    ):
        user = add_user("ada", first_name="Ada")
        to = position()
        call("PATCH", f"/v1/users/{user}", {"first_name": "Augusta"})

        go_back(tenant, to)

        position()
        listed = call("GET", "/v1/audit-events", target_id=user)
        (found,) = call("GET", "/v1/users", tenant_id=tenant, include="history")
        history = call("GET", f"/v1/users/{user}/history")
        changes = call("GET", f"/v1/tenants/{tenant}/changes", **{"from": to})
        lines = api.get("/v1/audit-events/csv", token=platform_token()).text.splitlines()
        for entries in (listed, history, found["history"]):
            reasons = [one["reason"] for one in entries if one["action"] == "user.updated"]
            assert sorted(reasons) == ["", "rewind"]
        reasons = {one["target_id"]: one["reasons"] for one in changes}
        assert (reasons[user], reasons.get(tenant)) == (["rewind"], None)
        assert sum(line.endswith(',"rewind"') and user in line for line in lines) == 1

    def test_deleted_rows_come_back_with_their_ids(self, call, tenant, position, go_back):
        create_preset("free", beta=False)
        one = {"tenant_id": tenant}
        field = {"entity_type": "user", "field_key": "team", "label": "Team", "field_type": "text"}
        field = call("POST", "/v1/custom-fields", field, **one)["id"]
        body = {"flag_key": "beta", "flag_value": True}
        override = call("POST", "/v1/billing/flags/overrides", body, **one)
        role = {"key": "clerk", "name": "Clerk", "permissions": []}
        role = call("POST", "/v1/roles", role, **one)["id"]
        to = position()
        call("DELETE", f"/v1/billing/flags/overrides/{override['id']}")
        again = call("POST", "/v1/billing/flags/overrides", {**body, "flag_value": False}, **one)
        call("POST", f"/v1/custom-fields/{field}/archive")
        call("DELETE", f"/v1/custom-fields/{field}")
        call("DELETE", f"/v1/roles/{role}")

        done = go_back(tenant, to)

        assert done["left_out"] == []
        (found,) = call("GET", "/v1/billing/flags/overrides", **one)
        assert (found["id"], found["flag_value"]) == (override["id"], True)
        assert (found["created_at"], again["id"] != found["id"]) == (override["created_at"], True)
        assert found["updated_at"] > override["updated_at"]
        assert call("GET", f"/v1/custom-fields/{field}")["is_active"] is True
        assert call("GET", f"/v1/roles/{role}")["key"] == "clerk"
        assert database.query("SELECT version FROM roles WHERE key = 'clerk'")[0].version > 1

    def test_a_field_whose_key_another_one_has_comes_back(self, call, tenant, position, go_back):
        one = {"tenant_id": tenant}
        field = {"entity_type": "user", "field_key": "team", "label": "Team", "field_type": "text"}
        made = call("POST", "/v1/custom-fields", field, **one)
        to = position()
        call("POST", f"/v1/custom-fields/{made['id']}/archive")
        call("DELETE", f"/v1/custom-fields/{made['id']}")
        call("POST", "/v1/custom-fields", {**field, "field_type": "integer"}, **one)

        done = go_back(tenant, to)

        assert (done["left_out"], done["done"]) == ([], 2)
        (found,) = call("GET", "/v1/custom-fields", **one)
        assert (found["id"], found["field_type"]) == (made["id"], "text")

    def test_resources_come_back_with_what_is_above_them_and_their_roles(
        self, call, tenant, add_user, position, go_back, resources
    ):
        resources.put("other", b=1, a=2)
        chain = [*"hgfedcba"]  # the lowest one is first by its name
        resources.put_chain(chain)
        add_user("ada", "member")
        (member,) = call("GET", "/v1/memberships/tenant", tenant_id=tenant)
        role = {"membership_id": member["id"], "role": "viewer", "resource": resources.of("a")}
        role = call("POST", "/v1/role-assignments", role, tenant_id=tenant)["id"]
        to, then = position(), resources.read()
        call("DELETE", f"/v1/role-assignments/{role}")
        for name in chain[::-1]:
            resources.delete(name)
        resources.put("other", a=3)
        new = [*"stuvwxyz"]  # the highest one is first
        resources.put_chain(new)

        done = go_back(tenant, to)

        assert (done["left_out"], resources.read()) == ([], then)
        counts = {"resources": {"created": 8, "updated": 1, "removed": 8}}
        assert done["counts"] == {**counts, "role_assignments": {"created": 1}}
        assert call("GET", f"/v1/role-assignments/{role}")["resource"] == resources.of("a")
        back = go_back(tenant, done["position"])
        assert (back["left_out"], len(resources.read())) == ([], 9)

    def test_a_resource_is_compared_once_however_often_it_has_changed(
        self, call, tenant, position, go_back, resources, monkeypatch
    ):
        monkeypatch.setattr(service, "COMPARED", 1)
        monkeypatch.setattr(work, "SLICE", 1)
        for name in "ac":
            resources.put(name, n=1)
        to, then = position(), resources.read()
        for name in "abab":
            resources.put(name, n=len(resources.read()))
        for name in "bcb":
            resources.delete(name) if name == "b" else resources.put(name, n=3)
            resources.put("b")
        position()

        shown = call("POST", f"/v1/tenants/{tenant}/rewind", {"to": to})
        done = go_back(tenant, to)

        assert [one["id"] for one in shown["changes"]] == ["doc/a", "doc/b", "doc/c"]
        counts = {"resources": {"updated": 2, "removed": 1}}
        assert (shown["counts"], done["counts"]) == (counts, counts)
        assert (done["left_out"], resources.read()) == ([], then)

    def test_what_others_change_meanwhile_stays(
        self, app, api, call, tenant, add_user, position, go_back
    ):
        changed, other = (add_user(name, first_name="First") for name in ("a", "b"))
        to = position()
        call("PATCH", f"/v1/users/{changed}", {"first_name": "Changed"})
        body = {"to": to, "dry_run": False}
        made = call("POST", f"/v1/tenants/{tenant}/rewind", body)
        for user in (changed, other):
            call("PATCH", f"/v1/users/{user}", {"last_name": "Meanwhile"})
        api.sequence()
        before = api.get(f"/v1/users/{changed}", token=platform_token()).headers["ETag"]

        with app.app_context():
            rewind(made["id"])

        names = [call("GET", f"/v1/users/{user}")["last_name"] for user in (changed, other)]
        assert names == ["", "Meanwhile"]  # the first is included, the audit trail has it
        assert "Meanwhile" in str([each.before for each in database.rows(AuditEvent)])
        late = api.patch(
            f"/v1/users/{changed}",
            token=platform_token(),
            json={"last_name": "Late"},
            headers={"If-Match": before},
        )
        assert late.status_code == 412

    def test_waits_for_its_position(self, app, api, call, tenant, add_user, position):
        user = add_user("ada", first_name="Ada")
        to = position()
        call("PATCH", f"/v1/users/{user}", {"first_name": "Augusta"})
        made = call("POST", f"/v1/tenants/{tenant}/rewind", {"to": to, "dry_run": False})
        running = f"/v1/tenants/{tenant}/rewind"

        with app.app_context():
            rewind(made["id"])
        answer = api.post(running, token=platform_token(), json={"to": to, "dry_run": False})

        assert call("GET", f"/v1/rewinds/{made['id']}")["state"] == "pending"
        assert (answer.status_code, answer.get_json()["code"]) == (409, "rewind_running")

    def test_ends_when_the_tenant_will_be_deleted(self, app, api, call, tenant, position):
        made = call("POST", f"/v1/tenants/{tenant}/rewind", {"to": position(), "dry_run": False})
        call("PATCH", f"/v1/tenants/{tenant}/active", is_active="false")
        call("DELETE", f"/v1/tenants/{tenant}", {"slug": "acme"})

        with app.app_context():
            rewind(made["id"])

        assert call("GET", f"/v1/rewinds/{made['id']}")["state"] == "failed"
        again = {"to": position(), "dry_run": False}
        answer = api.post(f"/v1/tenants/{tenant}/rewind", token=platform_token(), json=again)
        assert answer.get_json()["code"] == "tenant_deleting"


class TestLeftOut:
    def test_an_address_that_somebody_has_taken(self, call, tenant, add_user, position, go_back):
        user = add_user("ada")
        to = position()
        call("PATCH", f"/v1/users/{user}", {"email": "new@example.com"})
        add_user("other", email="ada@example.com")

        alone = go_back(tenant, to, only=[user])
        all_ = go_back(tenant, to)  # then the other user is deactivated

        assert codes_of(alone) == [("users", "email_taken")]
        assert codes_of(all_) == []
        assert call("GET", f"/v1/users/{user}")["email"] == "ada@example.com"

    def test_members_beyond_the_seats(self, call, tenant, add_user, position, go_back):
        for name in ("a", "b"):
            add_user(name, "member")
        to = position()
        for member in call("GET", "/v1/memberships/tenant", tenant_id=tenant):
            path = f"/v1/memberships/tenant/{member['id']}/active"
            call("PATCH", path, is_active="false")
        create_limits("free", limit_flag("seats", 1))

        done = go_back(tenant, to)

        assert codes_of(done) == [("memberships", "seat_limit")]
        assert done["counts"] == {"memberships": {"updated": 1}}

    def test_a_resource_for_which_a_role_is_assigned(
        self, call, tenant, add_user, position, go_back, resources
    ):
        add_user("ada", "member")
        (member,) = call("GET", "/v1/memberships/tenant", tenant_id=tenant)
        to = position()
        resources.put("a")
        role = {"membership_id": member["id"], "role": "viewer", "resource": resources.of("a")}
        call("POST", "/v1/role-assignments", role, tenant_id=tenant)
        position()
        shown = call("POST", f"/v1/tenants/{tenant}/rewind", {"to": to, "kinds": ["resources"]})

        done = go_back(tenant, to, kinds=["resources"])

        removed = {"kind": "resources", "id": "doc/a", "name": "", "action": "removed"}
        assert shown["changes"] == [{**removed, "changes": {}}]
        assert [(one["id"], one["code"]) for one in done["left_out"]] == [
            ("doc/a", "resource_in_use")
        ]
        assert go_back(tenant, to)["left_out"] == []

    def test_the_last_owner(self, call, tenant, add_user, position, go_back):
        user = add_user("a")
        to = position()
        call("POST", "/v1/memberships/tenant", {"user_id": user, "role": "owner"}, tenant_id=tenant)

        assert codes_of(go_back(tenant, to)) == [("memberships", "last_owner")]

    def test_an_override_of_a_plan_that_is_gone(self, call, tenant, position, go_back):
        plan = {"name": "gone", "flags": []}
        plan["flags"] = [{"flag_key": "beta", "flag_type": "boolean", "default_value": False}]
        plan = call("POST", "/v1/billing/plans", plan)["id"]
        body = {"flag_key": "beta", "flag_value": True, "plan_preset_id": plan}
        override = call("POST", "/v1/billing/flags/overrides", body, tenant_id=tenant)["id"]
        to = position()
        call("DELETE", f"/v1/billing/flags/overrides/{override}")
        call("DELETE", f"/v1/billing/plans/{plan}")

        done = go_back(tenant, to)

        assert codes_of(done) == [("overrides", "invalid")]
        assert "no such preset" in done["left_out"][0]["detail"]

    def test_what_the_billing_provider_decides(self, call, tenant, position, go_back):
        create_preset("growth")
        one = call("POST", "/v1/billing/subscriptions", SUBSCRIPTION, tenant_id=tenant)["id"]
        to = position()
        path = f"/v1/billing/subscriptions/{one}"
        call("PATCH", path, {"plan_name": "growth", "billing_city": "Other"})
        database.execute("UPDATE subscriptions SET bp_provider = 'stripe'")

        done = go_back(tenant, to)

        left = [("tenant", "follows_plan"), ("subscriptions", "managed_by_provider")]
        assert codes_of(done) == left
        found = call("GET", path)
        assert (found["plan_name"], found["billing_city"]) == ("growth", "")

    @pytest.mark.parametrize(("kind", "compared"), [("subscriptions", ["stripe"]), ("users", [])])
    def test_the_billing_provider_is_compared_afterwards(
        self, environment, api, call, tenant, position, kind, compared
    ):
        call("POST", "/v1/billing/subscriptions", SUBSCRIPTION, tenant_id=tenant)
        database.execute("UPDATE subscriptions SET bp_provider = 'stripe'")
        body = {"to": position(), "kinds": [kind], "dry_run": False}
        made = call("POST", f"/v1/tenants/{tenant}/rewind", body)
        api.sequence()

        with create_app({**environment, "STRIPE_API_KEY": "rk_test"}).app_context():
            rewind(made["id"])
            jobs = queue_named(Queue.MAINTENANCE, connection()).jobs

        begun = database.query("SELECT provider FROM billing_comparisons WHERE finished_at IS NULL")
        queued = [one.args for one in jobs if one.func_name == "app.billing.jobs.compare"]
        assert ([one.provider for one in begun], [one for (one,) in queued]) == (compared, compared)

    def test_an_erased_person(self, app, call, tenant, add_user, position, go_back):
        user = add_user("ada", "member", first_name="Ada")
        to = position()
        call("PATCH", f"/v1/users/{user}", {"first_name": "Augusta"})
        (member,) = call("GET", "/v1/memberships/tenant", tenant_id=tenant)
        path = f"/v1/memberships/tenant/{member['id']}"
        call("PATCH", f"{path}/active", is_active="false")
        erase = app.test_cli_runner().invoke(args=["users", "erase", user, "--yes"])
        assert erase.exit_code == 0, erase.output

        done = go_back(tenant, to)

        left = [("users", "erased"), ("memberships", "erasure_requested")]
        assert (done["state"], codes_of(done), done["done"]) == ("completed", left, 0)
        assert call("GET", f"/v1/users/{user}")["is_active"] is False
        assert call("GET", path)["is_active"] is False
        assert "Ada" not in str(call("GET", "/v1/users", tenant_id=tenant))
        left_out = call("GET", f"/v1/rewinds/{done['id']}")["left_out"]
        said = [{**one, "id": ""} for one in left_out]  # an id can have these three letters
        assert "ada" not in str(said).lower()

    def test_a_contact_who_was_erased(self, app, call, tenant, add_user, position, go_back):
        user = add_user("ada")
        path, email = f"/v1/tenants/{tenant}", "primary_contact_email"
        call("PATCH", path, {email: "ada@example.com", "primary_contact_name": "Ada"})
        to = position()
        bob = {email: "bob@example.com", "primary_contact_name": "Bob"}
        call("PATCH", path, {**bob, "name": "Other"})
        erase = app.test_cli_runner().invoke(args=["users", "erase", user, "--yes"])
        assert erase.exit_code == 0, erase.output

        done = go_back(tenant, to)

        assert codes_of(done) == [("tenant", "erased"), ("users", "erased")]
        found = call("GET", path)
        assert {name: found[name] for name in bob} == bob
        assert found["name"] == "Acme"

    def test_a_row_whose_creation_is_not_recorded(self, call, tenant, add_user, position, go_back):
        user = add_user("ada")
        database.execute("DELETE FROM event_outbox WHERE type = 'user.created'")
        to = position()
        call("PATCH", f"/v1/users/{user}", {"first_name": "Augusta"})

        done = go_back(tenant, to)

        assert codes_of(done) == [("users", "not_recorded")]
        assert call("GET", f"/v1/users/{user}")["is_active"] is True


class TestRefusals:
    @pytest.mark.parametrize(
        ("body", "loc"),
        [
            ({}, ["to"]),
            ({"to": "x"}, ["to"]),
            ({"to": "2999-01-01T00:00:00Z"}, ["to"]),
            ({"to": "2020-01-01T00:00:00Z"}, ["to"]),  # the tenant did not exist
            ({"kinds": ["users", "keys"]}, ["kinds", 1]),
            ({"kinds": []}, ["kinds"]),
            ({"only": []}, ["only"]),
            ({"only": ["x"]}, ["only", 0]),
            ({"dry_run": "maybe"}, ["dry_run"]),
        ],
    )
    def test_say_where(self, api, tenant, position, body, loc):
        sent = {"to": position(), **body} if body else body
        answer = api.post(f"/v1/tenants/{tenant}/rewind", token=platform_token(), json=sent)

        assert answer.status_code == 422, answer.text
        assert [one["loc"] for one in answer.get_json()["detail"]] == [["body", *loc]]

    def test_ids_that_are_of_no_row(self, api, tenant, add_user, position):
        ids = [add_user("ada"), str(uuid4())]
        sent = {"to": position(), "only": ids}

        answer = api.post(f"/v1/tenants/{tenant}/rewind", token=platform_token(), json=sent)

        assert [one["loc"] for one in answer.get_json()["detail"]] == [["body", "only", 1]]

    def test_another_version_of_the_tenant(self, api, tenant, position):
        sent = {"token": platform_token(), "json": {"to": position()}}

        path = f"/v1/tenants/{tenant}/rewind"
        answers = [api.post(path, headers={"If-Match": tag}, **sent) for tag in ('"1"', '"2"')]

        assert [answer.status_code for answer in answers] == [200, 412]


class TestStory:
    def test_a_bad_import_is_seen_and_taken_back(self, app, api, call, tenant, position, go_back):
        _, token = create_connection(database.row(Tenant, id=UUID(tenant)))
        directory = Directory(app, token)
        person = directory.add_user("ada@example.com", name={"givenName": "Ada"})
        user = call("POST", "/v1/users", person_named("hand", last_name="Right"), tenant_id=tenant)[
            "id"
        ]
        start = position()
        wrong = [
            user_line("hand", "org_acme", last_name="Wrong"),
            *(user_line(f"bad{number}", "org_acme") for number in range(120)),
            *(member_line(f"bad{number}", "admin", "org_acme") for number in range(120)),
        ]
        finish(app, post(api, as_file(*wrong)).get_json()["data"]["id"])
        position()

        changes = call("GET", f"/v1/tenants/{tenant}/changes", **{"from": start})
        shown = call("POST", f"/v1/tenants/{tenant}/rewind", {"to": start})
        done = go_back(tenant, start)

        assert len(changes) == 241
        counts = {"users": {"updated": 1, "removed": 120}, "memberships": {"removed": 120}}
        assert (shown["counts"], done["counts"], done["left_out"]) == (counts, counts, [])
        assert call("GET", f"/v1/users/{user}")["last_name"] == "Right"
        active = call("GET", "/v1/users", tenant_id=tenant, is_active="true")
        assert {one["id"] for one in active} == {user, person["id"]}
        sync = directory.patch(f"/Users/{person['id']}", replace("name.familyName", "Lovelace"))
        assert sync.status_code == 200, sync.text
        new = directory.add_user("bad1@example.com")  # nobody active has the address
        assert call("GET", f"/v1/users/{new['id']}")["is_active"] is True


def person_named(name, **values):
    return {"idp_user_id": name, "email": f"{name}@example.com", **values}


class TestCommands:
    def test_a_preview_ends_with_the_command_that_makes_its_changes(
        self, app, call, tenant, add_user, position
    ):
        run = app.test_cli_runner().invoke
        to = position()
        add_user("ada")
        position()

        shown = run(
            args=["rewinds", "create", "acme", to, "--kind", "users", "--json"], prog_name="flask"
        )
        words = shlex.split(shown.stderr.partition("makes the changes: flask ")[2])
        done = run(args=[*words, "--yes", "--json"])

        preview, rewind = (json.loads(one.stdout) for one in (shown, done))
        assert words == shlex.split(f"rewinds create acme {to} --kind users --no-dry-run")
        assert (preview["state"], rewind["state"]) == ("preview", "pending")
        assert (rewind["to_position"], rewind["kinds"]) == (preview["to_position"], ["users"])
        assert "acme" in run(args=["rewinds", "list"]).stdout

    def test_an_empty_preview_has_no_command_after_it(self, app, tenant, position):
        to = position()

        shown = app.test_cli_runner().invoke(args=["rewinds", "create", "acme", to])

        assert (shown.exit_code, shown.stderr) == (0, "Nothing would change.\n")

    def test_the_question_has_the_moment_and_the_numbers(self, app, tenant, add_user, position):
        to = position()
        add_user("ada")
        position()

        asked = app.test_cli_runner().invoke(
            args=["rewinds", "create", "acme", to, "--no-dry-run"], input="n\n"
        )

        assert f"earlier moment: acme at {to} (users: 1 removed)? [y/N]" in asked.stderr

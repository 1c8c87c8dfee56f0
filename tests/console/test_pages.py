"""The pages: who sees what, forms and their errors, lists, and what tenants typed."""

import gzip
import hashlib
import html
import re
from collections import deque
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import BytesIO
from itertools import cycle
from pathlib import Path

import pytest
from flask import request, request_started

from app import create_app
from app.auth import sessions
from app.auth.permissions import Permission, Role
from app.connections.models import DirectoryProvider
from app.console.assets import FOLDER, NAMES, get_asset
from app.console.pages.search import LABELS, PAGES
from app.core.actors import SYSTEM_CLI
from app.core.clock import utcnow
from app.flags.models import FeatureOverride
from app.memberships.models import Membership
from app.webhooks.endpoints import service as webhook_endpoints
from tests import database
from tests.console.conftest import Browser, hidden_inputs
from tests.console.world import ATTACK, addresses, create_world, one_of_each
from tests.custom_fields.fields import create_field
from tests.database import platform_transaction
from tests.factories import (
    PLATFORM_SUBJECT,
    create_limits,
    create_member,
    create_override,
    create_preset,
    create_role,
    create_subscription,
    create_tenant,
    limit_flag,
    platform_token,
    preset_flag,
)
from tests.imports.files import as_file, finish, tenant_line, user_line
from tests.search import finding


@pytest.fixture
def tenant():
    return create_tenant(name="Acme", slug="acme")


@pytest.fixture
def world(tenant):
    return create_world(tenant)


@pytest.fixture
def calls(app):
    """The paths of the API that pages call."""
    paths = []

    def note(sender, **_):
        if request.path.startswith("/v1/"):
            paths.append(request.path)

    with request_started.connected_to(note, app):
        yield paths


class TestEveryPage:
    def test_is_shown_to_a_superadmin_and_small(self, app, world, browser):
        packed = {"Accept-Encoding": "gzip"}

        pages = {path: browser.get(path, headers=packed) for path in addresses(app, world)}
        largest = max(len(page.data) for page in pages.values())

        assert [path for path, page in pages.items() if page.status_code != 200] == []
        assert len(pages) > 40
        assert largest < 20_000
        assert largest + sum(len(get_asset(name).compressed) for name in NAMES) < 60_000

    @pytest.mark.parametrize("role", list(Role))
    def test_that_links_lead_to_is_shown_to_the_role(self, app, signed_in, tenant, world, role):
        """One address of each page that a person of the tenant gets to."""
        urls, browser = app.url_map.bind("localhost"), signed_in(create_member(tenant, role)[0])
        paths = [f"/console/tenants/{tenant.id}"]
        seen = {urls.match(path, "GET")[0] for path in ("/console", "/console/choose-tenant")}

        while paths:
            path = html.unescape(paths.pop())
            endpoint, _ = urls.match(path.partition("?")[0], "GET")
            if endpoint not in seen:
                seen.add(endpoint)
                page = browser.get(path)
                assert page.status_code == 200, path
                paths += re.findall(r'<a [^>]*href="(/console[^"#]*)', page.text)

        assert len(seen) >= 10

    def test_is_refused_to_a_tenant_where_it_is_the_platforms(self, signed_in, world):
        browser = signed_in(world["user"])

        for name in ("tenants", "webhooks", "operations", "billing"):
            assert browser.get(f"/console/{name}").status_code == 403, name

    def test_that_does_not_exist_says_so(self, signed_in):
        answer = signed_in().get("/console/nothing/here")

        assert answer.status_code == 404
        assert "There is nothing here" in answer.text

    def test_has_no_transaction_open_while_it_calls_the_api(self, app, environment, world):
        """One connection is enough, for the session and then for each call of the API."""
        settings = {**environment, "DB_POOL_SIZE": "1", "DB_POOL_TIMEOUT": "1"}
        narrow = create_app(settings, with_commands=False)
        with platform_transaction():
            browser = Browser(
                narrow, sessions.start(world["user"].idp_user_id, world["idp_org_id"])
            )

        assert browser.get(f"/console/tenants/{world['tenant_id']}").status_code == 200


class TestWhatWasTyped:
    def test_in_a_notice_is_text(self, signed_in, tenant):
        field = create_field(tenant, label=ATTACK)
        browser, path = signed_in(), f"/console/tenants/{tenant.id}/custom-fields"
        browser.post(f"{path}/order", data={"move": f"{field.id} "})

        notice = browser.get(path).text.partition('class="notice"')[2].partition("</div>")[0]

        assert "&lt;script&gt;alert" in notice
        assert "<script>" not in notice

    @pytest.mark.parametrize("change", [lambda value: f"x{value}", lambda _: "zz", lambda _: ""])
    def test_in_a_cookie_by_somebody_else_is_not_shown(self, signed_in, tenant, change):
        browser, other, path = signed_in(), signed_in(), f"/console/tenants/{tenant.id}"
        browser.send(f"{path}/edit", name="Other", slug="acme")
        value = browser.client.get_cookie("console-notice").value

        for each, forged in ((browser, change(value)), (other, value)):
            each.client.set_cookie("console-notice", forged, path="/")
            answer = each.get(path)
            assert answer.status_code == 200
            assert 'class="notice"' not in answer.text


class TestGarbage:
    NAMES = """
        form_version form_key form_confirmation name slug role reason until flag_value flag_key
        default_value expires_at permissions options label field_key field_type entity_type field_id
        email idp_user_id file plan_name period policy warn_at idp_org_id group_roles_group group_roles_role
        form_before form_expected text id to department org_id next token inherits assignable_by
        replace_with membership_id group_id api_key_id resource_type resource_id group description kinds only
    """

    def test_in_forms_is_never_an_error_of_the_server(self, app, world, browser):
        """Each form has one of the texts in each field; the next forms have the others there."""
        texts = deque(["\0", "a\r\nb: c☃", "x" * 5000, "[" * 2_000, "9" * 5000])

        answers = {}
        for path in one_of_each(app, world, "POST"):
            if not path.endswith("/sign-out"):
                data = dict(zip(self.NAMES.split(), cycle(texts)))
                answers[path] = browser.post(path, data=data).status_code
                texts.rotate()

        assert {path: status for path, status in answers.items() if status >= 500} == {}

    def test_that_is_nearly_json_stands_beside_its_field(self, signed_in, tenant):
        create_preset("free", limits={"a": 1}, ratio=1.5)
        browser = signed_in()

        for key in ("limits", "ratio"):
            path = f"/console/tenants/{tenant.id}/flags/{key}/override"
            for text in ("[" * 100_000, "NaN", "Infinity", "1e999", "9" * 5000, '"\\ud800"'):
                answer = browser.send(path, flag_value=text)
                assert answer.status_code in (400, 422), (key, text[:9])

    def test_in_addresses_is_never_an_error_of_the_server(self, app, world, browser):
        names = "q cursor slug email is_active actor permission type address group user_id role_id"
        texts = deque(["%00", "%ff", "%0d%0a", "x" * 5000])

        for path in [*one_of_each(app, world), "/console/suppressions/remove"]:
            query = "&".join(map("=".join, zip(names.split(), cycle(texts))))
            assert browser.get(f"{path}?{query}").status_code < 500, path
            texts.rotate()


class TestForms:
    def test_a_change_says_so_once(self, signed_in, tenant):
        browser = signed_in(create_member(tenant, "owner")[0])
        page = f"/console/tenants/{tenant.id}"

        answer = browser.send(f"{page}/edit", name="Acme Robotics", slug="acme")

        assert (answer.status_code, answer.location) == (303, page)
        assert "The tenant was changed." in browser.get(page).text
        assert "The tenant was changed." not in browser.get(page).text
        assert database.query("SELECT name FROM tenants") == [("Acme Robotics",)]

    def test_an_error_stands_beside_its_field_and_the_input_stays(self, signed_in, tenant):
        answer = signed_in().send(
            f"/console/tenants/{tenant.id}/edit",
            name="Other",
            slug="acme",
            primary_contact_email="nobody",
        )

        assert answer.status_code == 422
        field = answer.text.partition('name="primary_contact_email"')[2].partition("</div>")[0]
        assert 'aria-invalid="true"' in field
        assert "valid email address" in field
        assert 'value="nobody"' in field
        assert 'value="Other"' in answer.text
        assert database.query("SELECT name FROM tenants") == [("Acme",)]

    def test_what_somebody_else_changed_meanwhile_is_not_overwritten(self, signed_in, tenant):
        path = f"/console/tenants/{tenant.id}/edit"
        first, second = signed_in(), signed_in()
        page = second.get(path).text
        version = re.search(r'name="form_version" value="([^"]*)"', page)[1]
        first.send(path, name="First", slug="acme")

        answer = second.post(
            path,
            data={"form_version": version.replace("&#34;", '"'), "name": "Second", "slug": "acme"},
        )

        assert answer.status_code == 412
        assert "Somebody else has changed this meanwhile." in answer.text
        assert f'href="{path}"' in answer.text  # the button that loads it
        assert 'value="Second"' in answer.text
        assert database.query("SELECT name FROM tenants") == [("First",)]

    def test_a_form_that_is_sent_twice_has_one_effect_and_shows_a_secret_once(
        self, api, tenant, browser
    ):
        path = f"/console/tenants/{tenant.id}/api-keys"
        key = re.search(r'name="form_key" value="([^"]+)"', browser.get(f"{path}/new").text)[1]
        data = {"form_key": key, "name": "sync", "permissions": ["users:read"]}

        answers = [browser.post(f"{path}/new", data=data) for _ in range(2)]

        secret = re.search(r'id="secret">([^<]+)<', answers[0].text)[1]
        assert [each.status_code for each in answers] == [201, 201]
        assert database.query("SELECT count(*) FROM api_keys") == [(1,)]
        assert api.get("/v1/users", token=secret).status_code == 200
        assert secret not in answers[1].text + browser.get(path).text
        assert 'id="secret"' not in answers[1].text

    def test_a_conflict_is_explained(self, signed_in, tenant):
        create_tenant(slug="taken")

        answer = signed_in().send(f"/console/tenants/{tenant.id}/edit", name="Acme", slug="taken")

        assert answer.status_code == 409
        assert 'role="alert"' in answer.text
        assert "Load the current values" in answer.text

    @pytest.mark.parametrize("typed", ["", "acm", "ACME", "other"])
    def test_a_dangerous_change_needs_the_slug(self, signed_in, tenant, typed):
        answer = signed_in().send(f"/console/tenants/{tenant.id}/suspend", form_confirmation=typed)

        assert answer.status_code == 422
        assert "Type acme to confirm." in answer.text
        assert database.query("SELECT is_active FROM tenants") == [(True,)]

    def test_a_tenant_is_suspended_with_a_reason_and_activated(self, tenant, browser):
        page = f"/console/tenants/{tenant.id}"

        unexplained = browser.send(f"{page}/suspend", form_confirmation="acme")
        browser.send(f"{page}/suspend", form_confirmation="acme", reason="Two unpaid invoices.")
        suspended = browser.get(page).text
        browser.send(f"{page}/activate")

        assert 'id="field-reason-error"' in unexplained.text
        assert "This tenant is suspended: Two unpaid invoices." in suspended
        assert "This tenant is suspended" not in browser.get(page).text

    def test_the_audit_trail_is_downloaded_as_filtered(self, signed_in, tenant):
        browser = signed_in(create_member(tenant, "owner")[0])
        page = f"/console/tenants/{tenant.id}"
        for name in ("Second", "Third"):
            browser.send(f"{page}/edit", name=name, slug="acme")
        create_tenant()

        link = re.search(r'href="([^"]+format=csv)"', browser.get(f"{page}/audit").text)[1]
        answer = browser.get(link)
        none = browser.get(f"{page}/audit?action=user.updated&format=csv")

        assert answer.headers["Content-Disposition"] == 'attachment; filename="audit.csv"'
        assert re.findall(r'""name"":""(\w+)""}","', answer.text) == [
            "Second", "Third", "Acme", "Second",
        ]  # fmt: skip
        assert len(none.text.splitlines()) == 1

    def test_metadata_has_an_input_for_each_type(self, signed_in, tenant):
        options = {"team": ["red", "blue"], "skills": ["sql", "python"]}
        for key, kind in (
            ("note", "long_text"), ("size", "integer"), ("rate", "decimal"), ("remote", "boolean"),
            ("hired", "date"), ("seen", "datetime"), ("team", "select"), ("skills", "multi_select"),
        ):  # fmt: skip
            create_field(tenant, field_key=key, field_type=kind, options=options.get(key))
        user, _, _ = create_member(tenant, "owner", meta_data={"size": 1, "other": "kept"})
        browser = signed_in(user)
        path = f"/console/tenants/{tenant.id}/users/{user.id}"
        same = {"hired": "2026-02-03", "team": "blue", "skills": ["sql", "python"]}
        typed = {"note": "two\r\nlines", "size": "", "rate": "1.5", "remote": "false"}

        answer = browser.send(f"{path}/metadata", **typed, **same, seen="2026-02-03T04:05:06")

        assert answer.status_code == 303, answer.text
        ((values,),) = database.query("SELECT meta_data FROM users WHERE id = :id", id=user.id)
        stored = {"note": "two\nlines", "rate": 1.5, "remote": False, "other": "kept"}
        assert values == {**stored, **same, "seen": "2026-02-03T04:05:06Z"}
        assert "kept" in browser.get(path).text

    def test_metadata_that_was_not_touched_is_not_sent(self, signed_in, tenant):
        create_field(tenant, field_key="seen", field_type="datetime")
        create_field(tenant, field_key="rate", field_type="decimal")
        stored = {"seen": "2026-02-03T04:05:06.789+02:00", "rate": "1.50"}
        user, _, _ = create_member(tenant, "owner", meta_data=stored)
        path = f"/console/tenants/{tenant.id}/users/{user.id}/metadata"

        signed_in(user).send(path, seen="2026-02-03T02:05:06", rate="1.50")

        ((values,),) = database.query("SELECT meta_data FROM users WHERE id = :id", id=user.id)
        assert values == stored

    def test_a_flag_is_granted_changed_and_ended(self, signed_in, tenant):
        create_preset("free", beta=False, ratio=1.5, limits={"a": 1})
        browser = signed_in()
        base = f"/console/tenants/{tenant.id}/flags"

        assert browser.send(f"{base}/beta/override", flag_value="true").status_code == 303
        assert browser.send(f"{base}/ratio/override", flag_value="2").status_code == 303
        assert browser.send(f"{base}/limits/override", flag_value='{"a": [2]}').status_code == 303
        wrong = browser.send(f"{base}/limits/override", flag_value="{")
        ended = browser.send(f"{base}/ratio/end")

        assert (wrong.status_code, ended.status_code) == (422, 303)
        assert "This is not JSON" in wrong.text
        found = database.query(
            "SELECT flag_key, flag_value FROM feature_overrides ORDER BY flag_key"
        )
        assert found == [("beta", True), ("limits", {"a": [2]})]

    def test_a_limit_is_typed_as_it_is_shown(self, browser, tenant):
        create_limits("free", limit_flag())
        page = f"/console/tenants/{tenant.id}/flags/calls/override"

        wrong = browser.send(page, flag_value="1,5")
        browser.send(page, flag_value="2,000,000")
        shown = browser.get(page.removesuffix("/override")).text

        assert "This is not a number." in wrong.text
        assert "<dt>Granted by</dt><dd>You</dd>" in shown
        assert "data-exact" in shown.partition("<h2>History")[2]
        assert database.row(FeatureOverride).flag_value == 2_000_000

    @pytest.mark.parametrize("page", ["members/roles?id={id}", "flags/overrides/new", "plan"])
    def test_a_required_menu_begins_without_a_choice(self, browser, tenant, page):
        create_preset("free", beta=False)
        member = create_member(tenant, "viewer")[1]
        address = f"/console/tenants/{tenant.id}/{page.format(id=member.id)}"

        shown = browser.get(address).text
        sent = browser.post(address, data={"id": str(member.id), "role": "", "plan_name": ""})

        assert '<option value="">choose …</option>' in shown
        assert " selected>" not in shown
        assert sent.status_code in (405, 422)
        assert database.row(Membership).role == "viewer"

    def test_a_trial_that_ends_soon_wants_attention(self, browser, tenant):
        create_limits("free", limit_flag())
        until = utcnow() + timedelta(days=5, minutes=1)
        page = f"/console/tenants/{tenant.id}"

        browser.send(f"{page}/plan", plan_name="free", until=f"{until:%FT%T}", reason="Pilot")
        shown = browser.get(page).text

        assert "The plan is free and ends in 5 days." in shown
        assert "The trial of free ends" in shown.partition('"attention"')[2].partition("</ul>")[0]

    def test_an_override_ends_in_one_press_and_comes_back(self, browser, tenant):
        create_preset("free", beta=False)
        page = f"/console/tenants/{tenant.id}/flags/beta"
        values = {"expires_at": "2099-12-07T21:00", "reason": "Pilot", "carry_over": "on"}
        stored = "SELECT flag_value, expires_at, reason, carry_over FROM feature_overrides"
        browser.send(f"{page}/override", flag_value="true", **values)
        before = database.query(stored)
        form = browser.get(page).text.partition(f'action="{page}/end"')[2]

        ended = browser.post(f"{page}/end", data=hidden_inputs(form))
        none = database.query(stored)
        browser.undo(page)

        assert ended.status_code == 303
        assert (none, database.query(stored)) == ([], before)

    def test_an_override_has_a_reason_which_a_setting_requires(
        self, app, tenant, browser, monkeypatch
    ):
        settings = replace(app.extensions["config"], override_reason_required=True)
        monkeypatch.setitem(app.extensions, "config", settings)
        create_preset("free", beta=False)
        page = f"/console/tenants/{tenant.id}/flags/beta"

        refused = browser.send(f"{page}/override", flag_value="true")
        granted = browser.send(f"{page}/override", flag_value="true", reason="Pilot of ours")

        assert (refused.status_code, granted.status_code) == (422, 303)
        for shown in (page, f"{page}/override", page.rpartition("/")[0]):
            assert "Pilot of ours" in browser.get(shown).text

    def test_a_change_reads_only_what_it_needs(self, world, calls, browser):
        tenant = f"/console/tenants/{world['tenant_id']}"
        ((override_id,),) = database.query("SELECT id FROM feature_overrides")

        browser.post(f"{tenant}/flags/theme/override", data={"flag_value": "dark"})
        override = list(calls)
        sent = {"form_before": '{"email": ["b@example.com"]}', "email": "a@example.com"}
        calls.clear()
        browser.post(f"{tenant}/users/{world['user_id']}/edit", data=sent)
        user = list(calls)
        calls.clear()
        sent = {"form_expected": "acme", "form_confirmation": "acme", "reason": "Unpaid"}
        browser.post(f"{tenant}/suspend", data=sent)

        assert override == ["/v1/billing/flags", f"/v1/billing/flags/overrides/{override_id}"]
        assert user == [f"/v1/users/{world['user_id']}"]
        assert calls == [f"/v1/tenants/{world['tenant_id']}/suspend"]

    def test_a_plan_is_edited_flag_by_flag(self, signed_in):
        plan = create_limits("free", preset_flag("theme", "plain"))
        browser = signed_in()
        base = f"/console/plans/{plan.id}/flags"
        limit = {"default_value": "5", "period": "day", "policy": "soft", "warn_at": "50, 90%"}

        answers = [
            browser.send(f"{base}/new?type=limit", flag_key="calls", is_locked="on", **limit),
            browser.send(f"{base}/new?type=boolean", flag_key="beta", default_value="true"),
            browser.send(f"{base}/theme/edit", default_value="rich", description="Colours"),
            browser.send(f"{base}/beta/remove", form_confirmation="beta"),
        ]
        wrong = browser.send(f"{base}/calls/edit", **{**limit, "warn_at": "500"})
        taken = browser.send(f"{base}/new?type=string", flag_key="calls", default_value="x")

        assert [each.status_code for each in answers] == [303] * 4
        assert (wrong.status_code, taken.status_code) == (422, 422)
        assert 'id="field-warn_at-error"' in wrong.text
        ((flags,),) = database.query("SELECT flags FROM plan_presets")
        assert flags == [
            {**preset_flag("theme", "rich"), "description": "Colours"},
            limit_flag("calls", 5, period="day", policy="soft", warn_at=[50, 90]),
        ]

    def test_a_change_of_a_plan_is_previewed(self, signed_in, tenant):
        plan = create_limits("free", limit_flag(most=100), preset_flag("theme", "plain"))
        create_override(tenant, plan, "theme", "rich")
        browser = signed_in()
        base = f"/console/plans/{plan.id}/flags"
        values = {"default_value": "50", "period": "none", "policy": "hard", "warn_at": "80"}

        changed = browser.send(f"{base}/calls/edit", form_preview="1", **values)
        removed = browser.get(f"{base}/theme/remove")

        assert changed.status_code == 200
        assert "1 tenant has this plan." in changed.text
        assert "becomes" in changed.text
        assert 'value="50"' in changed.text
        assert "theme: 1 override loses its flag" in removed.text
        ((flags,),) = database.query("SELECT flags FROM plan_presets")
        assert [flag["default_value"] for flag in flags] == [100, "plain"]
        assert browser.send(f"{base}/theme/remove", form_confirmation="theme").status_code == 303

    def test_a_plan_is_assigned_until_and_withdrawn(self, signed_in, tenant):
        create_limits("free", limit_flag())
        create_limits("scale", limit_flag())
        browser = signed_in()
        page = f"/console/tenants/{tenant.id}"

        past = browser.send(
            f"{page}/plan", plan_name="scale", until="2020-01-01T00:00:00", reason="Pilot"
        )
        browser.send(f"{page}/plan", plan_name="scale", until="2099-01-01T00:00:00", reason="Pilot")
        assigned = browser.get(page).text
        browser.send(f"{page}/plan/withdraw", form_confirmation="acme")

        assert past.status_code == 422
        assert 'id="field-until-error"' in past.text
        assert "The trial of" not in assigned
        assert "No contact is known." in assigned
        assert "Pilot" in assigned
        assert "plan/withdraw" in assigned
        assert "plan/withdraw" not in browser.get(page).text

    def test_an_endpoint_of_the_platform_is_created_changed_and_deleted(self, tenant, browser):
        url = "https://hooks.example.com/platform"

        created = browser.send("/console/endpoints/new", url=url, types="*")
        listed = browser.get("/console/endpoints").text
        endpoint = re.search(r'href="(/console/endpoints/[0-9a-f-]{36})"', listed)[1]
        answers = [
            browser.send(f"{endpoint}/edit", url=url, types="plan.*", is_active="on"),
            browser.send(f"{endpoint}/test", type="plan.updated"),
        ]
        rotated = browser.send(f"{endpoint}/rotate")
        page = browser.get(endpoint).text
        removed = browser.send(f"{endpoint}/delete", form_confirmation="platform")

        assert [created.status_code, rotated.status_code] == [201, 200]
        assert [each.status_code for each in (*answers, removed)] == [303] * 3
        assert "plan.updated" in page
        assert database.query("SELECT count(*) FROM webhook_endpoints") == [(0,)]

    def test_an_endpoint_of_the_platform_needs_a_session_without_an_organization(
        self, app, signed_in, tenant
    ):
        signed_in()
        with platform_transaction():
            browser = Browser(app, sessions.start(PLATFORM_SUBJECT, tenant.idp_org_id))

        answer = browser.get("/console/endpoints/new")

        assert answer.status_code == 409
        assert "Sign in without an organization" in answer.text

    def test_endpoints_of_the_platform_are_not_a_tenants(self, signed_in, tenant):
        with platform_transaction():
            endpoint, _ = webhook_endpoints.create(
                url="https://hooks.example.com/", types=["*"], actor=SYSTEM_CLI
            )
        browser = signed_in(create_member(tenant, "owner")[0])

        assert browser.get(f"/console/endpoints/{endpoint.id}").status_code == 404
        assert "hooks.example.com" not in browser.get("/console/endpoints").text


class TestUndo:
    """What a notice offers: one press that makes the opposite change."""

    def test_gives_back_what_a_form_showed(self, signed_in, tenant):
        user, membership, _ = create_member(tenant, "viewer", first_name="Ada")
        browser, base = signed_in(), f"/console/tenants/{tenant.id}"
        member, person = f"{base}/members/{membership.id}", f"{base}/users/{user.id}"
        stored = "SELECT role, first_name FROM memberships, users WHERE user_id = users.id"

        for page, values in (
            (f"{member}/role", {"role": "admin"}),
            (f"{person}/edit", {"first_name": "", "last_name": "", "email": user.email}),
        ):
            browser.send(page, **values)
            changed = database.query(stored)
            answer = browser.undo(page.rpartition("/")[0])
            assert answer.status_code == 303, answer.text
            assert changed != [("viewer", "Ada")]
            assert database.query(stored) == [("viewer", "Ada")]

    def test_of_a_change_from_one_state_to_another_works_in_both_directions(
        self, signed_in, tenant
    ):
        user, membership, _ = create_member(tenant, "member")
        field, browser = create_field(tenant), signed_in()
        base = f"/console/tenants/{tenant.id}"
        states = (
            "SELECT (SELECT is_active FROM memberships), (SELECT is_active FROM users),"
            " (SELECT is_active FROM custom_fields), (SELECT is_active FROM tenants)"
        )

        for page, action, values in (
            (f"{base}/members/{membership.id}", "end", {}),
            (f"{base}/users/{user.id}", "deactivate", {}),
            (f"{base}/custom-fields/{field.id}", "archive", {}),
            (base, "suspend", {"form_confirmation": "acme", "reason": "Unpaid"}),
        ):
            browser.send(f"{page}/{action}", **values)
            found = [list(database.query(states)[0]).count(False)]
            for _ in range(2):
                assert browser.undo(page).status_code == 303
                found.append(list(database.query(states)[0]).count(False))
            assert browser.undo(page).status_code == 303
            assert found == [1, 0, 1], page

    def test_of_a_plan_or_an_override_restores_the_former_one(self, signed_in, tenant):
        free = create_limits("free", limit_flag(), preset_flag("beta", False))
        create_limits("scale", limit_flag())
        create_override(tenant, free, "beta", True, expires_at=utcnow() + timedelta(days=9))
        browser, base = signed_in(), f"/console/tenants/{tenant.id}"
        assigned = "SELECT plan_name, reason FROM plan_assignments"
        overrides = "SELECT flag_value, expires_at IS NULL FROM feature_overrides"
        confirmed = {"form_confirmation": "acme"}

        found = []
        for page, values, shown, query in (
            ("flags/beta/override", {"flag_value": "false"}, "/flags/beta", overrides),
            ("flags/beta/end", {}, "/flags/beta", overrides),
            ("plan", {"plan_name": "scale", "reason": "Pilot"}, "", assigned),
            ("plan", {"plan_name": "scale", "reason": "Pilot"}, None, assigned),
            ("plan", {"plan_name": "free", "reason": "Other"}, "", assigned),
            ("plan/withdraw", confirmed, "", assigned),
        ):
            browser.send(f"{base}/{page}", **values)
            if shown is not None:
                assert browser.undo(f"{base}{shown}").status_code == 303, page
            found.append(database.query(query))

        pilot, beta = [("scale", "Pilot")], [(True, False)]
        assert found == [beta, beta, [], pilot, pilot, pilot]

    def test_of_a_flag_of_a_plan_removes_it_or_gives_it_back(self, browser):
        theme, calls = preset_flag("theme", "plain"), limit_flag(warn_at=[50])
        plan = create_limits("free", theme, calls)
        page = f"/console/plans/{plan.id}"

        def after(path, **values):
            """The flags after a change, after its undo, and after the undo of that."""
            browser.send(f"{page}/flags/{path}", **values)
            found = [database.query("SELECT flags FROM plan_presets")[0][0]]
            for _ in range(2):
                assert browser.undo(page).status_code == 303
                found.append(database.query("SELECT flags FROM plan_presets")[0][0])
            return found

        added = after("new?type=boolean", flag_key="beta", default_value="true")
        browser.undo(page)
        removed = after("calls/remove", form_confirmation="calls")

        assert [len(each) for each in added] == [3, 2, 3]
        assert removed == [[theme], [theme, calls], [theme]]

    def test_of_a_moved_field_moves_it_back(self, tenant, browser):
        ids = [create_field(tenant, field_key=key).id for key in ("one", "two", "three")]
        page = f"/console/tenants/{tenant.id}/custom-fields"
        stored = "SELECT id FROM custom_fields ORDER BY sort_order, created_at, id"

        found = []
        for move in (f"{ids[0]} {ids[2]}", f"{ids[2]} {ids[0]}", f"{ids[1]} "):
            browser.post(f"{page}/order", data={"move": move})
            found.append([each for (each,) in database.query(stored)])
            assert browser.undo(page).status_code == 303
            assert [each for (each,) in database.query(stored)] == ids

        assert ids not in found

    def test_overwrites_nothing_that_somebody_else_changed_meanwhile(self, signed_in, tenant):
        first, second, path = signed_in(), signed_in(), f"/console/tenants/{tenant.id}"
        first.send(f"{path}/edit", name="First", slug="acme")
        second.send(f"{path}/edit", name="Second", slug="acme")

        answer = first.undo(path)

        assert answer.status_code == 412
        assert database.query("SELECT name FROM tenants") == [("Second",)]


class TestDeliveries:
    """What support does for a customer whose receiver has failed."""

    @pytest.fixture
    def page(self, world):
        database.execute(
            "UPDATE webhook_endpoint_states SET failing_since = now() - interval '1 h'"
        )
        database.execute(
            "UPDATE webhook_deliveries SET status = 'pending', attempts = 3, response_code = 503,"
            " response_body = :body, next_attempt_at = now() + interval '2 h'",
            body=f"Down for <b>maintenance</b> {ATTACK}",
        )
        return f"/console/tenants/{world['tenant_id']}/endpoints/{world['endpoint_id']}"

    def test_of_a_failing_endpoint_say_what_it_answers(self, signed_in, page):
        browser = signed_in()

        listed = browser.get(page.rpartition("/")[0]).text
        shown = browser.get(page).text
        event = re.search(r'td class="main"><a href="([^"]+/events/evt_[^"]+)"', shown)[1]

        assert ">failing since <time" in listed
        assert ">failing since <time" in shown
        assert "waits for a retry" in shown
        assert "503" in shown
        assert "Down for &lt;b&gt;maintenance" in shown
        assert "<script>alert" not in shown
        assert "<h2>Data</h2>" in browser.get(event).text

    def test_that_wait_or_failed_are_made_now_by_one_press(self, signed_in, world, page):
        browser = signed_in(world["user"])
        action = re.search(
            r'method="post" class="actions" action="([^"]+)"', browser.get(page).text
        )

        answer = browser.post(action[1])

        assert answer.location == page
        assert "Being delivered: 1 that waited or failed" in browser.get(page).text
        found = database.query("SELECT attempts, next_attempt_at <= now() FROM webhook_deliveries")
        assert (0, True) in found

    def test_that_will_be_made_now_are_followed_and_others_are_not(self, signed_in, world, page):
        browser = signed_in(world["user"])
        later = browser.get(page).text
        browser.post(f"{page}/recover")

        first = browser.get(page).text
        question = re.search(r'hx-get="([^"]+)" hx-trigger="load delay:(\d+)s"', first)
        asked = browser.get(question[1], headers={"HX-Request": "true"})
        last = browser.get(f"{page}?asked=30")

        assert "hx-trigger" not in later.partition('id="follow"')[2].partition(">")[0]
        assert "asked=2" in asked.text.partition('id="follow"')[2].partition(">")[0]
        assert "<nav" not in asked.text
        assert "Underway" not in last.text

    def test_of_events_say_in_words_what_came_of_them(self, signed_in, world):
        browser, page = signed_in(), f"/console/webhooks/{world['event_id']}"
        browser.post(
            f"{page}/replay", data=hidden_inputs(browser.get(page).text.partition("<main")[2])
        )
        waiting = browser.get(page).text
        database.execute("UPDATE webhook_events SET status = 'succeeded', attempts = 2")

        assert "Waits for attempt 1, replayed once" in waiting
        assert "<dt>Applied" not in waiting
        assert "Applied after 2 attempts, replayed once" in browser.get(page).text

    def test_that_fail_are_linked_from_what_the_checks_find(self, signed_in, page):
        text = signed_in().get("/console/operations").text

        assert 'href="/console/endpoints?is_failing=true">Show these webhook endpoints<' in text


class TestSeveral:
    """Rows that were selected in a list are changed together."""

    def test_tenants_are_suspended_after_a_preview(self, signed_in, tenant):
        other, off = create_tenant(name="Other"), create_tenant(name="Off", is_active=False)
        browser, page = signed_in(), "/console/tenants/suspend"
        ids = [str(each.id) for each in (tenant, other, off)]

        listed = browser.get("/console/tenants").text
        preview = browser.get(page, query_string={"id": ids}).text
        unexplained = browser.post(page, data={"id": ids[:2]})
        data = {"form_key": "key", "reason": "Unpaid", "id": ids[:2], f"name_{ids[0]}": "Acme"}
        results = [browser.post(page, data=data).text for _ in range(2)]

        assert listed.count('form="bulk"') == 3
        changed, _, refused = preview.partition("1 will be refused")
        assert "2 will change" in changed
        assert "Off" not in changed
        assert "It is suspended already." in refused
        assert f'value="{ids[2]}"' not in preview
        assert 'id="field-reason-error"' in unexplained.text
        assert "Changed: 2 of 2." in results[0]
        assert results[0].count(">changed<") == results[1].count(">changed<") == 2
        found = database.query("SELECT is_active, suspension_reason FROM tenants ORDER BY name")
        assert [tuple(each) for each in found[:1]] == [(False, "Unpaid")]
        events = "SELECT count(*) FROM audit_events WHERE action = 'tenant.suspended'"
        assert database.query(events) == [(2,)]

    def test_members_get_a_role_and_one_that_fails_stops_no_other(self, signed_in, tenant):
        owner, last, _ = create_member(tenant, "owner")
        members = [create_member(tenant, "viewer")[1] for _ in range(2)]
        browser, page = signed_in(owner), f"/console/tenants/{tenant.id}/members/roles"
        ids = [str(each.id) for each in (members[0], last, members[1])]

        answer = browser.post(page, data={"id": ids, "role": "member"})

        assert "Changed: 2 of 3." in answer.text
        assert answer.text.count("→ member ") == 2
        assert answer.text.count(">refused<") == 1
        roles = database.query("SELECT role FROM memberships ORDER BY role")
        assert [each.role for each in roles] == ["member", "member", "owner"]

    def test_owners_are_refused_to_admins_before_anything_is_sent(self, signed_in, tenant):
        owner = create_member(tenant, "owner")[1]
        browser = signed_in(create_member(tenant, "admin")[0])

        page = f"/console/tenants/{tenant.id}/members/roles?id={owner.id}"

        assert "Only an owner can change an owner." in browser.get(page).text

    @pytest.mark.parametrize(("ids", "status"), [("x", 400), ("", 400), (None, 200)])
    def test_what_is_no_selection_changes_nothing(self, signed_in, tenant, ids, status):
        query = {"id": ids} if ids is not None else {}

        answer = signed_in().get("/console/tenants/suspend", query_string=query)

        assert answer.status_code == status
        assert '<button class="danger' not in answer.text

    def test_more_than_fifty_are_left_out(self, signed_in):
        ids = [str(create_tenant().id) for _ in range(52)]

        text = signed_in().get("/console/tenants/suspend", query_string={"id": ids}).text

        assert "50 will change" in text
        assert "2 of the selected are left out" in text


class TestNotes:
    def test_of_the_platform_are_shown_to_nobody_else(self, signed_in, tenant):
        browser, page = signed_in(), f"/console/tenants/{tenant.id}"

        browser.send(f"{page}/notes", text="Pays late.\n<b>")
        shown = browser.get(page).text
        tenants = signed_in(create_member(tenant, "owner")[0])

        assert "Pays late.\n&lt;b&gt;" in shown
        assert shown.index("Pays late") < shown.index("<h2>Plan</h2>")
        assert "You changed the notes on the tenant Acme<" in browser.get("/console").text
        assert "Pays late" not in tenants.get(page).text
        assert tenants.get(f"{page}/notes").status_code == 403


class TestSetup:
    def test_takes_the_roles_of_groups_in_rows(self, signed_in, tenant):
        browser = signed_in(create_member(tenant, "owner")[0])
        base = f"/console/tenants/{tenant.id}/scim"
        values = {"name": "D", "provider": "okta", "default_role": "viewer", "deactivate": "user"}
        stored = "SELECT group_roles FROM scim_connections"

        def save(page, groups, roles):
            rows = {"group_roles_group": groups, "group_roles_role": roles}
            return browser.send(page, **values, **rows, status="active")

        save(f"{base}/new", ["Finance", "", " Staff "], ["billing", "owner", "member"])
        created = database.query(stored)
        connection = re.search(rf'href="({base}/[0-9a-f-]+)"', browser.get(base).text)[1]
        page = browser.get(f"{connection}/edit").text
        twice = save(f"{connection}/edit", ["Staff", "Staff"], ["member", "billing"])
        save(f"{connection}/edit", ["", "Staff"], ["billing", "admin"])
        changed = database.query(stored)

        assert created == [({"Finance": "billing", "Staff": "member"},)]
        assert page.count('name="group_roles_group"') == 7
        assert 'value="Finance"' in page
        assert "A group is named twice." in twice.text
        assert twice.text.count('value="Staff"') == 2
        assert changed == [({"Staff": "admin"},)]
        assert browser.undo(connection).status_code == 303
        assert database.query(stored) == created

    def test_offers_the_tenants_own_roles_for_groups(self, signed_in, tenant):
        browser = signed_in(create_member(tenant, "owner")[0])
        create_role(tenant, key="clerk")
        page, at_first = (
            f"/console/tenants/{tenant.id}/scim/new",
            '<option value="viewer" selected>',
        )
        values = {"name": "D", "provider": "okta", "default_role": "viewer", "deactivate": "user"}

        text = browser.get(page).text
        browser.send(page, **values, group_roles_group=["Staff"], group_roles_role=["clerk"])

        assert (text.count('<option value="clerk">'), text.count(at_first)) == (5, 5)
        assert database.query("SELECT group_roles FROM scim_connections") == [({"Staff": "clerk"},)]

    @pytest.mark.parametrize("provider", DirectoryProvider)
    def test_of_each_directory_says_what_to_paste(self, signed_in, tenant, provider):
        browser = signed_in(create_member(tenant, "owner")[0])
        base = f"/console/tenants/{tenant.id}/scim"
        values = {"name": "D", "default_role": "viewer", "deactivate": "membership"}

        created = browser.send(f"{base}/new", provider=provider.value, **values)
        connection = re.search(rf'href="({base}/[0-9a-f-]+)"', browser.get(base).text)[1]
        later = browser.get(connection).text

        token = re.search(r'id="secret">(scim_[^<]+)<', created.text)[1]
        pasted = re.findall(r'id="paste-[^"]+">([^<]+)<', created.text)
        assert {"http://localhost/scim/v2", token} <= set(pasted)
        assert created.text.count("data-copy=") == len(pasted) + 1
        assert "http://localhost/scim/v2" in later
        assert token not in later
        steps = created.text.partition('class="setup"')[2].partition("</ol>")[0].count("<li>")
        assert steps > 3


class TestLists:
    def test_have_fifty_rows_the_newest_first_and_then_more(self, signed_in):
        for number in range(53):
            create_tenant(name=f"Number {number:02}")
        browser = signed_in()

        first = browser.get("/console/tenants").text
        more = re.search(r'id="more".*?href="([^"]+)"', first, re.DOTALL)[1].replace("&amp;", "&")
        second = browser.get(more).text

        names = re.findall(r">(Number \d+)<", first)
        assert names == [f"Number {number:02}" for number in range(52, 2, -1)]
        assert re.findall(r">(Number \d+)<", second) == ["Number 02", "Number 01", "Number 00"]

    def test_are_sorted_by_the_server_where_their_address_says_so(self, signed_in):
        for name in ("One", "Two"):
            create_tenant(name=name)
        browser = signed_in()

        newest = browser.get("/console/tenants").text
        link = re.search(r'<th[^>]*aria-sort="descending"><a href="([^"]+)"', newest)[1]
        oldest = browser.get(link).text

        assert re.findall(r">(One|Two)<", newest) == ["Two", "One"]
        assert re.findall(r">(One|Two)<", oldest) == ["One", "Two"]
        assert 'aria-sort="ascending"' in oldest

    @pytest.mark.parametrize(
        ("query", "shown"),
        [
            ("created_after=2026-03-01", ["Second", "First"]),
            ("created_after=2026-03-01&zone=Asia/Tokyo", ["Second", "First"]),
            ("created_after=2026-03-02", ["Second"]),
            ("created_after=2026-03-02&zone=Asia/Tokyo", ["Second", "First"]),
            ("created_before=2026-03-01", ["First"]),
            ("created_before=2026-03-01&zone=America/New_York", ["Second", "First"]),
            ("created_before=2026-03-01&zone=../etc/passwd", ["First"]),
            ("created_before=2026-03-02T00:00:00Z", ["First"]),
        ],
    )
    def test_are_filtered_by_days_of_the_readers_zone(self, signed_in, query, shown):
        create_tenant(name="First", created_at=datetime(2026, 3, 1, 23, tzinfo=UTC))
        create_tenant(name="Second", created_at=datetime(2026, 3, 2, 1, tzinfo=UTC))

        text = signed_in().get(f"/console/tenants?{query}").text

        assert re.findall(r">(First|Second)<", text) == shown

    def test_say_that_a_date_is_none(self, signed_in):
        for text in ("soon", "9999-12-31", "2026-13-01"):
            answer = signed_in().get(f"/console/tenants?created_before={text}")

            assert answer.status_code == 200
            assert "This is not a date." in answer.text

    def test_are_downloaded_as_csv_as_they_are_filtered(self, signed_in, world):
        create_tenant(name='=HYPERLINK("x")', slug="formula")
        browser = signed_in()

        page = browser.get("/console/tenants?slug=formula").text
        link = re.search(r'href="([^"]+format=csv[^"]*)"', page)[1].replace("&amp;", "&")
        answer = browser.get(link)
        keys = browser.get(f"/console/tenants/{world['tenant_id']}/api-keys?format=csv").text

        assert answer.headers["Content-Disposition"] == 'attachment; filename="tenants.csv"'
        assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
        head, row = answer.text.splitlines()
        assert head == '"id","name","slug","plan_name","assigned_until","is_active","created_at"'
        assert '"\'=HYPERLINK(""x"")","formula","free","","true"' in row
        assert '"Acme"' in keys.splitlines()[1]
        assert '"users:read"' in keys.splitlines()[1]

    def test_of_more_than_a_page_are_downloaded_completely(self, signed_in):
        for _ in range(120):
            create_tenant()

        text = signed_in().get("/console/tenants?format=csv").text

        assert len(text.splitlines()) == 121

    def test_each_has_its_rows_as_csv(self, app, signed_in, world):
        browser = signed_in()
        lists = [path for path in addresses(app, world) if "format=csv" in browser.get(path).text]

        answers = {path: browser.get(f"{path}?format=csv") for path in lists}

        assert len(lists) > 15
        for path, answer in answers.items():
            assert answer.mimetype == "text/csv", path
            assert len(answer.text.splitlines()) > 1, path

    def test_say_why_they_are_empty(self, browser):
        assert "There are no tenants yet." in browser.get("/console/tenants").text
        assert "Nothing matches" in browser.get("/console/tenants?slug=nobody").text

    def test_show_what_is_wrong_with_a_filter(self, signed_in):
        answer = signed_in().get("/console/tenants?is_active=perhaps&cursor=x")

        assert answer.status_code == 200
        assert "cannot be shown with these filters" in answer.text

    def test_show_what_changed(self, tenant, browser):
        browser.send(f"/console/tenants/{tenant.id}/edit", name="Renamed", slug="acme")

        text = browser.get(f"/console/tenants/{tenant.id}/audit").text

        assert re.search(r'class="before">.*Acme.*class="after">.*Renamed', text, re.DOTALL)


class TestAudit:
    def test_finds_people_and_rows_by_their_names(self, signed_in, tenant):
        browser = signed_in()
        page = f"/console/tenants/{tenant.id}"
        users = []
        for name in ("Lovelace", "Byron"):
            user = finding.create_user(tenant, first_name="Ada", last_name=name)
            email = f"{name}@example.com"
            path = f"{page}/users/{user.id}/edit"
            browser.send(path, first_name="Ada", last_name=name, email=email)
            users.append(user)
        audit = f"{page}/audit"

        one = browser.get(f"{audit}?target_id=lovelace").text
        several = browser.get(f"{audit}?target_id=ada").text
        none = browser.get(f"{audit}?actor=nobody").text

        assert one.count("<summary>changed the user") == 1
        assert str(users[0].id) in one
        for user in users:
            assert f'href="{audit}?target_id={user.id}"' in several
        assert "Nothing has this name." in none

    def test_offers_the_actions_and_types_that_there_are(self, browser, tenant):
        browser.send(f"/console/tenants/{tenant.id}/edit", name="Other", slug="acme")

        text = browser.get("/console/audit").text

        assert '<option value="tenant.plan_assigned">' in text
        assert '<option value="plan_preset">plan preset</option>' in text


class TestHeader:
    def test_names_the_product_the_environment_and_the_person(self, app, environment, tenant):
        person = create_member(tenant, "owner", first_name="Ines", last_name="Okafor")[0]
        settings = {**environment, "CONSOLE_NAME": "Acme admin", "ENVIRONMENT_NAME": "staging"}
        named = create_app(settings, with_commands=False)
        with platform_transaction():
            secret = sessions.start(person.idp_user_id, person.idp_org_id)

        path = f"/console/tenants/{tenant.id}"
        page = Browser(named, secret).get(path).text
        unnamed = Browser(app, secret).get(path).text

        header = page.partition("<header")[2].partition("</header>")[0]
        assert "Acme admin" in header
        assert '<span class="badge accent">staging</span>' in header
        assert "Ines Okafor</button>" in header
        assert '<span class="badge ">owner</span>' in header
        assert "Control plane</a>" in unnamed


class TestStart:
    def test_shows_the_newest_tenants_and_changes_to_a_superadmin(self, signed_in, calls):
        tenants = [create_tenant(name=f"Tenant no. {number}") for number in range(12)]
        browser = signed_in()
        oldest = tenants[0]
        browser.send(f"/console/tenants/{oldest.id}/edit", name="Renamed", slug=oldest.slug)
        calls.clear()

        text = browser.get("/console").text
        newest, _, changes = text.partition("<h2>Newest changes</h2>")

        links = re.findall(r'href="/console/tenants/([0-9a-f-]{36})"', newest)
        assert links == [str(each.id) for each in reversed(tenants[2:])]
        assert "changed the tenant" in changes
        assert "Renamed" in changes
        for more in ("/console/tenants", "/console/operations", "/console/audit"):
            assert f'<a href="{more}"' in text.partition("<main")[2]
        assert 'hx-get="/console/work"' in text
        assert calls == ["/v1/tenants", "/v1/audit-events"]

    def test_shows_what_wants_attention_and_leads_to_its_list(self, signed_in, tenant):
        late = create_subscription(tenant, bp_status="past_due")
        create_subscription(create_tenant(), bp_status="active")
        browser = signed_in()

        (link,) = re.findall(
            r'href="([^"]*)"><span class="figure">1</span> Past-due subscriptions',
            browser.get("/console/work").text,
        )
        listed = browser.get(html.unescape(link)).text

        assert re.findall(r"/subscriptions/([0-9a-f-]{36})", listed) == [str(late.id)]

    def test_has_words_and_a_list_for_each_number(self, api):
        numbers = api.get("/v1/operations/work", token=platform_token()).get_json()["data"]

        assert {one["name"] for one in numbers} == set(LABELS)
        assert {one["list"].partition("?")[0] for one in numbers} == set(PAGES)

    @pytest.mark.parametrize("role", list(Role))
    def test_leads_people_to_their_own_tenant(self, signed_in, tenant, role):
        browser = signed_in(create_member(tenant, role)[0])

        answer = browser.get("/console")

        assert (answer.status_code, answer.location) == (303, f"/console/tenants/{tenant.id}")
        assert browser.get(answer.location).status_code == 200

    @pytest.mark.parametrize("query", ["a", "acme"])
    def test_shows_nothing_new_beside_a_search(self, signed_in, tenant, calls, query):
        text = signed_in().get(f"/console?q={query}").text

        assert "Newest" not in text
        assert "autofocus" not in text
        assert set(calls) <= {"/v1/search"}


class TestImports:
    def test_shows_what_a_file_made_and_the_faults_of_its_lines(self, app, browser):
        lines = (tenant_line(), user_line("ada"), user_line("bo", email=ATTACK), b"{")
        file = (BytesIO(as_file(*lines)), "people.jsonl")

        sent = browser.send("/console/imports/new", file=file)
        waiting = browser.get(sent.location).text
        finish(app, sent.location.rpartition("/")[2])
        page = browser.get(sent.location).text

        assert "hx-get=" in waiting.partition('id="follow"')[2].partition(">")[0]
        assert 'id="follow" class="quiet"></div>' in page
        made, _, faults = page.partition("<h2>Faults</h2>")
        made = made.partition("<h2>What it made</h2>")[2]
        links = [html.unescape(each) for each in re.findall(r'href="([^"]+)">1<', made)]
        assert [link.partition("?")[0] for link in links] == ["/console/tenants", "/console/users"]
        assert "Name of org" in browser.get(links[0]).text
        assert "ada@example.com" in browser.get(links[1]).text
        assert re.findall(r'class="right number">(\d)</td>', faults) == ["3", "4"]
        assert "valid email address" in faults
        assert "<script>alert" not in page

    def test_only_checks_a_file(self, browser):
        file = (BytesIO(as_file(tenant_line(), user_line("bo", email=ATTACK))), "people.jsonl")

        text = browser.send("/console/imports/new", file=file, form_preview="1").text

        assert "1 of 2 lines have faults." in text
        assert "valid email address" in text
        assert "<script>alert" not in text
        assert database.query("SELECT id FROM tenants UNION ALL SELECT id FROM imports") == []

    @pytest.mark.parametrize("content", [None, b""])
    def test_needs_a_file(self, browser, content):
        sent = {} if content is None else {"file": (BytesIO(content), "empty.jsonl")}

        answer = browser.send("/console/imports/new", **sent)

        assert answer.status_code == 422
        assert "Choose a file that is not empty." in answer.text

    def test_takes_as_large_a_file_as_the_api(self, browser):
        file = (BytesIO(b" " * 2 * 1024 * 1024), "blank.jsonl")

        assert browser.send("/console/imports/new", file=file).status_code == 303


class TestSearch:
    def test_leads_to_the_pages_of_what_was_found(self, signed_in):
        found = finding.create_tenant(name="Acme")
        user = finding.create_user(found, first_name="Ada", last_name="Acmeson")

        text = signed_in().get("/console?q=acme").text

        assert f'href="/console/tenants/{found.id}"' in text
        assert f'href="/console/tenants/{found.id}/users/{user.id}"' in text


class TestAssets:
    def test_are_what_their_projects_published(self):
        table = (FOLDER / "vendor" / "README.md").read_text()
        listed = re.findall(r"^\| (\S+) \| .* \| ([0-9a-f]{64}) \|$", table, re.MULTILINE)
        found = {
            path.name.removesuffix(".gz"): hashlib.sha256(
                gzip.decompress(path.read_bytes())
            ).hexdigest()
            for path in (FOLDER / "vendor").glob("*.gz")
        }

        assert dict(listed) == found
        for name in found:
            licence = Path(FOLDER, "vendor", f"{name.partition('.')[0]}.LICENSE.txt")
            assert licence.stat().st_size > 500

    def test_are_sent_compressed_and_cached_for_a_year(self, anonymous):
        page = anonymous.get("/console/sign-in").text
        url = re.search(r'src="([^"]+htmx[^"]+)"', page)[1]

        packed = anonymous.get(url, headers={"Accept-Encoding": "gzip, br"})
        plain = anonymous.get(url, headers={"Accept-Encoding": "identity"})

        assert packed.headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(packed.data) == plain.data
        assert "immutable" in packed.headers["Cache-Control"]

    def test_of_another_version_are_not_cached(self, anonymous):
        answer = anonymous.get("/console/assets/another/htmx.min.js")

        assert answer.status_code == 200
        assert answer.headers["Cache-Control"] == "no-store"

    @pytest.mark.parametrize("name", ["../access.py", "console.py", "vendor", "pico.min.css.gz"])
    def test_nothing_else_is_sent(self, anonymous, name):
        assert anonymous.get(f"/console/assets/x/{name}").status_code in (303, 404)


class TestNavigation:
    @pytest.mark.parametrize("role", ["superadmin", "owner"])
    def test_marks_the_part_that_each_page_belongs_to(self, app, signed_in, world, role):
        browser = signed_in(None if role == "superadmin" else world["user"])
        menu = "tabs" if role == "superadmin" else "side"

        marked = {}
        for path in addresses(app, world, of_tenant=True):
            answer = browser.get(path)
            if answer.status_code == 200:
                nav = answer.text.partition(f'class="{menu}"')[2].partition("</nav>")[0]
                marked[path] = nav.count("aria-current")

        assert {path: each for path, each in marked.items() if each != 1} == {}
        assert len(marked) > 30


class TestBilling:
    def test_a_price_is_previewed_changed_and_given_back(self, browser, tenant):
        for name in ("free", "team"):
            create_limits(name, limit_flag("seats"))
        item = {"id": "si_1", "price": "price_1", "lookup_key": "", "quantity": 5}
        known = {"bp_provider": "stripe", "plan_name": "free", "items": [item]}
        create_subscription(tenant, bp_subscription_id="sub_5", **known)
        base = "/console/billing/prices"
        stored = "SELECT plan_name, sort_order FROM plan_prices WHERE NOT is_deleted"
        price = {"provider": "stripe", "price_id": "price_1", "plan_name": "team"}

        preview = browser.send(f"{base}/new", **price, form_preview="1")
        assert "Would change 1 subscription.</strong>" in preview.text
        assert "sub_5: free becomes team" in preview.text
        assert database.query(stored) == []

        assert browser.send(f"{base}/new", **price).status_code == 303
        ((price_id,),) = database.query("SELECT id FROM plan_prices")
        browser.send(f"{base}/{price_id}/edit", plan_name="free", sort_order="3")
        assert database.query(stored) == [("free", 3)]
        assert browser.undo("/console/billing").status_code == 303
        assert database.query(stored) == [("team", 0)]
        browser.send(f"{base}/{price_id}/delete")
        assert database.query(stored) == []
        assert browser.undo("/console/billing").status_code == 303
        assert database.query(stored) == [("team", 0)]

    @pytest.mark.parametrize(
        ("typed", "said"),
        [
            ("Nobody", "No tenant has this name."),
            ("Acme", "Which of these? Acme"),
            ("", "No tenant"),
        ],
    )
    def test_a_tenant_is_one_that_the_name_finds(self, browser, typed, said):
        for slug in ("acme-1", "acme-2"):
            finding.create_tenant(name=f"Acme {slug[-1]}", slug=slug)
        customer = {"provider": "stripe", "customer_id": "cus_1"}
        path = "/console/billing/customers/new"

        answer = browser.send(path, **customer, tenant_id=typed)
        assert answer.status_code == 422
        assert said in answer.text
        assert browser.send(path, **customer, tenant_id="acme-2").status_code == 303

        listed = browser.get("/console/billing/customers").text
        assert "Acme 2" in listed
        assert "an operator" in listed

    def test_what_a_provider_manages_is_changed_there(self, app, environment, tenant):
        """People of the tenant are told so; a superadmin can cancel all the same."""
        member, _, _ = create_member(tenant, "owner")
        settings = {**environment, "WEBHOOK_SECRETS_STRIPE": "whsec_one"}
        receiving = create_app(settings, with_commands=False)
        trial_end = utcnow() + timedelta(days=3, hours=1)
        known = {"bp_provider": "stripe", "currency": "JPY", "trial_end": trial_end}
        one = create_subscription(tenant, is_free_trial=True, bp_status="trialing", **known)
        page = f"/console/tenants/{tenant.id}/subscriptions/{one.id}"
        platform_token()
        with platform_transaction():
            owner = Browser(receiving, sessions.start(member.idp_user_id, tenant.idp_org_id))
            operator = Browser(receiving, sessions.start(PLATFORM_SUBJECT, None))

        shown = owner.get(page).text
        assert "Stripe manages this subscription" in shown
        assert "4,900 JPY" in shown
        assert ">in 3 days</time>" in shown
        assert "Record a cancellation" not in shown
        assert owner.send(f"{page}/cancel", form_confirmation=tenant.slug).status_code == 409
        assert "Cancel here all the same" in operator.get(page).text
        assert operator.send(f"{page}/cancel", form_confirmation=tenant.slug).status_code == 303
        for listed in (f"/console/tenants/{tenant.id}/subscriptions", "/console/subscriptions"):
            assert "4,900 JPY" in operator.get(listed).text


class TestShortWays:
    def test_lead_from_a_name_to_the_form_of_the_tenant(self, browser):
        tenant = finding.create_tenant(name="Acme", slug="acme")
        create_limits("free", limit_flag("calls"))
        path = "/console/tenants/choose/grant_flag"

        unknown = browser.get(f"{path}?tenant_id=Nobody")
        chosen = browser.get(f"{path}?tenant_id=acme").location
        flag = browser.get(f"{chosen}?key=calls").location

        assert unknown.status_code == 422
        assert "No tenant has this name." in unknown.text
        assert flag == f"/console/tenants/{tenant.id}/flags/calls/override"
        assert browser.get("/console/tenants/choose/delete_tenant").status_code == 404


class TestApiKeys:
    def test_all_of_reading_stands_for_each_permission_to_read(self, browser):
        values = {"name": "reports", "permissions": ["all:read", "usage:write"]}

        assert browser.send("/console/api-keys/new", **values).status_code == 201

        ((permissions,),) = database.query("SELECT permissions FROM api_keys")
        reads = {str(each) for each in Permission if each.endswith(":read")}
        assert set(permissions) == reads | {"usage:write"}

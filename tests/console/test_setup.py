"""Setup links in a browser: who opens them, what they open, and when they end."""

import re
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from itertools import product
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from app import create_app
from app.audit.models import AuditEvent
from app.auth import guard
from app.auth.setup_sessions import PATHS, SetupClaims
from app.console.access import csrf_token
from app.core.actors import SYSTEM_CLI
from app.core.clock import utcnow
from app.core.db.writes import writes
from app.extensions import db
from app.log_streams import work as log_streams
from app.setup_links import service
from app.setup_links.models import SetupLink, SetupScope
from app.tenants import service as tenants
from app.tenants.models import Tenant
from tests import database
from tests.concurrency import at_once
from tests.console.conftest import Browser, hidden_inputs
from tests.console.test_sessions import FOREIGN
from tests.console.world import address_of, create_world, pages_of
from tests.database import platform_transaction
from tests.document import operations
from tests.factories import (
    create_domain,
    create_limits,
    create_log_stream,
    create_sso_connection,
    create_tenant,
    create_webhook_endpoint,
    limit_flag,
)
from tests.log_streams.targets import Hec, running
from tests.scim.directory import Directory, create_connection
from tests.webhooks.deliveries.receiving import receiver, sender, wait_until

HOME = "/console/setup"
COOKIE = "console-setup"


def create_link(tenant, *scopes, hours=72, **values):
    """A new link; its token."""
    with platform_transaction():
        return service.create(
            tenant.id,
            scopes or list(SetupScope),
            lifetime=timedelta(hours=hours),
            actor=SYSTEM_CLI,
            **values,
        )[1]


class SetupBrowser(Browser):
    """It sends the token of a page that it has loaded with each form."""

    def post(self, path, *, data=None, **options):
        cookie = self.client.get_cookie(COOKIE)
        token = csrf_token(cookie.value.partition(".")[0]) if cookie else ""
        return self.open("POST", path, data={"csrf_token": token, **(data or {})}, **options)


def open_link(app, token, browser=None):
    browser = browser or SetupBrowser(app)
    answer = browser.post(f"{HOME}/open", data={"token": token})
    return browser, answer


@contextmanager
def application(environment, **settings):
    """An application of its own."""
    made = create_app({**environment, **settings})
    yield made
    with made.app_context():
        db.engine.dispose()


@pytest.fixture
def opened(app, tenant):
    """A browser that has opened a link of the tenant with all scopes."""
    browser, answer = open_link(app, create_link(tenant))
    assert (answer.status_code, answer.location) == (303, HOME)
    return browser


class TestOpening:
    def test_asks_first_and_then_belongs_to_the_browser(self, app, tenant):
        token, browser = create_link(tenant), Browser(app)

        pages = [browser.get(f"{HOME}/open?token={token}") for _ in range(2)]
        assert {page.status_code for page in pages} == {200}
        assert database.row(SetupLink).opened_at is None
        _, answer = open_link(app, token, browser)

        assert browser.get(HOME).status_code == 200
        assert tenant.name in browser.get(HOME).text
        cookie = next(each for each in answer.headers.getlist("Set-Cookie") if COOKIE in each)
        assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(cookie.split("; "))
        assert "Max-Age=604800" in cookie  # the longest that a link lives
        again = browser.get(f"{HOME}/open?token={token}")
        assert (again.status_code, again.location) == (303, HOME)
        assert open_link(app, token, browser)[1].location == HOME

    def test_of_a_second_browser_needs_a_new_link(self, app, tenant, opened):
        token = create_link(tenant)
        open_link(app, token)

        second, answer = open_link(app, token)

        assert answer.status_code == 403
        assert "another browser has opened it" in answer.text
        assert second.get(HOME).location.startswith(f"{HOME}/open")
        assert opened.get(HOME).status_code == 200

    def test_of_several_links_in_one_browser_changes_between_them(self, app, tenant):
        other = create_tenant(name="Initech")
        tokens, browser = [create_link(one) for one in (tenant, other)], Browser(app)

        for token in tokens:
            open_link(app, token, browser)
        second = browser.get(HOME).text
        back = browser.get(f"{HOME}/open?token={tokens[0]}")

        assert "Initech" in second
        assert (back.status_code, back.location) == (303, HOME)
        assert tenant.name in browser.get(HOME).text
        assert open_link(app, tokens[1], browser)[1].status_code == 303
        assert "Initech" in browser.get(HOME).text

    def test_of_another_link_makes_the_pages_of_the_first_one_stale(self, app, tenant):
        """A form that was filled in for one customer does not change another one."""
        browser, _ = open_link(app, create_link(tenant))
        page = browser.get(f"{HOME}/webhook-endpoints/new").text
        open_link(app, create_link(create_tenant(name="Initech")), browser)
        form = hidden_inputs(page.partition('class="head"')[2])

        answer = browser.post(
            f"{HOME}/webhook-endpoints/new",
            data={**form, "url": "https://acme.example", "types": "*"},
        )

        assert answer.status_code == 403
        assert "opened another setup link" in answer.text
        assert database.query("SELECT id FROM webhook_endpoints") == []

    def test_by_many_browsers_at_once_is_one_session(self, app, tenant):
        token = create_link(tenant)

        answers = at_once([lambda: open_link(app, token)[1].status_code] * 10)

        assert sorted(answers) == [303] + [403] * 9

    @pytest.mark.parametrize("change", ["revoked_at = now()", "expires_at = now()"])
    def test_of_a_link_that_has_ended_is_refused(self, app, tenant, change):
        token = create_link(tenant)
        database.execute(f"UPDATE setup_links SET {change}")

        assert open_link(app, token)[1].status_code == 403

    @pytest.mark.parametrize("token", ["", "setup_x", "é", "x" * 100_000])
    def test_of_an_unknown_link_is_refused(self, app, token):
        assert open_link(app, token)[1].status_code == 403

    def test_of_a_suspended_tenant_is_refused(self, app, tenant):
        token = create_link(tenant)
        database.execute("UPDATE tenants SET is_active = false")

        assert open_link(app, token)[1].status_code == 403

    def test_from_another_site_is_refused(self, app, tenant):
        token = create_link(tenant)

        answer = Browser(app).post(
            f"{HOME}/open", data={"token": token}, headers={"Sec-Fetch-Site": "cross-site"}
        )

        assert answer.status_code == 403
        assert database.row(SetupLink).opened_at is None

    def test_stores_a_digest_and_is_audited(self, opened):
        secret = opened.client.get_cookie(COOKIE).value

        link = database.row(SetupLink)
        created, event = database.rows(AuditEvent)
        assert secret not in repr((link, created, event))
        assert link.session_digest not in repr(event)
        assert (event.action, event.actor) == ("setup_link.opened", f"setup_link:{link.id}")
        assert event.tenant_id == link.tenant_id
        assert list(event.after) == ["opened_at"]


class TestEnd:
    @pytest.mark.parametrize("change", ["revoked_at = now()", "expires_at = now()"])
    def test_revocation_and_the_clock_end_it_at_the_next_request(self, opened, change):
        database.execute(f"UPDATE setup_links SET {change}")

        answer = opened.get(HOME)

        assert (answer.status_code, urlsplit(answer.location).path) == (303, f"{HOME}/open")
        assert "This setup has ended" in opened.get(answer.location).text

    @pytest.mark.parametrize("by", ["set_active", "suspend", "update_read"])
    def test_suspension_ends_it_for_ever_and_links_that_nobody_opened(
        self, app, tenant, opened, by
    ):
        unopened = create_link(tenant)
        row = database.row(Tenant)
        with platform_transaction():
            if by == "update_read":
                with writes() as into:
                    tenants.update_read(row, {"is_active": False}, actor=SYSTEM_CLI, into=into)
            else:
                getattr(tenants, by)(row.id, "late" if by == "suspend" else False, actor=SYSTEM_CLI)
        with platform_transaction():
            tenants.set_active(tenant.id, True, actor=SYSTEM_CLI)

        assert opened.get(HOME).status_code == 303
        assert open_link(app, unopened)[1].status_code == 403
        revoked = database.rows(AuditEvent, action="setup_link.revoked")
        assert {each.target_id for each in revoked} == {
            str(each.id) for each in database.rows(SetupLink)
        }
        assert "digest" not in repr(revoked)
        assert all(each.revoked_at for each in database.rows(SetupLink))

    def test_days_without_use_do_not_end_it(self, opened):
        database.execute(
            "UPDATE setup_links SET opened_at = :at", at=utcnow() - timedelta(hours=60)
        )

        assert opened.get(HOME).status_code == 200


def created(opened, path, **values):
    """Send the form of a new row; the page that shows its secret, and the row's page."""
    page = opened.send(f"{HOME}/{path}/new", **values)
    assert page.status_code == 201, page.text
    return page.text, re.search(rf'action="({HOME}/{path}/[0-9a-f-]+)/test"', page.text)[1]


class TestOverview:
    def test_shows_the_tasks_of_its_scopes_and_their_states(self, app, tenant):
        browser, _ = open_link(app, create_link(tenant, SetupScope.SCIM))

        before = browser.get(HOME).text
        created(browser, "scim", provider="okta")
        waiting = browser.get(HOME).text
        database.execute("UPDATE scim_connections SET status = 'active'")
        done = browser.get(HOME).text

        assert "Connect your directory" in before
        assert "Receive events" not in before
        assert [
            state in page
            for state, page in (
                ("not begun", before),
                ("waits for its test", waiting),
                ("done", done),
            )
        ] == [True] * 3


class TestDirectory:
    def test_is_activated_once_it_has_reached_the_service(self, app, opened):
        text, page = created(opened, "scim", provider="entra")
        token = re.search(r"scim_[A-Za-z0-9_-]{30,}", text)[0]
        directory = Directory(app, token)
        assert "Tenant URL" in text
        assert token not in opened.get(page).text
        assert "has sent no request" in opened.get(page).text
        assert directory.post("/Users", {"userName": "ada"}).status_code == 403

        directory.get("/Users")
        assert "sent its last request" in opened.get(page).text
        answer = opened.post(f"{page}/test")

        assert (answer.status_code, answer.location) == (303, page)
        assert directory.post("/Users", {"userName": "ada"}).status_code == 201
        event = database.row(AuditEvent, action="scim_connection.updated")
        assert event.actor == f"setup_link:{database.row(SetupLink).id}"

    def test_is_activated_by_the_services_own_test(self, opened):
        _, page = created(opened, "scim", provider="jumpcloud")

        opened.post(f"{page}/test")

        assert database.query("SELECT status FROM scim_connections") == [("active",)]

    def test_stays_as_it_is_if_the_test_fails(self, opened, tenant):
        create_limits("free", limit_flag("seats", 0))
        _, page = created(opened, "scim", provider="okta")

        answer = opened.post(f"{page}/test")

        assert "hx-get" in opened.get(page).text
        assert "hx-get" not in answer.text  # nothing answers a GET of this address
        assert "The test has failed" in answer.text
        assert "A user is created" in answer.text
        assert database.query("SELECT status FROM scim_connections") == [("testing",)]

    def test_that_was_refused_is_not_yet_tested(self, app, opened):
        create_limits("free", limit_flag("seats", 0))
        text, page = created(opened, "scim", provider="okta")
        Directory(app, re.search(r"scim_[A-Za-z0-9_-]{30,}", text)[0]).post("/Users", {})

        assert "The test has failed" in opened.post(f"{page}/test").text

    def test_gets_another_token(self, app, opened):
        text, page = created(opened, "scim", provider="okta")
        first = re.search(r"scim_[A-Za-z0-9_-]{30,}", text)[0]

        rotated = opened.post(f"{page}/token").text
        second = re.search(r"scim_[A-Za-z0-9_-]{30,}", rotated)[0]

        statuses = [Directory(app, one).get("/Users").status_code for one in (first, second)]
        assert statuses == [401, 200]

    def test_that_is_switched_off_is_not_activated(self, opened, tenant):
        _, page = created(opened, "scim", provider="okta")
        database.execute("UPDATE scim_connections SET status = 'disabled'")

        opened.post(f"{page}/test")

        assert database.query("SELECT status FROM scim_connections") == [("disabled",)]


class TestEndpoint:
    def test_is_activated_once_a_test_has_succeeded(self, app, opened):
        with receiver(status=500) as hook:
            text, page = created(opened, "webhook-endpoints", url=hook.url, types="*")
            assert "whsec_" in text
            assert "whsec_" not in opened.get(page).text
            opened.post(f"{page}/test")
            with sender(app):
                wait_until(lambda: "failed" in opened.get(page).text)
                assert "Activate" not in opened.get(page).text
                refused = opened.post(f"{page}/activate", follow_redirects=True)
                hook.status = 200
                opened.post(f"{page}/test")
                wait_until(lambda: "Activate" in opened.get(page).text)

        assert "No test has succeeded yet" in refused.text
        stored = "SELECT is_active, disabled_reason FROM webhook_endpoints"
        assert database.query(stored) == [(False, "untested")]
        opened.post(f"{page}/activate")
        assert database.query(stored) == [(True, None)]

    def test_gets_another_secret(self, opened):
        text, page = created(opened, "webhook-endpoints", url="https://acme.example", types="*")

        again = opened.post(f"{page}/secret").text

        first, second = (re.search(r"whsec_[\w+/=]{30,}", each)[0] for each in (text, again))
        assert first != second
        assert "Replace the secret" in opened.get(page).text
        assert "whsec_" not in opened.get(page).text

    def test_that_the_owner_has_switched_off_is_not_activated(self, opened, tenant):
        endpoint = create_webhook_endpoint(tenant.id)
        database.execute("UPDATE webhook_endpoints SET is_active = false")
        database.execute("UPDATE webhook_deliveries SET status = 'succeeded'")
        page = f"{HOME}/webhook-endpoints/{endpoint.id}"

        opened.post(f"{page}/activate")

        assert "switched off" in opened.get(page).text
        assert database.query("SELECT is_active FROM webhook_endpoints") == [(False,)]

    def test_shows_errors_beside_their_fields(self, opened):
        page = opened.send(f"{HOME}/webhook-endpoints/new", url="ftp://x", types="x.y")

        assert page.status_code == 422
        assert page.text.count('aria-invalid="true"') == 2
        assert "line 1: no event has this type" in page.text


class TestLogStream:
    def test_is_activated_once_a_test_has_succeeded(self, app, opened):
        with running(Hec()) as hec:
            chosen = opened.get(f"{HOME}/log-streams/new?kind=splunk")
            values = {"url": hec.url, "token": hec.token, "index": "other", "types": "user.*"}
            values |= {"format": "native"}
            answer = opened.send(chosen.location, **values)
            page = answer.location
            (stream,) = database.query("SELECT id, state, types FROM log_streams")
            opened.post(f"{page}/test")
            followed = opened.get(f"{page}?tested=None").text
            run_test(app, stream)
            failed = opened.get(page).text
            refused = opened.post(f"{page}/activate", follow_redirects=True).text
            hec.indexes = ("other",)
            run_test(app, stream)
            passed = opened.get(page).text
            opened.post(f"{page}/activate")

        assert (stream.state, stream.types) == ("paused", ["user.*"])
        assert "Underway" in followed
        assert "There is no such index" in failed
        assert "Activate" not in failed
        assert "No test has succeeded yet" in refused
        assert "Activate" in passed
        assert hec.token not in passed
        assert database.query("SELECT state FROM log_streams") == [("active",)]
        event = database.row(AuditEvent, action="log_stream.resumed")
        assert event.actor == f"setup_link:{database.row(SetupLink).id}"

    def test_that_the_owner_has_paused_is_not_activated(self, opened, tenant):
        stream = create_log_stream(tenant.id)
        database.execute("UPDATE log_stream_progress SET tested_at = now(), written_at = now()")

        opened.post(f"{HOME}/log-streams/{stream.id}/activate")

        assert database.query("SELECT state FROM log_streams") == [("paused",)]


def run_test(app, stream):
    with app.app_context():
        log_streams.test(str(stream.id))


class TestDomain:
    def test_shows_the_record_to_set_and_what_came_of_it(self, opened):
        answer = opened.send(f"{HOME}/domains/new", name="Bücher.example")
        page = answer.location
        (domain,) = database.query("SELECT * FROM domains")

        text = opened.get(page).text
        assert (domain.name, domain.join) == ("xn--bcher-kva.example", "off")
        assert domain.record_name in text
        assert domain.record_value in text
        assert "Bücher.example".lower() in text
        assert '<div id="notice" role="status"></div>' in text
        assert opened.post(f"{page}/verify").location == page
        assert "Underway" in opened.get(page).text
        database.execute("UPDATE domains SET error = 'other_value', checked_at = now()")
        assert "the record has another value" in opened.get(page).text
        database.execute("UPDATE domains SET state = 'verified', error = NULL")
        assert "The domain is verified" in opened.get(page).text

    def test_of_a_name_that_is_there_offers_no_values_to_load(self, opened):
        for status in (303, 409):
            page = opened.send(f"{HOME}/domains/new", name="acme.example")
            assert page.status_code == status

        assert "The tenant has this domain already" in page.text
        assert "Load the current values" not in page.text


class TestSingleSignOn:
    def test_leads_to_the_providers_pages_and_shows_connections(self, environment, tenant):
        create_sso_connection(tenant.id, name="Acme's Okta", state="active")
        portal = "https://portal.example.com/{org_id}?tenant={tenant_id}"
        with application(environment, SSO_PORTAL_URL=portal) as app:
            browser, _ = open_link(app, create_link(tenant, SetupScope.SSO))

            text = browser.get(f"{HOME}/sso").text
            overview = browser.get(HOME).text

        expected = f"https://portal.example.com/{tenant.idp_org_id}?tenant={tenant.id}"
        assert f'href="{expected}"' in text
        assert "Acme&#39;s Okta" in text
        assert "done" in overview

    def test_without_an_address_says_who_does_it(self, opened):
        assert "sets up single sign-on with you" in opened.get(f"{HOME}/sso").text


def setup_rules(app, method="GET"):
    """The rules of the pages that a setup link opens."""
    return [
        rule
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith(HOME)
        and not rule.rule.endswith(("/open", "<path:rest>"))
        and (method == "GET" or method in rule.methods)
    ]


def setup_page(rule, ids):
    """The address of a page, with these ids."""
    return address_of(rule, {"name": "scim", "kind": "splunk", **ids})


class TestReach:
    """A session reaches the setup pages of its tenant, and nothing else."""

    def test_no_other_page_of_the_console(self, app, tenant, opened):
        world = create_world(tenant)
        secret = opened.client.get_cookie(COOKIE).value
        planted = Browser(app, secret)
        planted.client.set_cookie(COOKIE, secret, path="/")
        others = [
            rule
            for method in ("GET", "POST")
            for rule in pages_of(app, method)
            if not rule.rule.startswith(HOME) and not re.search("assets|brand", rule.rule)
        ]

        reached = {}
        for rule in others:
            path = re.sub(
                r"<.*>",
                "x",
                address_of(rule, {"digest": "x", "name": "x", "rest": "x", "upload": "x", **world}),
            )
            for browser in (opened, planted):
                for method in {"GET", "POST"} & rule.methods:
                    reached[method, path] = browser.open(method, path).location or ""

        leading = {place.partition("?")[0] for place in reached.values()}
        assert len(reached) > 100
        assert {place for place in leading if not place.startswith("/console/sign-in")} <= {""}
        pages = {path for (_, path), place in reached.items() if not place}
        assert {path for path in pages if "sign-in" not in path} == set()

    @pytest.mark.parametrize("scope", [None, *SetupScope])
    def test_no_other_call_of_the_api(self, app, tenant, scope):
        """With the claims that only the console can give to a call."""
        browser, _ = open_link(app, create_link(tenant, *([scope] if scope else [])))
        claims = SetupClaims(secret=browser.client.get_cookie(COOKIE).value)
        document = app.test_client().get("/openapi.json").get_json()
        allowed = PATHS[scope] if scope else sum(PATHS.values(), ())
        found = [one for one in operations(document) if one.permission is not None]

        wrong = []
        for one in found:
            answer = app.test_client().open(
                one.path_of("x"),
                method=one.method.upper(),
                json=one.body,
                query_string=one.query,
                environ_overrides={guard.CLAIMS: claims},
            )
            is_own = one.path.startswith(allowed)
            if not is_own and answer.status_code != 403:
                wrong.append((one.name, answer.status_code))
            if is_own and answer.status_code in (401, 500):
                wrong.append((one.name, answer.status_code))

        assert wrong == []
        assert len(found) > 100

    def test_no_call_that_needs_a_persons_token(self, app, opened):
        claims = SetupClaims(secret=opened.client.get_cookie(COOKIE).value)

        answer = app.test_client().post(
            "/v1/invitations/accept",
            json={"token": "inv_" + "x" * 43},
            environ_overrides={guard.CLAIMS: claims},
        )

        assert answer.status_code == 401

    @pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
    def test_no_row_of_another_tenant(self, app, tenant, opened, method):
        """Each page with every method, as htmx sends it too, and with a tenant named."""
        other = create_tenant(name="Initech")
        world = {**create_world(other), "domain_id": create_domain(other).id}
        foreign = {"tenant_id": other.id, "provider": "okta", "name": "x.example"}
        foreign |= {"url": "https://x.example", "types": "*"}
        before = database.query(
            "SELECT * FROM audit_events WHERE tenant_id = :id ORDER BY id", id=other.id
        )

        for rule in setup_rules(app):
            path = setup_page(rule, world)
            for headers in (None, {"Sec-Fetch-Site": "same-origin", "HX-Request": "true"}):
                query = f"{path}?tenant_id={other.id}&include=tenant,history"
                send = opened.post if method == "POST" else partial(opened.open, method)
                answer = send(query, headers=headers, data={**foreign})
                assert answer.status_code < 500, path
                assert "Initech" not in answer.text, path
                if rule.arguments & world.keys() - {"kind"} and method in rule.methods:
                    assert answer.status_code == 404, path
                if method not in {"GET", "HEAD", *rule.methods}:
                    assert answer.status_code == 405, path

        after = database.query(
            "SELECT * FROM audit_events WHERE tenant_id = :id ORDER BY id", id=other.id
        )
        assert after == before

    def test_no_form_of_another_site(self, app, tenant, opened):
        ids = {"connection_id": create_connection(tenant)[0].id}
        ids |= {"endpoint_id": create_webhook_endpoint(tenant.id).id}
        ids |= {"domain_id": create_domain(tenant).id}
        ids |= {"stream_id": create_log_stream(tenant.id).id}
        before = database.query("SELECT count(*) FROM audit_events")

        for rule, headers in product(setup_rules(app, "POST"), FOREIGN):
            answer = opened.open("POST", setup_page(rule, ids), headers=headers)
            assert answer.status_code == 403, rule

        assert database.query("SELECT count(*) FROM audit_events") == before

    def test_no_page_after_its_end(self, app, opened):
        ids = dict.fromkeys(("connection_id", "endpoint_id", "domain_id", "stream_id"), uuid4())
        database.execute("UPDATE setup_links SET revoked_at = now()")

        for method in ("GET", "POST"):
            for rule in setup_rules(app, method):
                answer = opened.open(method, setup_page(rule, ids))
                assert (answer.location or "").startswith(f"{HOME}/open"), rule

    @pytest.mark.parametrize(
        "path", ["/%2e%2e/api-keys", "/../tenants", "/.//scim", "/scim/", "/x%00"]
    )
    def test_no_page_by_another_path(self, opened, path):
        answer = opened.get(f"{HOME}{path}")

        assert answer.status_code in (307, 308, 404)
        assert "api key" not in answer.text.lower()

    def test_the_cookie_is_no_credential_of_the_api(self, opened):
        assert opened.get("/v1/scim-connections").status_code == 401

    def test_a_person_who_is_signed_in_has_no_setup_pages(self, browser):
        assert browser.get(HOME).location.startswith(f"{HOME}/open")

    def test_an_unknown_page_shows_no_menu(self, opened):
        page = opened.get(f"{HOME}/nothing")

        assert page.status_code == 404
        assert "<nav" not in page.text
        assert f'<a href="{HOME}">Go to the home page</a>' in page.text

"""Signing in and out, and what attackers try."""

import re
from datetime import timedelta

import pytest

from app.auth import sessions
from app.auth.keys import digest_of
from app.core.actors import SYSTEM_CLI
from app.core.clock import utcnow
from app.platform_admins import service as platform_admins
from tests import database
from tests.console.conftest import SAME_ORIGIN, Browser
from tests.database import platform_transaction
from tests.factories import (
    PLATFORM_SUBJECT,
    create_member,
    create_membership,
    create_tenant,
    create_user,
    platform_token,
)


def sign_in_link(subject=PLATFORM_SUBJECT, org_id=None):
    with platform_transaction():
        return sessions.create_ticket("link", subject=subject, org_id=org_id)


def cookie_of(response, name="console"):
    found = [each for each in response.headers.getlist("Set-Cookie") if each.startswith(f"{name}=")]
    return found[0] if found else None


def use(browser, secret, **options):
    return browser.post("/console/sign-in/link", data={"token": secret}, **options)


class TestStart:
    def test_leads_a_browser_to_the_console_and_others_to_the_documentation(self, client):
        html = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}

        assert client.get("/", headers=html).location == "/console"
        assert client.get("/", headers={"Accept": "*/*"}).location == "/docs"
        assert client.get("/").location == "/docs"


class TestLink:
    def test_signs_in_once(self, anonymous, app):
        platform_token()
        secret = sign_in_link()

        first = use(anonymous, secret)
        second = use(Browser(app), secret)

        assert (first.status_code, first.location) == (303, "/console")
        assert anonymous.get("/console").status_code == 200
        assert second.status_code == 403
        assert cookie_of(second) is None

    def test_is_not_used_by_opening_it(self, anonymous):
        platform_token()
        secret = sign_in_link()

        for _ in range(2):
            page = anonymous.get(f"/console/sign-in/link?token={secret}")

        assert page.status_code == 200
        assert cookie_of(page) is None
        assert use(anonymous, secret).status_code == 303

    def test_expires_after_ten_minutes(self, anonymous):
        platform_token()
        secret = sign_in_link()
        database.execute("UPDATE console_tickets SET expires_at = now() - interval '1 second'")

        assert use(anonymous, secret).status_code == 403

    def test_of_another_purpose_does_not_sign_in(self, anonymous):
        platform_token()
        with platform_transaction():
            secret = sessions.create_ticket("oidc", subject=PLATFORM_SUBJECT)

        assert use(anonymous, secret).status_code == 403

    def test_the_command_prints_one(self, app, anonymous, tenant):
        user, _, _ = create_member(tenant)

        ended = app.test_cli_runner().invoke(args=["console", "link", "--user", user.email])
        secret = ended.stdout.strip().partition("token=")[2]

        assert use(anonymous, secret).status_code == 303
        assert tenant.name in anonymous.get(f"/console/tenants/{tenant.id}").text

    def test_the_command_names_one_of_several_superadmins_and_is_recorded(self, app):
        run = app.test_cli_runner().invoke
        with platform_transaction():
            for subject in ("admin_1", "zed_2"):
                platform_admins.add(subject, actor=SYSTEM_CLI)

        refused = run(args=["console", "link", "--superadmin"])
        named = run(args=["console", "link", "--superadmin", "--subject", "zed_2", "--json"])
        unknown = run(args=["console", "link", "--superadmin", "--subject", "nobody"])

        assert (refused.exit_code, unknown.exit_code) == (1, 1)
        assert "--subject: one of admin_1, zed_2" in refused.stderr
        assert named.exit_code == 0, named.stderr
        recorded = database.query(
            "SELECT target_id, after->>'idp_user_id' FROM audit_events"
            " WHERE action = 'console.link_created'"
        )
        assert recorded == [("zed_2", "zed_2")]

    @pytest.mark.parametrize("arguments", [[], ["--superadmin", "--user", "x"]])
    def test_the_command_needs_one_person(self, app, arguments):
        ended = app.test_cli_runner().invoke(args=["console", "link", *arguments])

        assert ended.exit_code == 2


class TestCookie:
    def test_over_http_on_loopback_has_no_prefix(self, anonymous):
        platform_token()

        cookie = cookie_of(use(anonymous, sign_in_link()))

        assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(cookie.split("; "))
        assert "Secure" not in cookie
        assert "Max-Age=43200" in cookie

    @pytest.mark.parametrize("base_url", ["https://api.example.com", "http://api.example.com"])
    def test_elsewhere_is_secure_and_for_this_host_only(self, anonymous, base_url):
        platform_token()

        cookie = cookie_of(use(anonymous, sign_in_link(), base_url=base_url), "__Host-console")

        parts = set(cookie.split("; "))
        assert {"Secure", "HttpOnly", "SameSite=Lax", "Path=/"} <= parts
        assert not any(part.startswith("Domain") for part in parts)

    def test_is_ignored_outside_the_console(self, signed_in):
        answer = signed_in().get("/v1/tenants")

        assert answer.status_code == 401

    def test_the_key_of_the_environment_cannot_be_sent(self, client):
        headers = {"controlplane.claims": "x", "Controlplane-Claims": "x"}

        assert client.get("/v1/tenants", headers=headers).status_code == 401

    def test_is_stored_as_a_digest_and_so_is_a_link(self, signed_in):
        secret, link = signed_in().secret, sign_in_link()

        rows = str(database.query("SELECT * FROM console_sessions"))
        assert secret not in rows
        assert digest_of(secret) in rows
        assert link not in str(database.query("SELECT * FROM console_tickets"))


class TestEnd:
    @pytest.mark.parametrize(
        ("column", "age"), [("created_at", sessions.LIFETIME), ("last_used_at", sessions.IDLE)]
    )
    def test_ends_with_time(self, signed_in, column, age):
        browser = signed_in()
        for seconds, status in ((-60, 200), (60, 303)):
            when = utcnow() - age - timedelta(seconds=seconds)
            database.execute(f"UPDATE console_sessions SET {column} = :at", at=when)

            assert browser.get("/console").status_code == status

    def test_use_keeps_it_from_being_idle(self, signed_in):
        browser = signed_in()
        database.execute("UPDATE console_sessions SET last_used_at = now() - interval '1 hour'")

        browser.get("/console")

        ((age,),) = database.query("SELECT now() - last_used_at FROM console_sessions")
        assert age < timedelta(minutes=1)

    @pytest.mark.parametrize("table", ["users", "memberships", "tenants"])
    def test_deactivation_and_suspension_end_it_for_ever(self, signed_in, table, tenant):
        browser, page = signed_in(create_member(tenant)[0]), f"/console/tenants/{tenant.id}"
        assert browser.get(page).status_code == 200

        database.execute(f"UPDATE {table} SET is_active = false")
        refused = browser.get(page)
        database.execute(f"UPDATE {table} SET is_active = true")

        assert refused.location.startswith("/console/sign-in")
        assert browser.get(page).status_code == 303

    def test_a_new_role_has_effect_at_once(self, signed_in, tenant):
        user, _, _ = create_member(tenant, "owner")
        browser = signed_in(user)
        page = f"/console/tenants/{tenant.id}/edit"
        assert browser.get(page).status_code == 200

        database.execute("UPDATE memberships SET role = 'viewer'")

        assert browser.send(page, name="Taken").status_code == 403

    def test_a_superadmin_who_is_removed_has_no_access(self, signed_in):
        browser = signed_in()

        database.execute("DELETE FROM platform_admins")

        assert browser.get("/console/tenants").location.startswith("/console/choose-tenant")

    def test_what_has_expired_is_deleted(self, signed_in):
        signed_in()
        sign_in_link()
        database.execute("UPDATE console_sessions SET last_used_at = now() - interval '3 hours'")
        database.execute("UPDATE console_tickets SET expires_at = now()")

        with platform_transaction():
            assert sessions.forget_expired() == 2


class TestFixation:
    def test_signing_in_ends_the_session_there_was(self, app, anonymous):
        platform_token()
        with platform_transaction():
            planted = sessions.start("somebody", "org")
        anonymous.client.set_cookie("console", planted, path="/")

        cookie = cookie_of(use(anonymous, sign_in_link()))

        assert planted not in cookie
        assert Browser(app, planted).get("/console").status_code == 303


FOREIGN = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "none"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://localhost.evil.example"},
    {},
]


class TestForgery:
    @pytest.mark.parametrize("headers", [SAME_ORIGIN, {"Origin": "http://localhost"}])
    def test_the_consoles_own_forms_are_accepted(self, signed_in, headers, tenant):
        path = f"/console/tenants/{tenant.id}/suspend"

        answer = signed_in().post(
            path, headers=headers, data={"reason": "Unpaid", "form_confirmation": tenant.slug}
        )

        assert answer.status_code == 303
        assert database.query("SELECT is_active FROM tenants") == [(False,)]

    def test_without_the_headers_the_forms_token_is_needed(self, signed_in, tenant):
        browser, other = signed_in(), signed_in()
        path = f"/console/tenants/{tenant.id}/suspend"
        data = {"reason": "Unpaid", "form_confirmation": tenant.slug}
        own, foreign = (
            re.findall(r'name="csrf_token" value="([^"]+)"', each.get(path).text)
            for each in (browser, other)
        )

        refused = [
            browser.post(path, headers={}, data={**data, "csrf_token": token}).status_code
            for token in (foreign[0], "", "x.y", own[0][:-1], "é.é")
        ]
        accepted = browser.post(path, headers={}, data={**data, "csrf_token": own[0]})

        assert refused == [403] * 5
        assert accepted.status_code == 303
        assert len(set(own)) == len(own)  # each is another one, so compression tells nothing

    def test_a_get_changes_nothing(self, signed_in, tenant):
        signed_in().get(
            f"/console/tenants/{tenant.id}/suspend?reason=x&form_confirmation={tenant.slug}"
        )

        assert database.query("SELECT is_active FROM tenants") == [(True,)]


class TestRedirects:
    WANTED = "/console/tenants?slug=acme&is_active=true"
    TARGETS = (
        "https://evil.example", "//evil.example", "/\\evil.example", "/console\\@evil.example",
        "/console.evil.example", "/consolexyz", "/console/\r\nSet-Cookie: a=b",
        "javascript:alert(1)", "/v1/tenants", "",
    )  # fmt: skip

    @pytest.mark.parametrize("target", [*TARGETS, WANTED])
    def test_signing_in_leads_to_pages_of_the_console_only(self, anonymous, target):
        platform_token()
        data = {"token": sign_in_link(), "next": target}

        answer = anonymous.post("/console/sign-in/link", data=data)

        assert answer.location == (target if target == self.WANTED else "/console")

    def test_a_fragment_makes_the_browser_sign_in(self, anonymous):
        answer = anonymous.get("/console?q=a", headers={"HX-Request": "true"})

        assert answer.status_code == 401
        assert answer.headers["HX-Redirect"] == "/console/sign-in"


class TestSeveralTenants:
    def test_a_person_chooses_one_of_their_own(self, app):
        first, second, other = (create_tenant() for _ in range(3))
        for tenant in (first, second):
            create_membership(tenant, create_user(tenant, idp_user_id="ada"))
        with platform_transaction():
            browser = Browser(app, sessions.start("ada", None))

        assert browser.get("/console/tenants").location.startswith("/console/choose-tenant")
        page = browser.get("/console/choose-tenant").text
        assert first.name in page
        assert second.name in page
        assert other.name not in page
        refused = browser.post("/console/choose-tenant", data={"org_id": other.idp_org_id})
        assert refused.status_code == 200
        browser.post("/console/choose-tenant", data={"org_id": second.idp_org_id})
        assert browser.get(f"/console/tenants/{second.id}").status_code == 200
        assert browser.get(f"/console/tenants/{first.id}").status_code == 404


class TestRateLimits:
    def test_a_page_counts_once(self, with_limits):
        limited = with_limits(RATELIMIT_DEFAULT="2/month", RATELIMIT_PLATFORM="2/month")
        platform_token()
        with platform_transaction():
            browser = Browser(limited, sessions.start(PLATFORM_SUBJECT, None))
        tenant = create_tenant()
        path = f"/console/tenants/{tenant.id}"  # calls the API several times

        answers = [browser.get(path) for _ in range(3)]

        assert [each.status_code for each in answers] == [200, 200, 429]
        assert "Too many requests" in answers[-1].text
        assert answers[0].headers["RateLimit-Limit"] == "2"

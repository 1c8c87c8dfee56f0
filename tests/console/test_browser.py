"""The console in Debian's Chromium: every page, both colour schemes, two widths, the keyboard."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import sync_playwright

from app.auth import sessions
from tests import database
from tests.console.world import addresses, create_world
from tests.database import platform_transaction
from tests.factories import PLATFORM_SUBJECT, create_member, create_tenant, platform_token
from tests.search import finding

CHROMIUM = shutil.which("chromium")
AXE = gzip.decompress(Path(__file__).with_name("axe").joinpath("axe.min.js.gz").read_bytes())
RULES = json.dumps({"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]})
CHECK = f"""axe.run(document, {RULES}).then(found =>
    found.violations.map(each => each.id + ": " + each.nodes.map(node => node.html).join(" ")))"""
LOOKS = [("light", 1440), ("dark", 1440), ("dark", 390), ("light", 390)]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium on the PATH")


@pytest.fixture(scope="module")
def chromium():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Visit:
    """A page of Chromium, and what went wrong in it."""

    def __init__(self, chromium, base_url, secret):
        self.base_url = base_url
        self.faults = []
        self.context = chromium.new_context()
        self.context.add_init_script(AXE.decode())
        self.context.add_cookies([{"name": "console", "value": secret, "url": base_url}])
        self.page = self.context.new_page()
        self.page.on("console", self._note_message)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("request", self._note_request)

    def open(self, path):
        answer = self.page.goto(f"{self.base_url}{path}")
        assert answer.status == 200, path

    def check(self):
        """Note what axe finds, and what is wider than the window."""
        for scheme, width in LOOKS:
            self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            self.page.set_viewport_size({"width": width, "height": 900})
            place = f"{self.page.url} {scheme} {width}"
            self.faults += [f"{place} {fault}" for fault in self.page.evaluate(CHECK)]
            if self.page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                self.faults.append(f"{place} is wider than the window")

    def _note_message(self, message):
        if message.type in ("error", "warning"):
            self.faults.append(f"{self.page.url}: {message.text}")

    def _note_request(self, request):
        if urlsplit(request.url).netloc != urlsplit(self.base_url).netloc:
            self.faults.append(f"{self.page.url} asks {request.url}")


@pytest.fixture
def visit(chromium, base_url):
    """``visit(user)``, or ``visit()`` for a superadmin; afterwards nothing may have gone wrong."""
    visits = []

    def begin(user=None):
        if user is None:
            platform_token()
        subject, org_id = (
            (PLATFORM_SUBJECT, None) if user is None else (user.idp_user_id, user.idp_org_id)
        )
        with platform_transaction():
            secret = sessions.start(subject, org_id)
        visits.append(Visit(chromium, base_url, secret))
        return visits[-1]

    yield begin
    for each in visits:
        each.context.close()
    assert [fault for each in visits for fault in each.faults] == []


@pytest.fixture
def world(app):
    return create_world(create_tenant(name="Acme Robotics", slug="acme"))


class TestEveryPage:
    @pytest.mark.slow
    def test_as_a_superadmin(self, app, visit, world):
        browser = visit()

        for path in addresses(app, world):
            browser.open(path)
            browser.check()

    @pytest.mark.parametrize("role", ["owner", "member", "viewer"])
    def test_of_the_menu_as(self, visit, world, role):
        tenant = database.query("SELECT * FROM tenants")[0]
        browser = visit(create_member(tenant, role)[0])
        browser.open("/console")
        links = browser.page.locator(".side a").all()
        paths = [link.get_attribute("href") for link in links]

        for path in paths:
            browser.open(path)
            browser.check()
            link = browser.page.locator("td.main a").first
            if link.count():
                with browser.page.expect_navigation():
                    link.click()
                browser.check()

        assert len(paths) >= 6


class TestKeyboard:
    def test_finds_and_opens_without_a_mouse(self, visit):
        tenant = finding.create_tenant(name="Acme Robotics")
        finding.create_tenant(name="Acme Second")
        browser = visit()
        browser.open("/console/tenants")
        page = browser.page

        page.keyboard.press("/")
        page.keyboard.type("acme")
        page.keyboard.press("Enter")
        page.wait_for_selector("#results a")
        page.keyboard.press("/")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Enter")
        page.wait_for_url("**/console/tenants/*")

        assert page.url.endswith(str(tenant.id))

    def test_search_shows_results_while_somebody_types(self, visit):
        finding.create_tenant(name="Acme Robotics")
        browser = visit()
        browser.open("/console")

        browser.page.locator("#find").press_sequentially("acm")
        browser.page.wait_for_selector("#results a")

        assert browser.page.url.endswith("?q=acm")


class TestScripts:
    def test_more_adds_the_next_rows(self, visit):
        for _ in range(52):
            create_tenant()
        browser = visit()
        browser.open("/console/tenants")

        browser.page.locator("#more a").click()
        browser.page.wait_for_function("document.querySelectorAll('#rows tr').length === 52")

        assert browser.page.locator("#more a").count() == 0

    def test_times_are_the_readers_with_utc_as_the_tool_tip(self, chromium, visit):
        create_tenant()
        browser = visit()
        browser.open("/console/tenants")
        shown = browser.page.locator("#rows time").first

        assert "UTC" in shown.get_attribute("title")
        assert "UTC" not in shown.inner_text()

    def test_the_button_waits_for_the_slug(self, visit):
        tenant = create_tenant(slug="acme")
        browser = visit()
        browser.open(f"/console/tenants/{tenant.id}/suspend")
        button = browser.page.locator("main button")

        assert button.is_disabled()
        browser.page.locator("#confirmation").fill("acme")
        assert button.is_enabled()

    def test_a_secret_is_copied(self, visit):
        tenant = create_tenant()
        browser = visit()
        browser.context.grant_permissions(["clipboard-read", "clipboard-write"])
        browser.open(f"/console/tenants/{tenant.id}/api-keys/new")
        page = browser.page
        page.fill("[name=name]", "sync")
        page.check("[value='users:read']")
        page.click("main button")

        page.click("[data-copy]")
        page.wait_for_selector("text=Copied")

        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == page.inner_text("#secret")
        assert copied.startswith("sk_")


class TestSupport:
    def test_a_day_without_a_terminal(self, visit):
        """Somebody cannot open the invoices: found, explained, mended, and seen in the audit."""
        create_world(tenant := finding.create_tenant(name="Acme Robotics", slug="acme"))
        user, _, _ = create_member(tenant, "viewer", first_name="Aiko", last_name="Mori")
        browser = visit()
        page = browser.page

        browser.open("/console?q=acme")
        page.click("#results a >> text=Acme Robotics")
        page.click(".tabs >> text=Members")
        page.click("td.main >> text=Aiko Mori")
        page.select_option("#permission", "billing:read")
        page.click("text=Explain")
        assert "Refused" in page.inner_text(".verdict")
        assert "billing" in page.inner_text(".steps .failed")

        page.click("text=Change the role")
        page.select_option("[name=role]", "billing")
        page.click("main button")
        assert "The role was changed." in page.inner_text(".notice")
        page.select_option("#permission", "billing:read")
        page.click("text=Explain")
        assert "Allowed" in page.inner_text(".verdict")

        page.click(".tabs >> text=Flags and limits")
        page.click("td.main >> text=calls")
        page.click("text=Grant an override")
        page.fill("[name=flag_value]", "250")
        page.fill("[name=expires_at]", "2031-01-01T00:00:00")
        page.click("main button")
        assert "The override is in force." in page.inner_text(".notice")
        assert "250" in page.inner_text(".figure >> nth=0")

        page.click(".tabs >> text=Audit")
        page.click("#rows tr >> nth=0 >> summary")
        assert "250" in page.inner_text("#rows tr >> nth=0")
        actors = database.query(
            "SELECT action, actor FROM audit_events WHERE created_at > now() - interval '1 minute'"
            " AND action IN ('membership.role_changed', 'override.created') ORDER BY action"
        )
        found = [row for row in actors if row.actor.startswith("platform:")]
        assert [row.action for row in found] == ["membership.role_changed", "override.created"]
        assert {row.actor for row in found} == {f"platform:{PLATFORM_SUBJECT}"}
        assert str(user.id)

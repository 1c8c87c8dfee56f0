"""The console in Debian's Chromium: every page, both colour schemes, two widths, the keyboard."""

import gzip
import json
import shutil
from collections import defaultdict
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import expect, sync_playwright

from app.auth import sessions
from app.core.clock import utcnow
from app.core.jobs.queues import Queue
from app.core.jobs.worker import make_worker
from app.plans.models import PlanPreset, PlanPrice
from app.tenants.models import Tenant
from tests import database
from tests.billing.reading import post_all, reader_of, service, wait_for
from tests.billing.simulated.base import Line
from tests.billing.simulated.stripe import Stripe
from tests.conftest import serving
from tests.console.world import create_past, create_world, one_of_each
from tests.custom_fields.fields import create_field
from tests.database import platform_transaction
from tests.factories import (
    PLATFORM_SUBJECT,
    create_limits,
    create_member,
    create_membership,
    create_override,
    create_subscription,
    create_tenant,
    limit_flag,
    platform_token,
    preset_flag,
)
from tests.search import finding

CHROMIUM = shutil.which("chromium")
AXE = gzip.decompress(
    Path(__file__).with_name("axe").joinpath("axe.min.js.gz").read_bytes()
).decode()
CRITERIA = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
# Each page in both colour schemes and both widths. What of these criteria can differ from one look to
# another; the whole check runs once for each page.
OF_LOOKS = ["color-contrast", "link-in-text-block", "scrollable-region-focusable", "target-size"]
LOOKS = [
    ("light", 1440, {"type": "tag", "values": CRITERIA}),
    ("dark", 390, {"type": "rule", "values": OF_LOOKS}),
]
CHECK = """rules => axe.run({runOnly: rules, resultTypes: ["violations"]})
    .then(found => found.violations.map(each => each.id + ": " + each.nodes.map(node => node.html).join(" ")))"""
# What the rules judge of an element: names, columns, attributes without their texts, and all it stands in.
KINDS = """page => {
    page ??= document;
    const kinds = new Map([[page.documentElement, ""]]);
    for (const each of page.body.querySelectorAll("*")) {
        const names = each.getAttributeNames().sort().map(name =>
            name + (/^(class|type|role|scope|aria-(current|sort))$/.test(name) ? "=" + each.getAttribute(name) : ""));
        kinds.set(each, (kinds.get(each.parentElement) ?? "") + ">" + each.localName + (each.cellIndex ?? "") + "[" + names + "]");
    }
    return [...new Set(kinds.values())];
}"""
KINDS_OF = f"""async path => {{
    const answer = await fetch(path);
    if (!answer.ok) throw path;
    return ({KINDS})(new DOMParser().parseFromString(await answer.text(), "text/html"));
}}"""
# Each control that can be seen, and each that got the focus with an outline around it.
WATCH_FOCUS = """() => {
    window.reached = new Set();
    addEventListener("focusin", () => {
        const style = getComputedStyle(document.activeElement);
        const isSeen = style.outlineStyle !== "none" || style.boxShadow !== "none";
        if (isSeen) window.reached.add(document.activeElement);
    });
}"""
CONTROLS = "a[href], button:enabled, input:enabled:not([type=hidden]), select, textarea, summary"
MISSED = f"""() => [...document.querySelectorAll({json.dumps(CONTROLS)})]
    .filter(each => each.checkVisibility() && !window.reached.has(each))
    .map(each => each.outerHTML)"""
# What is touched, except links in sentences.
SMALL = """() => [...document.querySelectorAll("a, button, input:not([type=hidden]), select, summary")]
    .filter(each => each.checkVisibility() && !each.closest("p, dd, small, .skip, .check"))
    .filter(each => each.getBoundingClientRect().height < 43.9)
    .map(each => each.outerHTML.slice(0, 200))"""
CUT = """() => [...document.querySelectorAll("td, td *")]
    .filter(each => each.checkVisibility() && each.getBoundingClientRect().right > innerWidth)
    .map(each => each.outerHTML.slice(0, 200))"""
JUDGED = defaultdict(set)  # by colour scheme and width; the kinds of elements
SENT = set()  # the kinds of elements of pages before scripts run
IS_SEEN = "each => each.getBoundingClientRect().right <= innerWidth"

SLOW_MACHINE = 90_000  # milliseconds that a page may need

expect.set_options(timeout=SLOW_MACHINE)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium on the PATH")


@pytest.fixture(scope="module")
def chromium():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--in-process-gpu"]
        )
        yield browser
        browser.close()


class Visit:
    """A page of Chromium, and what went wrong in it."""

    def __init__(self, chromium, base_url, secret):
        self.base_url = base_url
        self.faults = []
        self.context = chromium.new_context()
        self.context.set_default_timeout(SLOW_MACHINE)
        self.context.add_cookies([{"name": "console", "value": secret, "url": base_url}])
        self.page = self.context.new_page()
        self.page.on("console", self._note_message)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("request", self._note_request)
        self.page.on("dialog", self._note_dialog)

    def open(self, path):
        answer = self.page.goto(f"{self.base_url}{path}", wait_until="domcontentloaded")
        assert answer.status == 200, path

    def has_new_kinds(self, path):
        """Whether no page asked for before had all its kinds of elements."""
        kinds = set(self.page.evaluate(KINDS_OF, path)) - SENT
        SENT.update(kinds)
        return bool(kinds)

    def links(self):
        """The paths of the console that the page links to."""
        found = self.page.evaluate("[...document.links].map(link => link.href)")
        return [urlsplit(each).path for each in found if f"{self.base_url}/console" in each]

    def check(self, looks=LOOKS):
        """Note what axe finds, and what is too wide or, on a phone, cut or too small to touch.

        axe judges a page only if it has an element of a kind that no page had before in that look.
        """
        self.page.wait_for_load_state("domcontentloaded")
        kinds = set(self.page.evaluate(KINDS))
        for scheme, width, rules in looks:
            self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            self.page.set_viewport_size({"width": width, "height": 900})
            place = f"{self.page.url} {scheme} {width}"
            if not kinds <= JUDGED[scheme, width]:
                JUDGED[scheme, width] |= kinds
                if not self.page.evaluate("'axe' in window"):
                    self.page.evaluate(AXE)
                self.faults += [f"{place} {fault}" for fault in self.page.evaluate(CHECK, rules)]
            if self.page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                self.faults.append(f"{place} is wider than the window")
            if width == 390:
                self.faults += [f"{place} cuts {each}" for each in self.page.evaluate(CUT)]
                self.faults += [f"{place} is small: {each}" for each in self.page.evaluate(SMALL)]

    def _note_message(self, message):
        if message.type in ("error", "warning"):
            self.faults.append(f"{self.page.url}: {message.text}")

    def _note_dialog(self, dialog):
        self.faults.append(f"{self.page.url}: {dialog.message}")
        dialog.dismiss()

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
    def test_is_accessible(self, app, visit, world):
        """As a superadmin sees it, with every control; of a flag, of a limit and of credits."""
        browser, keys = visit(), ("theme", "calls", "tokens")
        for key in keys[1:]:
            create_override(database.row(Tenant), database.row(PlanPreset), key, 200)

        browser.open("/console")
        for path in sorted(
            {path for key in keys for path in one_of_each(app, world | {"key": key})}
        ):
            if browser.has_new_kinds(path):
                browser.open(path)
                browser.check()

    def test_that_links_lead_a_viewer_to(self, app, visit, world):
        """One address of each of these pages."""
        urls = app.url_map.bind("localhost")
        browser = visit(create_member(database.row(Tenant), "viewer")[0])
        paths, seen = ["/console"], set()

        while paths:
            path = paths.pop()
            endpoint, _ = urls.match(path, "GET")
            if endpoint in seen | {"console.choose_tenant"}:
                continue
            seen.add(endpoint)
            browser.open(path)
            browser.check(LOOKS[1:])
            paths += browser.links()

        assert len(seen) >= 10


class TestKeyboard:
    def test_finds_and_opens_without_a_mouse(self, visit):
        tenant = finding.create_tenant(name="Acme Robotics")
        finding.create_tenant(name="Acme Second")
        browser = visit()
        browser.open("/console/tenants")
        page = browser.page

        page.keyboard.press("/")
        page.keyboard.type("acme")
        page.wait_for_selector("#found a")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Enter")
        page.wait_for_url("**/console/tenants/*")

        assert page.url.endswith(str(tenant.id))

    def test_enter_opens_the_first_result_even_before_it_is_shown(self, visit):
        tenant = finding.create_tenant(name="Acme Robotics")
        browser = visit()
        browser.open("/console/plans")

        browser.page.keyboard.press("Control+k")
        browser.page.keyboard.type("acme")
        browser.page.keyboard.press("Enter")

        browser.page.wait_for_url(f"**/console/tenants/{tenant.id}")

    def test_the_palette_offers_the_actions_of_the_page_first(self, visit, world):
        browser = visit()
        page, box = browser.page, browser.page.locator("#palette input")
        offered = page.locator(".offered li:visible")

        browser.open(f"/console/tenants/{world['tenant_id']}")
        page.locator("#find").click()
        expect(box).to_be_focused()
        browser.check()
        first = page.locator(".offered >> nth=0").inner_text()
        box.fill("new")
        labels = offered.all_inner_texts()
        box.fill("gra fl")
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/console/tenants/{world['tenant_id']}/flags/overrides/new")
        page.select_option("[name=key]", "theme")
        page.click("main button.main")
        page.wait_for_url(f"**/console/tenants/{world['tenant_id']}/flags/theme/override")

        assert "Grant a flag" in first
        assert "Acme Robotics" in first
        assert len(labels) > 4
        assert all("New" in label for label in labels)
        page.keyboard.press("/")
        page.keyboard.type("x")
        page.keyboard.press("Escape")
        expect(box).to_be_hidden()

    def test_the_palette_offers_people_only_what_they_may_do(self, visit, world):
        viewer = create_member(database.row(Tenant), "viewer")[0]
        browser = visit(viewer)
        browser.open("/console")

        browser.page.keyboard.press("/")

        expect(browser.page.locator("#palette input")).to_be_focused()
        expect(browser.page.locator(".offered h2")).to_have_text(["Pages"])

    def test_the_first_tab_reaches_the_skip_link(self, visit, world):
        browser = visit()
        for path in ("/console/operations", f"/console/tenants/{world['tenant_id']}/audit"):
            for width in (1280, 390):
                browser.page.set_viewport_size({"width": width, "height": 900})
                browser.open(path)
                browser.page.keyboard.press("Tab")

                expect(browser.page.locator(".skip")).to_be_focused()
                link = browser.page.locator(".tabs [aria-current]")
                assert link.count() == 0 or link.evaluate(IS_SEEN)

    def test_reaches_every_control_and_shows_where_it_is(self, visit, world):
        tenant, browser = f"/console/tenants/{world['tenant_id']}", visit()
        for path in (
            "/console",
            "/console/tenants",
            tenant,
            f"{tenant}/edit",
            f"{tenant}/custom-fields",
            f"{tenant}/flags/calls",
        ):
            browser.open(path)
            browser.page.evaluate(WATCH_FOCUS)
            for _ in range(browser.page.locator(CONTROLS).count() + 5):
                browser.page.keyboard.press("Tab")

            assert browser.page.evaluate(MISSED) == [], path

    def test_fills_in_and_sends_a_form(self, visit, world):
        browser = visit()
        browser.open(f"/console/tenants/{world['tenant_id']}/edit")
        keyboard = browser.page.keyboard

        browser.page.focus("#content")
        while browser.page.evaluate("document.activeElement.name") != "name":
            keyboard.press("Tab")
        keyboard.press("Control+a")
        keyboard.type("Acme Motors")
        keyboard.press("Enter")

        browser.page.wait_for_selector(".notice >> text=The tenant was changed.")
        assert browser.page.inner_text("h1") == "Acme Motors"


class TestOrder:
    @pytest.fixture
    def listed(self, visit, app):
        tenant = create_tenant()
        for key in ("one", "two", "three"):
            create_field(tenant, field_key=key, label=key)
        browser = visit()
        browser.open(f"/console/tenants/{tenant.id}/custom-fields")
        return browser.page

    def labels(self, page):
        return page.locator("td.main").all_inner_texts()

    def test_is_changed_by_keys(self, listed):
        listed.focus("[aria-label='Move three up']")

        for place in (2, 1):
            listed.keyboard.press("ArrowUp")
            listed.wait_for_selector(f"#notice >> text=three is number {place} of 3 now.")
            assert listed.evaluate("document.activeElement.ariaLabel") == "Move three up"

        assert self.labels(listed) == ["three", "one", "two"]

    def test_is_changed_by_dragging(self, listed):
        rows = listed.locator("#rows tr")
        box = rows.nth(2).bounding_box()

        rows.nth(0).locator(".grip").drag_to(
            rows.nth(2), target_position={"x": 40, "y": box["height"] - 4}
        )
        listed.wait_for_selector("#notice >> text=one is number 3 of 3 now.")

        assert self.labels(listed) == ["two", "three", "one"]
        found = database.query("SELECT field_key FROM custom_fields ORDER BY sort_order")
        assert [row.field_key for row in found] == ["two", "three", "one"]


class TestPhone:
    @pytest.fixture
    def phone(self, visit):
        browser = visit()
        browser.page.set_viewport_size({"width": 390, "height": 800})
        return browser

    def test_shows_each_cell_with_its_columns_label(self, phone, world):
        phone.open(f"/console/tenants/{world['tenant_id']}/members")
        role = phone.page.locator("#rows > tr >> nth=0 >> [data-label=Role]")

        assert "Role" in role.evaluate("each => getComputedStyle(each, '::before').content")
        expect(phone.page.locator("thead")).to_be_hidden()
        expect(phone.page.locator(".find kbd")).to_be_hidden()

    def test_sorts_by_a_menu(self, phone):
        for name in ("Beta", "Alpha"):
            create_tenant(name=name)
        phone.open("/console/tenants")
        menu, names = phone.page.locator(".sort-menu select"), phone.page.locator("td.main")

        phone.check(LOOKS[1:])
        menu.select_option("Name ↓")
        assert names.all_inner_texts() == ["Beta", "Alpha"]
        menu.select_option("Name ↑")
        assert names.all_inner_texts() == ["Alpha", "Beta"]
        menu.select_option("Created ↑")
        phone.page.wait_for_url("**/console/tenants?order=created_at")
        expect(names).to_have_text(["Beta", "Alpha"])

    def test_opens_the_menu_when_asked(self, phone, world):
        phone.open("/console/tenants")
        menu = phone.page.locator("nav.side")

        expect(menu).to_be_hidden()
        phone.page.click("text=Menu")
        expect(menu).to_be_visible()
        phone.check(LOOKS[1:])
        menu.locator("text=Plans").click()

        phone.page.wait_for_url("**/console/plans")


class TestScripts:
    def test_a_column_sorts_the_rows_shown(self, visit):
        for name in ("Beta 10", "Alpha", "Beta 9"):
            create_tenant(name=name)
        browser = visit()
        browser.open("/console/tenants")
        names = browser.page.locator("td.main")

        browser.page.click("th >> text=Name")
        assert names.all_inner_texts() == ["Alpha", "Beta 9", "Beta 10"]
        browser.page.click("th >> text=Name")
        assert names.all_inner_texts() == ["Beta 10", "Beta 9", "Alpha"]
        expect(browser.page.locator("[aria-sort=descending]")).to_have_text("Name")

    @pytest.mark.parametrize("until", ["2099-12-07T18:00", "2099-12-07T23:30"])
    def test_a_time_is_typed_in_the_readers_zone(self, visit, world, until):
        browser = visit()
        tool = browser.context.new_cdp_session(browser.page)
        tool.send("Emulation.setTimezoneOverride", {"timezoneId": "America/New_York"})
        base = f"/console/tenants/{world['tenant_id']}/flags/theme/override"
        browser.open(base)

        browser.page.fill("#field-expires_at", until)
        said = browser.page.inner_text("output")
        browser.page.click("main button.main")
        browser.page.wait_for_selector(".notice")
        browser.open(base)

        sent = {"2099-12-07T18:00": "2099-12-07 23:00", "2099-12-07T23:30": "2099-12-08 04:30"}
        assert "your time" in said
        assert sent[until][11:].lstrip("0") in said or "11:00" in said
        ((stored,),) = database.query("SELECT expires_at FROM feature_overrides")
        assert f"{stored:%Y-%m-%d %H:%M}" == sent[until]
        assert browser.page.input_value("#field-expires_at") == until

    def test_more_adds_the_next_rows(self, visit):
        for _ in range(52):
            create_tenant()
        browser = visit()
        browser.open("/console/tenants")

        browser.page.locator("#more a").click()

        expect(browser.page.locator("#rows tr")).to_have_count(52)
        expect(browser.page.locator("#more a")).to_have_count(0)

    def test_the_button_waits_for_the_slug(self, visit):
        tenant = create_tenant(slug="acme")
        browser = visit()
        browser.open(f"/console/tenants/{tenant.id}/suspend")
        button = browser.page.locator("main button")

        assert button.is_disabled()
        browser.page.locator("#confirmation").fill("acme")
        assert button.is_enabled()

    def test_the_progress_of_an_index_moves(self, visit):
        tenant = create_tenant()
        field = create_field(tenant, label="Note", is_searchable=True)
        browser, base = visit(), f"/console/tenants/{tenant.id}/custom-fields"
        page = browser.page
        progress = "UPDATE custom_field_indexes SET state = :state, done = :done, total = 1000"
        database.execute(progress, state="building", done=250)
        browser.open(f"{base}/{field.id}")
        page.wait_for_selector("text=250 of 1,000")

        database.execute(progress, state="building", done=750)
        page.wait_for_selector("text=750 of 1,000")
        browser.open(base)
        page.wait_for_selector("text=750 of 1,000")
        database.execute(progress, state="ready", done=1000)

        page.wait_for_selector(".badge >> text=ready")
        assert page.locator("[hx-trigger='every 2s']").count() == 0

    def test_what_comes_of_a_replay_and_of_a_delivery_is_shown_without_loading(self, visit, world):
        browser, page_of = visit(), f"/console/tenants/{world['tenant_id']}/endpoints"
        page = browser.page
        browser.open(f"/console/webhooks/{world['event_id']}")
        page.click("main button >> text=Replay")
        page.wait_for_selector("text=Waits for attempt 1, replayed once")
        database.execute("UPDATE webhook_events SET status = 'failed', attempts = 1, detail = 'No'")
        page.wait_for_selector("text=Failed after 1 attempt, replayed once")
        expect(page.locator("#notice .warning")).to_have_text("The event failed again. No")

        browser.open(f"{page_of}/{world['endpoint_id']}")
        page.click("text=Deliver all that wait or failed now")
        page.wait_for_selector("#rows .badge >> text=pending")
        database.execute(
            "UPDATE webhook_deliveries SET status = 'succeeded', next_attempt_at = NULL"
        )
        page.wait_for_selector("#rows .badge >> text=succeeded")
        expect(page.locator("#notice .notice")).to_have_text("The deliveries were made.")
        expect(page.locator("#follow")).to_be_empty()

    def test_another_site_cannot_frame_the_console(self, chromium, base_url):
        page = chromium.new_page()
        page.goto(base_url.replace("127.0.0.1", "localhost") + "/healthz")
        with page.expect_event("requestfailed"):
            page.set_content(f"<iframe src='{base_url}/console/sign-in'></iframe>")

        assert "Sign in" not in [frame.title() for frame in page.frames]
        page.close()

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


class TestPast:
    def test_is_chosen_by_keys_and_left_again(self, api, visit):
        """A time is that of the reader; people and what has changed since are one step away."""
        acme = create_past(api, is_whole=True)
        browser, place = visit(), f"/console/tenants/{acme['id']}"
        page = browser.page
        tool = browser.context.new_cdp_session(page)
        tool.send("Emulation.setTimezoneOverride", {"timezoneId": "America/New_York"})

        browser.open(place)
        page.focus(".moments summary")
        page.keyboard.press("Enter")
        browser.check()
        local = datetime.fromisoformat(acme["moment"]).astimezone(ZoneInfo("America/New_York"))
        page.fill("#as_of", local.strftime("%Y-%m-%dT%H:%M:%S"))
        page.keyboard.press("Enter")
        page.wait_for_selector(".warning >> text=This is the past")
        assert page.inner_text("h1") == "Acme"
        browser.check()
        page.click("text=Go back to this moment")
        page.click("text=Preview")
        page.wait_for_selector("text=changes would be made")
        page.locator(".preview ~ details summary").nth(0).click()
        browser.check()
        page.fill("#confirmation", "acme")
        page.click("button.danger")
        page.wait_for_selector(".notice >> text=The tenant goes back.")
        browser.check()
        browser.open(f"{place}?as_of={acme['moment'][:19]}")

        page.click("td.main a >> text=Ada")
        page.wait_for_selector("h1 >> text=Ada")
        page.click(".moments summary")
        browser.check()
        page.click("text=What has changed since")
        rows = page.locator("#rows > tr")
        expect(rows).to_have_count(2)
        rows.nth(0).locator("summary").click()
        browser.check()
        page.click("text=The last hour")
        page.wait_for_selector("td.main >> text=Eve")
        page.click("td.main a >> text=Eve")

        page.wait_for_selector("h1 >> text=Eve")
        assert page.locator("text=This is the past").count() == 0

    def test_of_access_is_explained(self, api, visit):
        """The moment and the question are kept beside each other, and the banner tells what is lacking."""
        acme = create_past(api, is_whole=True)
        browser = visit()
        page = browser.page

        browser.open(f"/console/tenants/{acme['id']}/users/{acme['user_id']}/access")
        page.select_option("#permission", "users:write")
        page.click("text=Explain")
        page.wait_for_selector(".verdict")
        page.click(".moments summary")
        page.fill("#as_of", acme["moment"][:19])
        page.press("#as_of", "Enter")
        page.wait_for_selector(".warning >> text=Usage was not recorded")
        assert page.inner_text("h1") == "Ada"
        assert "Allowed" in page.inner_text(".verdict")
        browser.check()
        page.select_option("#permission", "users:read")
        page.click("text=Explain")
        page.wait_for_selector(".warning >> text=This is the past")
        page.click("text=Back to now")

        page.wait_for_selector("h1 >> text=Eve")
        assert page.input_value("#permission") == "users:read"
        expect(page.locator(".verdict")).to_have_count(1)


class TestSupport:
    def test_a_day_without_a_terminal(self, visit):
        """A person is found by half an address; why they are refused, and what helps them."""
        tenant = finding.create_tenant(name="Acme Robotics", slug="acme")
        create_world(tenant)
        database.execute("UPDATE webhook_events SET status = 'failed'")
        user = finding.create_user(
            tenant, first_name="Aiko", last_name="Mori", email="aiko.mori@acme.example"
        )
        create_membership(tenant, user, "viewer")
        browser = visit()
        page = browser.page

        browser.open("/console")
        page.keyboard.press("/")
        page.keyboard.type("aiko.mo")
        page.click("#found a >> text=Aiko Mori")
        page.click(".siblings >> text=Access")
        page.select_option("#permission", "billing:read")
        page.click("text=Explain")
        expect(page.locator(".verdict")).to_contain_text("Refused")
        expect(page.locator(".steps .failed")).to_contain_text("billing")

        page.click(".tabs >> text=Flags and limits")
        page.click("td.main >> text=beta")
        page.click("text=Grant an override")
        page.select_option("[name=flag_value]", "true")
        in_two_weeks = utcnow() + timedelta(days=14)
        page.fill("#field-expires_at", in_two_weeks.strftime("%Y-%m-%dT%H:%M"))
        page.click("main button")
        page.wait_for_selector(".notice >> text=The override is in force.")
        assert page.inner_text(".figure >> nth=0") == "on"

        page.click(".tabs >> text=Flags and limits")
        page.click("td.main >> text=calls")
        page.click("text=Grant an override")
        page.fill("[name=flag_value]", "250")
        page.click("main button")
        page.wait_for_selector(".notice >> text=The override is in force.")
        assert "250" in page.inner_text(".figure >> nth=0")

        page.click(".side >> text=Webhooks in")
        page.select_option("#filter-status", "failed")
        page.click("text=Apply")
        page.click("td.main a")
        page.click("text=Replay")
        page.wait_for_selector(".notice >> text=The event will be applied again.")

        page.click(".side >> text=Audit")
        page.click("text=My changes")
        rows = page.locator("#rows > tr")
        for place, action in enumerate(
            ("replayed the webhook event", "set calls to 250", "set beta to on")
        ):
            expect(rows.nth(place)).to_contain_text(f"You {action}", use_inner_text=True)
        page.click("#rows > tr >> nth=1 >> summary")
        assert "250" in page.inner_text("#rows > tr >> nth=1")


class TestOperator:
    def test_a_day_that_begins_with_numbers(self, visit):
        """What wants attention leads to its list, the list to the tenant, and there it is mended."""
        tenant = create_tenant(name="Acme Robotics", slug="acme")
        create_subscription(tenant, bp_subscription_id="sub_late", bp_status="past_due")
        create_limits("pro", limit_flag("calls"))
        browser = visit()
        page = browser.page
        page.emulate_media(color_scheme="dark", reduced_motion="reduce")
        page.set_viewport_size({"width": 1280, "height": 900})

        browser.open("/console")
        page.click(".numbers >> text=past-due subscriptions")
        page.click("td >> text=Acme Robotics")
        assert "sub_late is past due" in page.inner_text(".attention")

        page.click("text=Assign a plan")
        page.select_option("[name=plan_name]", "pro")
        page.fill("#field-until", (utcnow() + timedelta(days=3)).strftime("%Y-%m-%dT%H:%M"))
        page.fill("[name=reason]", "until the invoice is paid")
        page.click("main form button.main")
        page.wait_for_selector(".notice >> text=The plan is pro and ends in 3 days.")
        assert "The trial of pro ends in 3 days" in page.inner_text(".attention")
        page.click("text=Extend 7 days")
        expect(page.locator("main")).to_contain_text("ends in 10 days")
        said = " ".join(page.inner_text(".timeline li >> nth=0").split())
        assert said.startswith("You changed the assigned plan until")

        browser.open("/console")
        page.wait_for_selector("#work .numbers")
        assert "Trials that end" not in page.inner_text("#work")


class TestRollOut:
    def test_a_flag_goes_to_one_plan_first_and_then_to_a_part(self, visit):
        """Rules are made of lists and read as sentences; what they change is told before."""
        create_limits("free", preset_flag("beta", False))
        create_tenant(slug="acme"), create_tenant(slug="initech")
        browser = visit()
        page = browser.page
        page.set_viewport_size({"width": 1280, "height": 900})

        browser.open("/console/plans")
        page.click("text=free")
        page.click(".links >> text=Edit")
        page.click("text=Add a rule")
        page.fill("[name=rules_percent]", "10")
        page.click("text=Add a rule")
        page.select_option("[name=rules_attribute] >> nth=2", "tenant.slug")
        page.select_option("[name=rules_op] >> nth=2", "in")
        page.fill("[name=rules_text] >> nth=2", "acme, globex")
        page.click("text=Move up")
        expect(page.locator(".rule legend")).to_have_text(
            ["1. If the tenant's slug is one of acme, globex: on", "2. 10 % of tenants: on"]
        )
        page.click(".rule >> nth=1 >> text=Remove")
        page.click("text=Preview")
        preview = page.locator(".preview")
        expect(preview).to_contain_text("The rules change the value of 1 of 2 tenants")
        browser.check()
        page.press("[name=rules_text] >> nth=0", "Enter")  # saves, and moves nothing

        cell = page.locator("td >> text=If the tenant's slug is one of acme, globex: on")
        expect(cell).to_be_visible()
        browser.open(f"/console/tenants/{database.row(Tenant, slug='acme').id}/flags/beta")
        assert "Rule rule-2" in page.inner_text(".facts")
        assert "decides" in page.inner_text(".facts")
        browser.check([LOOKS[1]])


class TestBilling:
    """A billing provider on the console, with the simulated Stripe."""

    looks = [(scheme, 1280 if width > 390 else 390, rules) for scheme, width, rules in LOOKS]

    @pytest.fixture
    def stripe(self, app):
        with Stripe(secret="whsec_console").serving() as account:
            yield account

    @pytest.fixture
    def connected(self, environment, stripe):
        """The service with Stripe's secret and API key."""
        with service(environment, stripe) as app:
            yield app

    @pytest.fixture
    def base_url(self, connected):
        with serving(connected) as url:
            yield url

    def test_from_an_event_without_a_tenant_to_seats(self, connected, stripe, visit):
        tenant = finding.create_tenant(name="Acme Robotics", slug="acme")
        create_limits("team", limit_flag("seats", 3))
        customer = stripe.create_customer(is_told=False)
        trial = timedelta(days=9000)
        one = stripe.create(Line("team", 12, 4900), customer=customer, trial=trial)
        ids = post_all(connected, stripe)
        with reader_of(connected):
            wait_for(ids[0], status="waiting_tenant")
        browser = visit()
        page = browser.page

        browser.open("/console")
        page.click(".numbers >> text=billing events that wait for a tenant")
        browser.check(self.looks)
        page.click("text=Choose the tenant of")
        page.fill("[name=tenant_id]", "Acme Robotics")
        browser.check(self.looks)
        page.click("main form button.main")
        page.wait_for_selector(".notice >> text=The customer has its tenant.")
        expect(page.locator("#waiting")).to_contain_text("No event waits.")
        with reader_of(connected):
            wait_for(ids[0], status="succeeded")

        page.click("text=New price")
        page.select_option("[name=provider]", "stripe")
        page.fill("[name=price_id]", "price_team")
        page.select_option("[name=plan_name]", "team")
        page.fill("[name=limit_key]", "seats")
        page.click("text=Preview")
        preview = page.locator(".preview")
        expect(preview).to_contain_text("Would change 1 subscription. Nothing is saved yet.")
        expect(preview).to_contain_text(f"{one.id}: team, other limits")
        browser.check(self.looks)
        page.click("main form button.main")
        page.wait_for_selector(".notice >> text=The price was saved.")
        assert database.row(PlanPrice).limit_key == "seats"
        work(connected)

        stripe.change(one, Line("team", 15, 4900), is_told=False)
        page.click("text=Compare now with Stripe")
        page.wait_for_selector("#providers .badge >> text=comparing")
        work(connected)
        page.wait_for_selector("#providers .badge >> text=quantity 1")
        browser.check(self.looks)

        browser.open(f"/console/tenants/{tenant.id}")
        reasons = page.inner_text(".reasons")
        assert "735.00 EUR monthly" in reasons
        assert "rial, ends " in reasons
        page.click(f"text={one.id}")
        main = page.locator("main")
        for said in (
            "Stripe manages this subscription",
            "customer.subscription.created from stripe: Succeeded",
            "repaired the drift of",
        ):
            expect(main).to_contain_text(said, use_inner_text=True)
        browser.check(self.looks)
        page.click("text=Cancel here all the same")
        expect(main).to_contain_text("The billing provider is not called. Its next event")
        page.fill("#confirmation", "acme")
        page.click("main form button.danger")
        page.wait_for_selector(".notice >> text=The cancellation was recorded.")
        expect(main).to_contain_text("Cancelled just now, to the end")

        browser.open(f"/console/tenants/{tenant.id}/flags")
        assert "15" in page.inner_text("main")


def work(app):
    """Let a worker do what is queued."""
    with app.app_context():
        make_worker(app, list(Queue)).work(burst=True, logging_level="WARNING")

"""The setup pages in Chromium: an administrator of a customer, on a phone."""

import pytest
from playwright.sync_api import expect

from app.domains.jobs import check_domains
from tests.conftest import serving
from tests.console.test_browser import CHROMIUM, LOOKS, Visit, chromium  # noqa: F401 - a fixture
from tests.console.test_setup import HOME, application, create_link
from tests.domains.dns_server import dns_server, records
from tests.factories import create_tenant
from tests.scim.directory import Directory
from tests.webhooks.deliveries.receiving import receiver, sender, wait_until

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium on the PATH"),
    pytest.mark.usefixtures("app"),  # which empties the database afterwards
]

PHONE = [(scheme, 390, rules) for scheme in ("light", "dark") for _, _, rules in LOOKS[:1]]
LOGO = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 3"><path d="M0 0h9v3z"/></svg>'


@pytest.fixture
def server():
    """The customer's DNS server."""
    with dns_server() as answers:
        yield answers


@pytest.fixture
def branded(environment, tmp_path, server):
    """The service with a name, a logo, and a colour that cannot be read on white."""
    logo = tmp_path / "logo.svg"
    logo.write_text(LOGO)
    look = {"SETUP_NAME": "Acme Cloud", "SETUP_LOGO": str(logo), "SETUP_COLOR": "#ffe94d"}
    look |= {"SSO_PORTAL_URL": "https://portal.example.com/{org_id}"}
    look |= {"DNS_RESOLVERS": f"{server.address.host}:{server.address.port}"}
    with application(environment, **look) as made:
        yield made


@pytest.fixture
def visit(chromium, branded):  # noqa: F811 - the fixture
    """A visit of the service; afterwards nothing may have gone wrong."""
    with serving(branded) as base_url:
        found = Visit(chromium, base_url, "nobody")
        found.page.set_viewport_size({"width": 390, "height": 800})
        yield found
        found.context.close()
    assert found.faults == []


def check(visit):
    visit.check(PHONE)
    visit.page.set_viewport_size({"width": 390, "height": 800})


class TestAdministrator:
    def test_sets_everything_up_on_a_phone(self, branded, server, visit):
        page, tenant = visit.page, create_tenant(name="Initech")
        visit.open(f"{HOME}/open?token={create_link(tenant)}")
        check(visit)
        page.click("button >> text=Continue")
        page.wait_for_selector("text=Initech")
        check(visit)

        page.click("text=Connect your directory")
        page.select_option("[name=provider]", "okta")
        check(visit)
        page.click("button >> text=Continue")
        page.wait_for_selector("text=SCIM connector base URL")
        token = page.inner_text("#paste-Authorization\\:-Bearer")
        check(visit)
        page.click("text=All tasks")
        page.click("text=Connect your directory")
        page.click("main >> text=Okta")
        page.wait_for_selector("text=has sent no request yet")
        check(visit)
        Directory(branded, token).get("/Users?count=1")
        page.wait_for_selector("text=sent its last request")  # the page asks by itself
        page.click("text=Test and activate")
        page.wait_for_selector(".notice >> text=It is active now.")
        check(visit)

        page.click("text=Go to the other tasks")
        page.click("text=Receive events")
        check(visit)
        with receiver() as hook:
            page.fill("[name=url]", hook.url)
            page.dblclick("button >> text=Continue")  # the second answer would have no secret
            assert page.inner_text("#secret").startswith("whsec_")
            check(visit)
            with sender(branded):
                page.click("text=Send a test")
                wait_until(lambda: page.reload() and page.locator("text=Activate").count())
                page.click("text=Activate")
                page.wait_for_selector(".notice >> text=It is active now.")
        check(visit)
        page.click("text=Go to the other tasks")
        page.click("text=Verify your domains")
        page.fill("[name=name]", "initech.example")
        check(visit)
        page.click("button >> text=Continue")
        record = page.locator("[data-copyable]")
        expect(record).to_have_count(2)
        name, value = record.all_inner_texts()
        check(visit)
        server.set(name, records(f'TXT "{value}"'))
        page.click("text=Verify now")
        with branded.app_context():
            check_domains()
        page.wait_for_selector("text=The domain is verified")  # the page asks by itself
        check(visit)

        page.click("text=Go to the other tasks")
        expect(page.locator(".badge >> text=done")).to_have_count(3)
        page.click("text=Set up single sign-on")
        check(visit)

    def test_of_a_second_phone_is_told_to_ask_for_a_link(self, visit, branded):
        page, token = visit.page, create_link(create_tenant())
        branded.test_client().post(
            f"{HOME}/open", data={"token": token}, headers={"Sec-Fetch-Site": "same-origin"}
        )

        visit.open(f"{HOME}/open?token={token}")
        with page.expect_response(lambda answer: answer.request.method == "POST") as answer:
            page.click("button >> text=Continue")

        assert answer.value.status == 403
        page.wait_for_selector("text=another browser has opened it")
        visit.faults.clear()  # Chromium reports the status
        check(visit)

"""What attackers try on every page and every form: scripts, forged requests, frames, foreign ids."""

import json
import re
from html.parser import HTMLParser
from itertools import cycle
from urllib.parse import quote, urlsplit

import pytest

from app.console.access import HEADERS
from tests import database
from tests.console.conftest import Browser
from tests.console.test_sessions import FOREIGN
from tests.console.world import (
    ATTACK,
    LEFT_OUT,
    address_of,
    addresses,
    create_world,
    one_of_each,
    pages_of,
)
from tests.factories import create_member, create_tenant
from tests.hostile.document import Document
from tests.hostile.world import create_world as create_hostile_world

# What a text can be where its format is checked: an address, a URL.
ATTACKS = (
    ATTACK,
    '"<img/src=x/onerror=alert(1)>"@example.com',
    "https://example.com/\"><script>alert(1)</script>?'onload=alert(1)",
    "javascript:alert(1)",
)
# They end what the others need, or are answered by no page.
NOT_SENT = re.compile(r"/active$|/cancel$|/rotate$|^/scim|^/ofrep|/oauth/")
ADDRESSES = ("href", "src", "action", "hx-get", "hx-post")
PAGES_OF_A_KIND = 5


class Page(HTMLParser):
    """A page as a browser reads it: what in it could run, its links, and its inputs."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.dangers: list[str] = []
        self.links: list[str] = []
        self.inputs: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        is_own = tag != "script" or (values.get("src") or "").startswith("/console/assets/")
        if tag in ("img", "iframe", "object", "style") or not is_own:
            self.dangers.append(self.get_starttag_text() or tag)
        for name, value in attrs:
            if name.startswith("on") or name == "style":
                self.dangers.append(f"{name}={value}")
            if name in ADDRESSES and not (value or "").startswith(("/", "#", "?")):
                self.dangers.append(f"{name}={value}")
        if tag == "a":
            self.links.append(values.get("href") or "")
        if tag in ("input", "select", "textarea", "button") and values.get("name"):
            self.inputs.append(values["name"] or "")


@pytest.fixture
def world(app):
    return create_world(create_tenant(name="Acme", slug="acme"))


class TestScripts:
    def test_in_every_text_that_the_api_accepts_are_text_on_every_page(self, app, signed_in):
        world = create_hostile_world(app, Document.of(app))
        accepted = 0
        for operation in world.document.guarded:
            if not (operation.is_change and operation.schema) or NOT_SENT.search(operation.path):
                continue
            for place in world.document.places(operation.schema):
                for attack in ATTACKS if takes_text(world.document, operation, place) else ():
                    body = world.body_with(operation, place, json.dumps(attack).encode())
                    accepted += world.send(operation, body=body).status < 300

        pages = self.crawl(app, signed_in())

        assert {path: page.dangers for path, page in pages.items() if page.dangers} == {}
        assert accepted > 60
        assert len(pages) > 60

    def crawl(self, app, browser):
        """Pages that links lead to, at most :data:`PAGES_OF_A_KIND` of one kind."""
        urls, paths, found, counts = app.url_map.bind("localhost"), ["/console"], {}, {}
        while paths:
            path = paths.pop(0)
            endpoint, _ = urls.match(urlsplit(path).path, "GET")
            counts[endpoint] = counts.get(endpoint, 0) + 1
            if path in found or counts[endpoint] > PAGES_OF_A_KIND:
                continue
            answer = browser.get(path)
            assert answer.status_code == 200, path
            found[path] = Page(answer.text if answer.mimetype == "text/html" else "")
            paths += [link for link in found[path].links if link.startswith("/console")]
        return found

    def test_in_every_parameter_of_an_address_are_text(self, app, world, browser):
        for path in [*one_of_each(app, world), "/console/sign-in", "/console/sign-in/link"]:
            names = {*Page(browser.get(path).text).inputs, "cursor", "next", "token", "address"}
            query = "&".join(f"{name}={quote(ATTACK)}" for name in names)

            assert Page(browser.get(f"{path}?{query}").text).dangers == [], path

    def test_in_every_input_of_a_form_are_text(self, app, world, browser):
        for path in one_of_each(app, world, "POST"):
            page = browser.get(path)
            if page.status_code != 200 or path.endswith("/choose-tenant"):
                continue
            answer = browser.post(path, data=dict.fromkeys(Page(page.text).inputs, ATTACK))

            assert Page(answer.text).dangers == [], path


class TestForgery:
    def test_of_every_form_changes_nothing(self, app, world, browser):
        """Each form with some of the headers, and one form with all of them."""
        before = database.query("SELECT count(*) FROM audit_events")
        others = ["/console/suppressions/remove", "/console/sign-in/link"]
        paths = [*addresses(app, world, method="POST"), *others]
        data = {"form_confirmation": "acme"}

        statuses = {
            (path, str(headers)): browser.post(path, headers=headers, data=data).status_code
            for path, headers in [
                *zip(paths, cycle(FOREIGN)),
                *((paths[0], headers) for headers in FOREIGN),
            ]
        }

        assert {sent: each for sent, each in statuses.items() if each != 403} == {}
        assert database.query("SELECT count(*) FROM audit_events") == before
        assert browser.get("/console").status_code == 200  # not signed out


class TestFrames:
    def test_of_every_page_are_refused(self, app, world, browser):
        for path in [*addresses(app, world), "/console/nothing", "/console/sign-in"]:
            headers = browser.get(path).headers

            assert {name: headers[name] for name in HEADERS} == HEADERS, path
            is_download = "Content-Disposition" in headers
            assert is_download or headers["Cache-Control"] == "no-store", path

    def test_and_scripts_are_refused_by_the_policy(self):
        policy = HEADERS["Content-Security-Policy"]

        assert "frame-ancestors 'none'" in policy
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy


class TestForeignRows:
    """A stranger is an owner of another tenant, who has guessed every id."""

    @pytest.fixture
    def stranger(self, signed_in):
        return signed_in(create_member(create_tenant(name="Other", slug="other"), "owner")[0])

    def test_cannot_be_changed(self, app, stranger, world):
        before = database.query("SELECT count(*) FROM audit_events")
        data = {"form_confirmation": "acme", "move": f"{world['field_id']} ", "name": "Taken"}

        for path in addresses(app, world, of_tenant=True, method="POST"):
            assert stranger.post(path, data=data).status_code in (403, 404), path

        assert database.query("SELECT count(*) FROM audit_events") == before

    @pytest.mark.parametrize("method", ["GET", "POST"])
    @pytest.mark.parametrize("is_platform", [False, True])
    def test_are_not_below_another_tenant(self, app, signed_in, world, method, is_platform):
        """The address names one tenant, and rows of another one."""
        tenant = create_tenant(name="Other", slug="other")
        browser = signed_in(None if is_platform else create_member(tenant, "owner")[0])
        before = database.query("SELECT count(*) FROM audit_events")
        data = {"form_confirmation": "other", "type": "user.created", "role": "viewer"}

        statuses = {
            rule.endpoint: browser.open(
                method, address_of(rule, {**world, "tenant_id": tenant.id}), data=data
            ).status_code
            for rule in pages_of(app, method)
            if is_below_a_tenant(rule)
        }

        assert {name: each for name, each in statuses.items() if each not in (403, 404)} == {}
        assert database.query("SELECT count(*) FROM audit_events") == before
        assert len(statuses) > 10


def takes_text(document, operation, place):
    """Whether some text can stand there that is not one of a list."""
    schema = operation.schema
    for step in place:
        schema = document.below(schema, step)
    other = schema.get("type") in ("boolean", "integer", "number")
    return not other and schema.get("format") not in ("uuid", "date-time") and "enum" not in schema


def is_below_a_tenant(rule):
    """Whether a page is about a row of a tenant."""
    names = rule.arguments - {"tenant_id", "key", "kind"}
    return bool("tenant_id" in rule.arguments and names) and rule.endpoint not in LEFT_OUT


class TestReuse:
    @pytest.mark.parametrize("method", ["GET", "POST"])
    def test_of_a_session_that_has_ended_opens_no_page(self, app, world, method, browser):
        browser.post("/console/sign-out")

        for caller in (Browser(app, browser.secret), Browser(app)):
            for path in addresses(app, world, method=method):
                answer = caller.open(method, path)
                wanted = "/console/sign-in?next=/console" if method == "GET" else "/console/sign-in"
                is_closed = (answer.location or "").startswith(wanted)

                assert is_closed or (method, answer.status_code) == ("POST", 403), path

"""Signing in by OpenID Connect, with a certified provider program of npm."""

import json
import re
import subprocess
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from app import create_app
from app.auth.oidc import Attempt, SignInRefused
from tests import database
from tests.console.conftest import Browser
from tests.factories import (
    create_domain,
    create_member,
    create_membership,
    create_tenant,
    create_user,
)
from tests.npm import node_with

FOLDER = Path(__file__).with_name("oidc")
CLIENT = {"OIDC_CLIENT_ID": "console", "OIDC_CLIENT_SECRET": "a secret of the tests"}
CALLBACK = "http://localhost/console/sign-in/callback"


@pytest.fixture(scope="module")
def issuer(request):
    command = node_with(FOLDER, FOLDER / "provider.mjs", request.config.cache)
    with subprocess.Popen(
        [*command, *CLIENT.values(), CALLBACK],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        yield json.loads(process.stdout.readline())["issuer"]
        process.terminate()


@pytest.fixture(scope="module")
def oidc_app(app, environment, issuer):
    return create_app({**environment, **CLIENT, "OIDC_ISSUER": issuer}, with_commands=False)


@pytest.fixture
def browser(oidc_app):
    return Browser(oidc_app)


def begin(browser, path="/console/sign-in/oidc"):
    return browser.get(path, headers={}).location


def answer_of(url, name):
    """Sign in at the provider; the path and query with which it leads back."""
    with httpx.Client(follow_redirects=False, timeout=10) as client:
        answer = client.get(url)
        for _ in range(12):
            if answer.is_redirect:
                target = str(answer.next_request.url)
                if target.startswith(CALLBACK):
                    return target.removeprefix("http://localhost")
                answer = client.get(target)
                continue
            action = re.search(r'<form[^>]*action="([^"]+)"', answer.text)[1]
            prompt = re.search(r'name="prompt" value="([^"]+)"', answer.text)[1]
            sent = {"prompt": prompt, "login": name, "password": "any"}
            answer = client.post(str(answer.url.join(action)), data=sent)
    raise AssertionError("the provider does not lead back")


class TestSignIn:
    def test_begins_a_session_of_the_person_and_the_organization(self, browser):
        tenant = create_tenant()
        name = f"ada@{tenant.idp_org_id}"
        create_member(tenant, idp_user_id=name)
        page = browser.get("/console/tenants?slug=a").location
        link = re.search(r'href="([^"]+/sign-in/oidc[^"]*)"', browser.get(page).text)[1]
        url = begin(browser, link.replace("&amp;", "&"))

        back = answer_of(url, name)
        answer = browser.get(back, headers={})

        assert answer.location == "/console/tenants?slug=a"
        assert browser.get(f"/console/tenants/{tenant.id}").status_code == 200

    def test_lets_a_person_of_several_tenants_choose(self, browser):
        for tenant in (create_tenant(), create_tenant()):
            create_membership(tenant, create_user(tenant, idp_user_id="ada"))

        browser.get(answer_of(begin(browser), "ada"), headers={})

        assert browser.get("/console").location.startswith("/console/choose-tenant")

    def test_lets_in_by_a_verified_domain(self, browser):
        tenant = create_tenant()
        create_domain(tenant, name="example.com", state="verified", join="auto")

        browser.get(answer_of(begin(browser), "ada!example.com"), headers={})

        assert tenant.name in browser.get("/console/choose-tenant").text
        assert database.query("SELECT role FROM memberships")[0].role == "member"

    def test_asks_with_pkce_state_and_nonce(self, browser):
        query = parse_qs(urlsplit(begin(browser)).query)

        assert query["code_challenge_method"] == ["S256"]
        assert query["response_type"] == ["code"]
        assert query["redirect_uri"] == [CALLBACK]
        assert all(len(query[name][0]) >= 43 for name in ("state", "nonce", "code_challenge"))


class TestAttacks:
    def test_an_answer_cannot_be_used_twice(self, browser):
        back = answer_of(begin(browser), "ada")
        state = browser.client.get_cookie("console-state").value
        browser.get(back, headers={})
        browser.client.delete_cookie("console")
        browser.client.set_cookie("console-state", state, path="/")

        assert browser.get(back, headers={}).status_code == 403

    def test_an_answer_for_another_browser_is_refused(self, oidc_app, browser):
        victim = Browser(oidc_app)
        begin(victim)

        back = answer_of(begin(browser), "mallory")

        assert victim.get(back, headers={}).status_code == 403
        assert Browser(oidc_app).get(back, headers={}).status_code == 403
        assert database.query("SELECT * FROM console_sessions") == []

    def test_a_code_of_another_attempt_is_refused(self, browser):
        code = parse_qs(urlsplit(answer_of(begin(browser), "mallory")).query)["code"][0]
        state = parse_qs(urlsplit(begin(browser)).query)["state"][0]

        answer = browser.get(f"/console/sign-in/callback?code={code}&state={state}", headers={})

        assert answer.status_code == 403  # the verifier of PKCE is another one

    @pytest.mark.parametrize("query", ["", "?state=&code=x", "?error=access_denied", "?code=x"])
    def test_an_answer_without_a_state_is_refused(self, browser, query):
        assert browser.get(f"/console/sign-in/callback{query}", headers={}).status_code == 403

    def test_an_id_token_of_another_nonce_client_issuer_or_key_is_refused(self, oidc_app, issuer):
        provider = oidc_app.extensions["identity_provider"]
        provider.authorization_url(Attempt("n", "v"), "s", CALLBACK)  # reads the metadata
        now = int(time.time())
        claims = {"iss": issuer, "aud": "console", "sub": "ada", "nonce": "n"}
        claims |= {"iat": now, "exp": now + 60}
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        found = {
            jwt.encode(claims, key, algorithm="RS256", headers={"kid": "1"}),
            jwt.encode(claims, "", algorithm="none", headers={"kid": "1"}),
            jwt.encode(claims, "x" * 32, algorithm="HS256", headers={"kid": "1"}),
        }

        for token in found:
            with pytest.raises(SignInRefused):
                provider.verify(token, Attempt("n", "v"))


class TestIdToken:
    """ID tokens whose signature is right: the provider's key is replaced by one of the test."""

    @pytest.fixture
    def sign(self, oidc_app, issuer):
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        provider = type(oidc_app.extensions["identity_provider"])(oidc_app.extensions["config"])
        provider.keys = type("Keys", (), {"find": lambda _, token: ("RS256", key.public_key())})()

        def verify(**changes):
            now = int(time.time())
            claims = {"iss": issuer, "aud": "console", "sub": "ada", "nonce": "n"}
            claims |= {"iat": now, "exp": now + 60, **changes}
            claims = {name: value for name, value in claims.items() if value is not None}
            return provider.verify(jwt.encode(claims, key, algorithm="RS256"), Attempt("n", "v"))

        return verify

    def test_is_accepted(self, sign):
        assert sign(org_id="org_1").org_id == "org_1"

    @pytest.mark.parametrize(
        "changes",
        [
            {"nonce": "other"}, {"nonce": None}, {"aud": "another-client"}, {"exp": 1}, {"exp": None},
            {"aud": ["console", "other"], "azp": "other"}, {"iss": "https://evil.example"},
            {"sub": None},
        ],
    )  # fmt: skip
    def test_is_refused(self, sign, changes):
        with pytest.raises(SignInRefused):
            sign(**changes)

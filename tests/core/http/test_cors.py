"""What a browser sees of the service from another origin."""

import pytest
from psycopg2 import OperationalError

from app import create_app
from app.auth.permissions import Permission
from app.core.http.cors import REQUEST_HEADERS, RESPONSE_HEADERS
from app.flags import ofrep
from tests.conftest import Api
from tests.document import operations
from tests.factories import create_api_key, create_preset, create_tenant, platform_token
from tests.messages import sent_messages

ALLOWED, SECOND, REFUSED = (
    "https://app.example.com",
    "http://localhost:5173",
    "https://evil.example",
)
OFREP = "/ofrep/v1/evaluate/flags"


@pytest.fixture(scope="module")
def open_app(app, environment):
    return create_app({**environment, "CORS_ORIGINS": f"{ALLOWED}, {SECOND}"})


@pytest.fixture
def browser(open_app):
    return Api(open_app)


@pytest.fixture
def limited(with_limits):
    return Api(with_limits(CORS_ORIGINS=ALLOWED, RATELIMIT_DEFAULT="1/month"))


def preflight(api, path, origin=ALLOWED):
    """What a browser sends before a script's request; without a credential."""
    asked = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type,if-none-match",
    }
    return api.request("OPTIONS", path, headers=asked)


def cors_headers(answer):
    return {name for name, _ in answer.headers if name.startswith("Access-Control-")}


class TestPreflight:
    @pytest.mark.parametrize("origin", [ALLOWED, SECOND])
    def test_of_an_allowed_origin_needs_no_credential(self, browser, origin):
        answer = preflight(browser, OFREP, origin)

        assert (answer.status_code, answer.data) == (204, b"")
        assert answer.access_control_allow_origin == origin
        assert set(answer.access_control_allow_headers) == set(REQUEST_HEADERS)
        assert answer.access_control_max_age > 0
        assert "Origin" in answer.vary
        assert "Access-Control-Allow-Credentials" not in answer.headers
        assert answer.headers["X-Request-Id"]

    def test_allows_every_method_and_header_that_the_api_has(self, browser, open_app):
        answer = preflight(browser, "/v1/tenants")
        document = open_app.test_client().get("/openapi.json").get_json()
        sent = {
            name
            for operation in operations(document)
            if operation.path.startswith(("/v1/", "/ofrep/")) and operation.permission
            for name in operation.parameters("header")
        }

        methods = {one.method.upper() for one in operations(document)}
        assert methods <= set(answer.access_control_allow_methods)
        assert sent | {"Authorization", "Content-Type"} <= set(answer.access_control_allow_headers)

    def test_is_answered_for_paths_that_do_not_exist_so_that_a_script_sees_the_404(self, browser):
        assert preflight(browser, "/v1/nothing").status_code == 204

    @pytest.mark.parametrize(
        "origin",
        [REFUSED, "null", "*", "", f"{ALLOWED}.evil.example", f"{ALLOWED}:8443", "http://x"],
    )
    def test_of_another_origin_gets_nothing(self, browser, origin):
        answer = preflight(browser, OFREP, origin)

        assert answer.status_code == 405
        assert cors_headers(answer) == set()
        assert "Origin" in answer.vary

    @pytest.mark.parametrize("path", ["/healthz", "/webhooks/idp", "/openapi.json", "/docs/"])
    def test_is_for_the_api_only(self, browser, path):
        answer = preflight(browser, path)

        assert answer.status_code == 405
        assert cors_headers(answer) == set()

    def test_is_not_any_options_request(self, browser):
        answer = browser.request("OPTIONS", OFREP, headers={"Origin": ALLOWED})

        assert answer.status_code == 405

    def test_counts_for_no_rate_limit_and_asks_no_database(self, limited):
        with sent_messages() as messages:
            answers = [preflight(limited, OFREP) for _ in range(3)]

        assert messages == []
        assert [answer.status_code for answer in answers] == [204, 204, 204]
        assert not any("RateLimit-Limit" in answer.headers for answer in answers)


class TestAnswers:
    def test_of_success_are_readable_with_their_headers(self, browser):
        create_preset(beta=True)
        headers = {"Origin": ALLOWED}
        token = create_api_key(create_tenant(), [Permission.FLAGS_READ])

        first = browser.post(OFREP, token=token, json={}, headers=headers)
        known = headers | {"If-None-Match": first.headers["ETag"]}
        again = browser.post(OFREP, token=token, json={}, headers=known)

        assert (first.status_code, again.status_code) == (200, 304)
        for answer in (first, again):
            assert answer.access_control_allow_origin == ALLOWED
            assert set(answer.access_control_expose_headers) == set(RESPONSE_HEADERS)
            assert {"Origin", "Authorization"} == set(answer.vary)
            assert "Access-Control-Allow-Credentials" not in answer.headers

    @pytest.mark.parametrize(
        ("path", "sent", "status"),
        [
            ("/v1/tenants", {}, 401),
            (OFREP, {}, 401),
            ("/v1/tenants", {"token": "platform"}, 422),
            (OFREP, {"token": "platform"}, 400),
            ("/v1/nothing", {}, 404),
            ("/v1/tenants/", {}, 307),
            ("/v1/users/x", {}, 405),
        ],
    )
    def test_of_errors_are_readable(self, browser, path, sent, status):
        token = platform_token() if sent else None

        answer = browser.post(path, token=token, json={}, headers={"Origin": ALLOWED})

        assert answer.status_code == status
        assert answer.access_control_allow_origin == ALLOWED
        assert "Retry-After" in answer.access_control_expose_headers

    @pytest.mark.parametrize(("fault", "status"), [(OperationalError, 503), (RuntimeError, 500)])
    def test_of_faults_are_readable(self, browser, monkeypatch, fault, status):
        def fail(*_):
            raise fault

        monkeypatch.setattr(ofrep, "evaluate_all", fail)
        token = create_api_key(create_tenant(), [Permission.FLAGS_READ])

        answer = browser.post(OFREP, token=token, json={}, headers={"Origin": ALLOWED})

        assert answer.status_code == status
        assert answer.access_control_allow_origin == ALLOWED

    def test_of_the_rate_limit_are_readable(self, limited):
        token = create_api_key(create_tenant(), [Permission.FLAGS_READ])

        limited.post(OFREP, token=token, json={})
        answer = limited.post(OFREP, token=token, json={}, headers={"Origin": ALLOWED})

        assert answer.status_code == 429
        assert answer.headers["Retry-After"]
        assert answer.access_control_allow_origin == ALLOWED

    @pytest.mark.parametrize("headers", [{}, {"Origin": REFUSED}, {"Origin": "null"}])
    def test_to_other_origins_have_no_header_but_vary(self, browser, headers):
        answer = browser.get("/v1/tenants", token=platform_token(), headers=headers)

        assert answer.status_code == 200
        assert cors_headers(answer) == set()
        assert set(answer.vary) == {"Origin"}

    def test_beside_the_api_are_the_same_for_every_origin(self, browser):
        answer = browser.get("/healthz", headers={"Origin": ALLOWED})

        assert cors_headers(answer) == set()
        assert "Vary" not in answer.headers


class TestWithoutOrigins:
    def test_nothing_is_let_in(self, api):
        asked = preflight(api, OFREP)
        answer = api.get("/v1/tenants", token=platform_token(), headers={"Origin": ALLOWED})

        assert asked.status_code == 405
        assert cors_headers(asked) | cors_headers(answer) == set()
        assert "Vary" not in answer.headers

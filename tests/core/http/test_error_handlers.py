import pytest
from flask import Flask, abort
from psycopg2 import DataError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from werkzeug.middleware.proxy_fix import ProxyFix
from werkzeug.test import Client

from app.core.errors import Invalid, NotFound, PreconditionFailed, Unauthenticated, error
from app.core.http.error_handlers import register_error_handlers
from app.core.http.routing import configure_routing

SECRET = "SELECT password FROM accounts"
FAULTS = {
    "stale": PreconditionFailed("The tenant has changed."),
    "unauthenticated": Unauthenticated(),
    "not-found": NotFound(),
    "invalid": Invalid(error(["body", "a"], "finite_number", "no", float("nan"))),
    "disconnected": OperationalError(SECRET),
    "exhausted": PoolTimeout("QueuePool limit reached"),
    "data": DataError(SECRET),
    "unforeseen": RuntimeError(SECRET),
}


@pytest.fixture(scope="module")
def client():
    app = Flask(__name__, static_folder=None)
    configure_routing(app)
    register_error_handlers(app)

    @app.get("/raise/<name>")
    def raise_fault(name):
        raise FAULTS[name]

    @app.get("/abort/<int:status>")
    def abort_with(status):
        abort(status, description=SECRET)

    @app.post("/things/<thing_id>")
    def post_thing(thing_id):
        return thing_id

    return app.test_client()


class TestBodies:
    def test_an_error_of_the_service_has_a_sentence_and_perhaps_a_code(self, client):
        stale = client.get("/raise/stale")
        unauthenticated = client.get("/raise/unauthenticated")

        assert (stale.status_code, stale.json) == (
            412,
            {"detail": "The tenant has changed.", "code": "stale_version"},
        )
        assert unauthenticated.json == {"detail": "Not authenticated"}
        assert unauthenticated.headers["WWW-Authenticate"] == "Bearer"

    def test_an_input_that_json_cannot_carry_is_null(self, client):
        [entry] = client.get("/raise/invalid").json["detail"]

        assert entry == {"type": "finite_number", "loc": ["body", "a"], "msg": "no", "input": None}

    @pytest.mark.parametrize("fault", ["disconnected", "exhausted"])
    def test_an_absent_database_is_503_with_the_time_to_come_back(self, client, fault):
        answer = client.get(f"/raise/{fault}")

        assert answer.status_code == 503
        assert answer.json["code"] == "database_unavailable"
        assert int(answer.headers["Retry-After"]) > 0

    @pytest.mark.parametrize("fault", ["data", "unforeseen"])
    def test_the_unforeseen_is_a_500_that_says_nothing(self, client, fault):
        answer = client.get(f"/raise/{fault}")

        assert (answer.status_code, answer.json) == (500, {"detail": "Internal Server Error"})

    @pytest.mark.parametrize("status", [400, 408, 413, 429])
    def test_an_http_error_is_answered_in_json_and_without_its_description(self, client, status):
        answer = client.get(f"/abort/{status}")

        assert answer.status_code == status
        assert set(answer.json) == {"detail"}
        assert SECRET not in answer.text


class TestRouting:
    def test_a_redirect_names_the_address_of_the_settings(self, client, monkeypatch):
        monkeypatch.setitem(client.application.config, "PUBLIC_URL", "https://api.example.com/")

        answer = client.post("/things/1/", headers={"Host": "elsewhere.example"})

        assert answer.headers["Location"] == "https://api.example.com/things/1"

    def test_a_redirect_names_no_host_of_the_clients(self, client):
        claims = {"Host": "evil.example", "X-Forwarded-Host": "evil.example"}

        answer = client.post("/things/1/", headers={**claims, "X-Forwarded-Prefix": "/evil"})

        assert answer.headers["Location"] == "http://localhost/things/1"

    def test_a_redirect_to_a_slash_names_no_host_of_the_clients_either(self, app):
        answer = app.test_client().get("/docs", headers={"Host": "evil.example"})

        assert answer.status_code == 307
        assert answer.headers["Location"] == "http://localhost/docs/"

    def test_no_path_is_redirected_to_a_slash_by_werkzeug(self, app):
        """Its redirect would name the host of the client's ``Host`` header."""
        rules = {one.rule for one in app.url_map.iter_rules()}

        assert {rule for rule in rules if rule.endswith("/")} <= {f"{rule}/" for rule in rules} | {
            "/"
        }

    @pytest.mark.parametrize(
        ("forwarded", "host"),
        [
            ("api.example.com", "api.example.com"),
            ("evil.example, api.example.com:8443", "api.example.com:8443"),
            (None, "localhost"),
        ],
    )
    def test_a_redirect_names_the_host_of_the_trusted_proxy(self, client, forwarded, host):
        app = client.application
        headers = {"Host": "evil.example", "X-Forwarded-Prefix": "/evil"}
        headers |= {"X-Forwarded-Host": forwarded} if forwarded else {}

        answer = Client(ProxyFix(app.wsgi_app, x_host=1, x_proto=1)).post(
            "/things/1/", headers=headers
        )

        assert answer.headers["Location"] == f"http://{host}/things/1"

    @pytest.mark.parametrize("path", ["/things/", "/nope/", "/things//1", "/Things/1", "/"])
    def test_a_path_that_stands_for_no_other_is_404(self, client, path):
        assert client.post(path).status_code == 404

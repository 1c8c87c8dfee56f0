"""``gunicorn wsgi:app``: limits of bodies, redirects, and paths as they were sent."""

import http.client
import json
from contextlib import closing

import pytest

from tests.factories import platform_token
from tests.running.serving import HOST, answers, web_server


@pytest.fixture(scope="module")
def port(app, environment, tmp_path_factory):
    settings = {**environment, "RATELIMIT_ENABLED": "0"}
    with web_server(settings, tmp_path_factory.mktemp("web"), workers=1) as (found, _):
        yield found


class TestBodies:
    @pytest.mark.parametrize("is_chunked", [False, True])
    @pytest.mark.parametrize(
        ("path", "media_type", "limit", "refusal"),
        [
            ("/v1/users", "application/json", 2**20, 422),
            ("/v1/imports", "application/x-ndjson", 50 * 2**20, None),
            ("/webhooks/idp", "application/json", 5 * 2**20, 401),
        ],
    )
    def test_above_the_limit_of_their_path_are_413(
        self, port, path, media_type, limit, refusal, is_chunked
    ):
        headers = {"Authorization": f"Bearer {platform_token()}", "Content-Type": media_type}

        def send(size: int) -> tuple[int, object]:
            body = iter([b"x" * size]) if is_chunked else b"x" * size
            with closing(http.client.HTTPConnection(HOST, port, timeout=60)) as connection:
                connection.request("POST", path, body, headers)
                answer = connection.getresponse()
                return answer.status, json.loads(answer.read())["detail"]

        assert refusal is None or send(limit)[0] == refusal
        text = "The request body is larger than this endpoint takes: at most {} bytes."
        assert send(limit + 1) == (413, text.format(limit))


class TestRedirect:
    def test_names_the_address_of_the_connection(self, port):
        evil = dict.fromkeys(("SCRIPT_NAME", "Script-Name", "X-Forwarded-Prefix"), "/evil")
        evil |= dict.fromkeys(("Host", "X-Forwarded-Host"), "evil.example")
        with closing(http.client.HTTPConnection(HOST, port, timeout=20)) as connection:
            connection.request("GET", "/v1/users/?limit=1", headers=evil)
            answer = connection.getresponse()

        assert answer.status == 307
        assert answer.headers["Location"] == f"http://{HOST}:{port}/v1/users?limit=1"


class TestPaths:
    def test_are_taken_as_they_were_sent(self, port):
        assert answers(port, "/v1/users?email=" + "a" * 9000) == 401
        assert answers(port, "//v1/users") == 404

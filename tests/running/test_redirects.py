"""The address in a redirect, from the service behind its real server."""

import http.client
from contextlib import closing

import pytest

from tests.running.serving import HOST, web_server

CLAIMS = {
    "Host": "evil.example",
    "SCRIPT_NAME": "/evil",
    "Script-Name": "/evil",
    "X-Forwarded-Prefix": "/evil",
}


def redirected(port: int, **headers: str) -> str | None:
    with closing(http.client.HTTPConnection(HOST, port, timeout=20)) as connection:
        connection.request("GET", "/v1/users/?limit=1", headers={**CLAIMS, **headers})
        answer = connection.getresponse()
        assert answer.status == 307
        return answer.headers["Location"]


class TestRedirect:
    def test_names_the_address_of_the_connection(self, environment, app, tmp_path):
        with web_server(environment, tmp_path, workers=1) as (port, _):
            found = redirected(port, **{"X-Forwarded-Host": "evil.example"})

        assert found == f"http://{HOST}:{port}/v1/users?limit=1"

    @pytest.mark.parametrize(
        ("settings", "base"),
        [
            ({"TRUSTED_PROXIES": "1"}, "https://api.example.com"),
            ({"TRUSTED_PROXIES": "1", "PUBLIC_URL": "https://x.example"}, "https://x.example"),
        ],
    )
    def test_names_the_host_of_the_proxy_or_of_the_settings(
        self, environment, app, tmp_path, settings, base
    ):
        forwarded = {"X-Forwarded-Host": "api.example.com", "X-Forwarded-Proto": "https"}

        with web_server(environment | settings, tmp_path, workers=1) as (port, _):
            found = redirected(port, **forwarded)

        assert found == f"{base}/v1/users?limit=1"

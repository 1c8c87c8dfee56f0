"""The address in a redirect, from the service behind its real server."""

import http.client
from contextlib import closing

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

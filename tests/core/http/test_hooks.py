"""What runs before each request."""

from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
from werkzeug.test import run_wsgi_app


class TestPaths:
    @pytest.mark.parametrize("path", ["//healthz", "/healthz\0"])
    def test_an_odd_path_is_404_with_a_request_id(self, client, path):
        answer = client.get("/", environ_overrides={"PATH_INFO": path})

        assert (answer.status_code, answer.json) == (404, {"detail": "Not Found"})
        assert answer.headers["X-Request-Id"]


class TestHost:
    @pytest.mark.parametrize("hosts", [[], ["a.example", "b.example"]])
    def test_is_sent_once_with_http_1_1(self, base_url, hosts):
        address = urlsplit(base_url)
        with closing(HTTPConnection(address.hostname, address.port, timeout=10)) as connection:
            connection.putrequest("GET", "/healthz", skip_host=True)
            for host in hosts:
                connection.putheader("Host", host)
            connection.endheaders()

            assert connection.getresponse().status == 400

    def test_may_be_absent_with_http_1_0(self, client):
        environ = client.get("/healthz").request.environ
        old = {name: value for name, value in environ.items() if name != "HTTP_HOST"}
        old["SERVER_PROTOCOL"] = "HTTP/1.0"

        _, status, _ = run_wsgi_app(client.application.wsgi_app, old)

        assert status == "200 OK"

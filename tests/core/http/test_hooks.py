from __future__ import annotations

import pytest


class TestPaths:
    @pytest.mark.parametrize("path", ["//healthz", "/healthz\0"])
    def test_an_odd_path_is_404_with_a_request_id(self, client, path):
        answer = client.get("/", environ_overrides={"PATH_INFO": path})

        assert (answer.status_code, answer.json) == (404, {"detail": "Not Found"})
        assert answer.headers["X-Request-Id"]

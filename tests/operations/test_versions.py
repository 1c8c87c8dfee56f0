"""The one version of the service, wherever it is shown."""

import json
import re
from pathlib import Path

import pytest

from app.core.version import HEADER, VERSION

CHANGELOG = (Path(__file__).parents[2] / "CHANGELOG.md").read_text()


class TestVersion:
    def test_is_the_newest_of_the_changelog(self):
        versions = re.findall(
            r"^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d$", CHANGELOG, re.MULTILINE
        )

        assert versions[0] == VERSION
        assert versions == sorted(versions, reverse=True)

    def test_is_that_of_the_document(self, client):
        assert client.get("/openapi.json").get_json()["info"]["version"] == VERSION

    @pytest.mark.parametrize("path", ["/healthz", "/v1/users", "/nowhere", "/scim/v2/Users"])
    def test_is_a_header_of_each_answer(self, client, path):
        assert client.get(path).headers[HEADER] == VERSION

    def test_is_shown_by_the_command(self, app):
        shown = app.test_cli_runner().invoke(args=["version"])
        as_json = app.test_cli_runner().invoke(args=["version", "--json"])

        assert shown.stdout.startswith(f"service {VERSION}\nPython ")
        assert json.loads(as_json.stdout)["service"] == VERSION


class TestServers:
    def test_the_document_names_the_address_that_is_set(self, app, environment):
        from app import create_app

        named = create_app({**environment, "PUBLIC_URL": "https://api.example.com/"})

        assert servers(app) == [{"url": "/"}]
        assert servers(named) == [{"url": "https://api.example.com"}]


def servers(app):
    return app.test_client().get("/openapi.json").get_json()["servers"]

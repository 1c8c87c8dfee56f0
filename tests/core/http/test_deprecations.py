"""What is deprecated: headers, the OpenAPI document and the changelog."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from flask import Response

from app.core.http.deprecations import DEPRECATED, Deprecation, add_headers, mark

CHANGELOG = (Path(__file__).parents[3] / "CHANGELOG.md").read_text()
ENTRY = re.compile(r"^- \*\*`([a-z_]+(?:\?[a-z_]+)?)`\*\* .*until (\d{4}-\d\d-\d\d)", re.MULTILINE)
OLD = Deprecation(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 7, 15, tzinfo=UTC))
TABLE = {"users_list": OLD, "events_list?wait": OLD}


@pytest.fixture
def document(client):
    return client.get("/openapi.json").get_json()


class TestHeaders:
    @pytest.mark.parametrize(
        ("operation", "sent"), [("users_list", []), ("events_list", ["limit", "wait"])]
    )
    def test_name_the_two_days(self, operation, sent):
        answer = Response()

        add_headers(answer, operation, sent, TABLE)

        assert answer.headers["Deprecation"] == "@1767225600"
        assert answer.headers["Sunset"] == "Wed, 15 Jul 2026 00:00:00 GMT"

    def test_are_absent_without_the_parameter(self):
        answer = Response()

        add_headers(answer, "events_list", ["limit"], TABLE)

        assert not {"Deprecation", "Sunset"} & set(answer.headers.keys())


class TestDocument:
    def test_marks_operations_and_parameters(self, document):
        before = json.dumps(document).count('"deprecated": true')

        mark(document["paths"], TABLE)

        (wait,) = (
            part
            for part in document["paths"]["/v1/events"]["get"]["parameters"]
            if part["name"] == "wait"
        )
        assert wait["deprecated"]
        assert document["paths"]["/v1/users"]["get"]["deprecated"]
        assert json.dumps(document).count('"deprecated": true') == before + 2


class TestTable:
    def test_agrees_with_the_changelog(self):
        sections = re.findall(r"^### Deprecated\n(.*?)(?=^##)", CHANGELOG, re.MULTILINE | re.DOTALL)
        listed = dict(ENTRY.findall("".join(sections)))

        assert listed == {name: f"{one.until:%Y-%m-%d}" for name, one in DEPRECATED.items()}

    def test_gives_half_a_year(self):
        assert all(
            one.until - one.since >= timedelta(days=183) and one.since.tzinfo and one.until.tzinfo
            for one in DEPRECATED.values()
        )

    def test_names_what_exists(self, document):
        operations = [
            each
            for path in document["paths"].values()
            for each in path.values()
            if "operationId" in each
        ]
        names = {each["operationId"] for each in operations} | {
            f"{each['operationId']}?{part['name']}"
            for each in operations
            for part in each.get("parameters", ())
        }

        assert set(DEPRECATED) | set(TABLE) <= names

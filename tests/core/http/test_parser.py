import json

import pytest
from flask import Flask, jsonify, request

from app.core.errors import error
from app.core.http import parser
from app.core.http.body_limits import MAX_BODY
from app.core.http.endpoint import Endpoint
from app.core.http.error_handlers import register_error_handlers
from app.core.http.parser import MAX_CONTAINERS, MAX_DEPTH, Argument
from app.core.http.routing import configure_routing
from app.core.validation import fields
from app.core.validation.messages import MAX_LOC
from app.core.validation.schemas import Schema

UNREADABLE = {"detail": "There was an error parsing the body"}


class BodySchema(Schema):
    name = fields.Str(required=True)
    data = fields.AnyJson()

    def rules(self, values):
        if values["name"] == "nobody":
            yield error(["body", "name"], "value_error", "Value error, nobody", values["name"])


class FilterSchema(Schema):
    limit = fields.Int(ge=1, le=100, load_default=50)
    is_active = fields.Bool(required=True)


class HeaderSchema(Schema):
    source_timestamp = fields.AwareDateTime(data_key="X-Source-Timestamp")


BODY = Argument("json", BodySchema())
QUERY = Argument("query", FilterSchema())
HEADERS = Argument("headers", HeaderSchema())


@pytest.fixture(scope="module")
def client():
    app = Flask(__name__)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY
    configure_routing(app)
    register_error_handlers(app)

    def add(rule: str, *sources, method: str = "GET") -> None:
        def view():
            values = parser.read(endpoint, request)
            if len(values) == 1:
                return jsonify(values[0])
            body, headers, filters = values
            return jsonify([body, sorted(headers), filters])

        endpoint = Endpoint(view, arguments=sources)
        app.add_url_rule(rule, rule, view, methods=[method])

    add("/body", BODY, method="POST")
    add("/query", QUERY)
    add("/v1/strict", QUERY)
    add("/all", BODY, HEADERS, QUERY, method="POST")
    return app.test_client()


def refused(answer) -> list[tuple]:
    assert answer.status_code == 422
    return [(entry["type"], entry["loc"], entry["input"]) for entry in answer.json["detail"]]


class TestBody:
    def send(self, client, raw: bytes, content_type: str | None = "application/json"):
        headers = {} if content_type is None else {"Content-Type": content_type}
        return client.post("/body", data=raw, headers=headers)

    @pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
    def test_is_400_where_it_nests_too_deep(self, client, opening, closing):
        def nested(depth: int) -> bytes:
            inner = opening * (depth - 1) + b"1" + closing * (depth - 1)
            return b'{"name": "a", "data": ' + inner + b"}"

        assert self.send(client, nested(MAX_DEPTH)).status_code == 200
        assert self.send(client, nested(MAX_DEPTH + 1)).json == UNREADABLE

    @pytest.mark.parametrize("part", [b"[1]", b'{"a":1}', b"[[1]]"])
    def test_is_400_where_it_has_too_many_parts(self, client, part):
        def body(count: int) -> bytes:
            return b'{"name": 1, "data": [' + b",".join([part] * count) + b"]}"

        most = (MAX_CONTAINERS - 2) // part.count(b"[" if b"[" in part else b"{")
        assert self.send(client, body(most)).status_code == 422
        assert self.send(client, body(most + 1)).json == UNREADABLE

    def test_shows_the_start_of_a_long_key(self, client):
        answer = self.send(client, json.dumps({"name": "a", "k" * 500_000: 1}).encode())

        [entry] = answer.json["detail"]
        assert entry["loc"] == ["body", "k" * (MAX_LOC // 2 - 1) + "…"]

    def test_may_hold_many_brackets_side_by_side(self, client):
        raw = json.dumps({"name": "[" * 500, "data": [[]] * 500}).encode()

        assert self.send(client, raw).status_code == 200

    def test_is_answered_in_compact_utf8_with_pydantics_order_of_keys(self, client):
        answer = self.send(client, '{"name": ["é"]}'.encode())

        assert answer.data.decode() == (
            '{"detail":[{"type":"string_type","loc":["body","name"],'
            '"msg":"Input should be a valid string","input":["é"]}]}'
        )


class TestSeveralSources:
    def test_are_refused_in_one_answer_query_first_body_last(self, client):
        answer = client.post("/all?limit=x", json={}, headers={"X-Source-Timestamp": "now"})

        assert refused(answer) == [
            ("int_parsing", ["query", "limit"], "x"),
            ("missing", ["query", "is_active"], None),
            ("datetime_from_date_parsing", ["header", "x-source-timestamp"], "now"),
            ("missing", ["body", "name"], {}),
        ]

    def test_arrive_in_the_order_of_the_decorators(self, client):
        answer = client.post(
            "/all?is_active=1", json={"name": "a"}, headers={"x-source-timestamp": "0"}
        )

        assert answer.json == [
            {"name": "a"},
            ["source_timestamp"],
            {"is_active": True, "limit": 50},
        ]

    def test_a_broken_body_is_all_that_is_reported(self, client):
        answer = client.post("/all", data=b"{", content_type="application/json")

        assert [entry["type"] for entry in answer.json["detail"]] == ["json_invalid"]

    def test_rules_across_fields_run_only_when_no_field_is_wrong(self, client):
        wrong = client.post("/all", json={"name": "nobody"})
        right = client.post("/all?is_active=1", json={"name": "nobody"})

        assert [entry["type"] for entry in wrong.json["detail"]] == ["missing"]
        assert [entry["msg"] for entry in right.json["detail"]] == ["Value error, nobody"]

"""Bodies that are too large, of the wrong kind, or say more than they may."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from app.core.http.body_limits import MAX_BODY
from app.inbox.signatures.presets import MAX_BODY as MAX_WEBHOOK_BODY
from tests.document import IGNORE_UNKNOWN_QUERY
from tests.hostile.document import Document, Operation
from tests.hostile.tally import Tally, judged
from tests.hostile.wire import send
from tests.hostile.world import World

RECEIVERS = ("/webhooks/idp", "/v1/app-communications/webhooks/emailprovider")
OTHER_TYPES = (
    "",
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/xml",
    "application/octet-stream",
    "application/json/x",
    "application/jsonp",
    "\xff\xfe",
    "a" * 5000,
)
JSON_TYPES = (
    "application/json; charset=utf-8",
    "APPLICATION/JSON",
    "application/merge-patch+json",
    "application/json; charset=utf-16",
)
NO_JSON_AT_ALL = {
    "random bytes": bytes(range(256)) * 16,
    "gzip": b"\x1f\x8b\x08" + b"\x00" * 100,
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "UTF-32": '{"a": 1}'.encode("utf-32"),
    "a second document": b"{} {}",
    "NULs": b"\x00" * 1000,
    "white space": b" " * 1000,
    "a form": b"a=1&b=2",
    "an array": b"[{}]",
    "a text": b'"text"',
    "a number": b"1",
    "null": b"null",
    "true": b"true",
}
NOT_A_COUNT = {"Content-Length": "-1"}, {"Content-Length": "x"}, {"Content-Length": "1e3"}
META = {"updated_at", "updated_by_user_id", "version"}


def with_bodies(document: Document) -> Iterator[Operation]:
    """Those whose bodies are read as the service reads them; OFREP and AuthZEN have rules of their own."""
    for operation in document.guarded:
        if operation.schema and not operation.has_own_protocol:
            yield operation


class TestBodies:
    def test_that_are_too_large_are_refused(self, world: World, document: Document, tally: Tally):
        filler = json.dumps({"a": "x" * MAX_BODY}).encode()
        for operation in with_bodies(document):
            answer = world.send(operation, body=filler)

            tally.note(operation.name, judged(operation, answer, 413))

        assert tally.faults == []
        assert tally.sent > 15

    def test_of_exactly_the_limit_are_read(self, world: World, document: Document):
        operation = document.operation("patch", "/v1/users/{user_id}/meta_data")
        body = json.dumps({"patches": {"a": ""}}).encode()
        body = body.replace(b'""', b'"' + b"x" * (MAX_BODY - len(body)) + b'"')

        answer = world.send(operation, body=body)
        longer = world.send(operation, body=body + b" ")

        assert len(body) == MAX_BODY
        assert answer.status == 422
        assert longer.status == 413

    @pytest.mark.parametrize("path", RECEIVERS)
    def test_of_webhooks_may_be_larger(self, app, path):
        more = send(app, "post", path, body=b"x" * (MAX_BODY + 1))
        too_much = send(app, "post", path, body=b"x" * (MAX_WEBHOOK_BODY + 1))

        assert more.status == 401
        assert too_much.status == 413

    def test_are_not_read_for_those_who_may_not_send_them(self, app, world, document):
        filler = b"x" * (MAX_BODY + 1)
        for operation in with_bodies(document):
            answer = world.send(operation, as_="viewer", body=filler)
            anonymous = send(app, operation.method, operation.path, body=filler)

            may_read = operation.permission.endswith(":read")
            assert answer.status == (413 if may_read else 403), operation.name
            assert anonymous.status == 401, operation.name

    def test_of_other_types_are_refused(self, world: World, document: Document, tally: Tally):
        for operation in with_bodies(document):
            for content_type in OTHER_TYPES:
                body = json.dumps(world.body(operation)).encode()

                answer = world.send(operation, body=body, headers={"Content-Type": content_type})

                tally.note(f"{operation.name} {content_type}", judged(operation, answer, 422))

        assert tally.faults == []

    def test_of_json_types_are_read(self, world: World, document: Document, tally: Tally):
        for operation in with_bodies(document):
            for content_type in JSON_TYPES:
                body = json.dumps({**world.body(operation), "unknown": 1}).encode()

                answer = world.send(operation, body=body, headers={"Content-Type": content_type})

                refused = [entry["type"] for entry in answer.json["detail"]]
                tally.note(f"{operation.name} {content_type}", judged(operation, answer, 422))
                assert "extra_forbidden" in refused, operation.name

        assert tally.faults == []

    def test_that_are_no_json_object_are_refused(
        self, world: World, document: Document, tally: Tally
    ):
        for operation in with_bodies(document):
            for name, body in NO_JSON_AT_ALL.items():
                answer = world.send(operation, body=body)

                faults = judged(operation, answer, None)
                if answer.status not in (400, 422):
                    faults.append(f"{answer.status}")
                tally.note(f"{operation.name} {name}", faults)

        assert tally.faults == []

    def test_of_a_length_that_is_no_number_harm_nobody(
        self, world: World, document: Document, tally: Tally
    ):
        for operation in with_bodies(document):
            for headers in NOT_A_COUNT:
                answer = world.send(operation, headers=headers)

                tally.note(f"{operation.name} {headers}", judged(operation, answer, None))

        assert tally.faults == []


class TestMassAssignment:
    def test_of_what_is_only_read_changes_nothing(
        self, world: World, document: Document, tally: Tally
    ):
        for operation in with_bodies(document):
            for name in read_only(operation):
                before = state(world, document, operation)
                value = document.example(operation.shown[name])
                body = json.dumps({**world.body(operation), name: value}).encode()

                answer = world.send(operation, body=body)

                tally.note(f"{operation.name} {name}", judged(operation, answer, 422))
                assert state(world, document, operation) == before

        assert tally.faults == []
        assert tally.sent > 100

    def test_by_the_query_changes_nothing(self, world: World, document: Document, tally: Tally):
        for operation in document.guarded:
            if operation.method != "patch":
                continue
            asked = operation.named("query")
            query = {
                name: json.dumps(document.example(schema)).strip('"').replace(" ", "+")
                for name, schema in operation.shown.items()
                if name not in asked
            }
            meant = {*operation.fields, *asked, *META, operation.path.rpartition("/")[2]}
            before = state(world, document, operation)

            answer = world.send(operation, query=query)

            expected = 200 if operation.name in IGNORE_UNKNOWN_QUERY else 422
            tally.note(operation.name, judged(operation, answer, expected))
            after = state(world, document, operation)
            assert {name for name in before if before[name] != after[name]} <= meant

        assert tally.faults == []


def read_only(operation: Operation) -> list[str]:
    """The fields that an operation's answer shows and its body may not hold."""
    return [name for name in operation.shown if name not in operation.fields]


def state(world: World, document: Document, operation: Operation) -> Any:
    """The resource that the operation is about, as a GET shows it; a list's length for creates."""
    path = operation.path if "{" in operation.path else None
    while path is not None and document.operation("get", path) is None:
        path = path.rpartition("/")[0]
    reader = document.operation("get", path or operation.path)
    if reader is None:
        return None
    data = world.send(reader, query={} if path else {"limit": "100"}).json["data"]
    return data if path else [item["id"] for item in data if "id" in item]

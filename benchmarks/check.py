"""Proves before anything is timed that every server answers each item, and answers it alike."""

from __future__ import annotations

import http.client
import json
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from benchmarks.items import Item, Population
from benchmarks.servers import Server
from benchmarks.stage import Stage

CHANGING = {"updated_at", "event_id", "next_cursor"}  # keys whose values differ between answers
RATE_HEADERS = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
WITHOUT_ETAG = {"users", "search", "webhook"}


class Wrong(SystemExit):
    """A server's answer is not what the service answers."""


def check(
    stage: Stage, population: Population, items: Sequence[Item], servers: Sequence[Server]
) -> None:
    """Raise Wrong for the first answer that is not right; ``servers[0]`` is the service.

    Reads get the same request and must give equal answers. Each change must add one row to the
    audit trail or the inbox, and its answer must have the service's keys and types and show what
    was sent.
    """
    for item in items:
        (same,) = item.requests(population, 1)
        expected = None
        for server in servers:
            (request,) = item.requests(population, 1) if item.adds_row_to else (same,)
            before = _rows(stage, item)
            answer = _ask(server, item, request)
            if item.adds_row_to:
                item.sent += 1
                if _rows(stage, item) != before + 1:
                    raise Wrong(f"{server.name}, {item.title}: no row in {item.adds_row_to}")
                _check_shows(server, item, request, answer)
                answer = _shape(answer)
            else:
                answer = _constant(answer)
            expected = answer if expected is None else expected
            if answer != expected:
                raise Wrong(f"{server.name}, {item.title}:\n{answer}\nthe service:\n{expected}")
            _check_refuses(server, item, request)


def _ask(server: Server, item: Item, request: bytes) -> Any:
    status, headers, body = _send(server, request)
    if status != 200:
        raise Wrong(f"{server.name}, {item.title}: {status} {body}")
    if item.name != "webhook" and not all(name in headers for name in RATE_HEADERS):
        raise Wrong(f"{server.name}, {item.title}: the request was not counted: {headers}")
    if item.name not in WITHOUT_ETAG and "ETag" not in headers:
        raise Wrong(f"{server.name}, {item.title}: no ETag")
    return body


def _check_refuses(server: Server, item: Item, request: bytes) -> None:
    """A damaged credential or signature is 401, another version 412, a bad e-mail address 422."""
    for name, changed, wanted in (
        (b"@tenant-", b"@@enant-", 422),
        (b"authorization: bearer ", b"authorization: bearer x", 401),
        (b"webhook-signature: v1,", b"webhook-signature: v1,x", 401),
        (b"host: ", b'if-match: "0"\r\nhost: ', 412),
    ):
        place = request.lower().find(name)
        if (
            place < 0
            or (wanted == 412 and not request.startswith(b"PATCH"))
            or (wanted == 422 and item.name != "subscription")
        ):
            continue
        damaged = request[:place] + changed + request[place + len(name) :]
        status, _, body = _send(server, damaged)
        if status != wanted:
            raise Wrong(f"{server.name}, {item.title}: {status} {body}, not {wanted}")


def _send(server: Server, request: bytes) -> tuple[int, http.client.HTTPMessage, Any]:
    """Send a raw request; the status, the headers and the body, read as JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    with closing(connection):
        head, _, body = request.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        method, path, _ = first.split()
        headers = dict(line.split(": ", 1) for line in lines)
        connection.request(method, path, body or None, headers)
        answer = connection.getresponse()
        text = answer.read()
        try:
            return answer.status, answer.headers, json.loads(text)
        except ValueError:
            return answer.status, answer.headers, text


def _check_shows(server: Server, item: Item, request: bytes, answer: Any) -> None:
    """What was sent is in the answer."""
    sent = request.partition(b"\r\n\r\n")[2]
    if item.name == "webhook":
        is_shown = answer["status"] == "accepted" and answer["duplicate"] is False
    elif item.name == "role":
        is_shown = f"role={answer['data']['role']} ".encode() in request
    else:
        fields = json.loads(sent)
        patches = fields.get("patches")
        shown = answer["data"]["meta_data"] if patches else answer["data"]
        is_shown = all(_contains(shown.get(name), one) for name, one in (patches or fields).items())
    if not is_shown:
        raise Wrong(f"{server.name}, {item.title}: {answer} does not show {request!r}")


def _contains(shown: Any, sent: Any) -> bool:
    if isinstance(sent, dict):
        return all(_contains(shown.get(name), one) for name, one in sent.items())
    return bool(shown == sent)


def _shape(value: Any) -> Any:
    """The keys in their order, and the types."""
    if isinstance(value, dict):
        return [(name, _shape(one)) for name, one in value.items() if name != "meta_data"]
    return type(value).__name__


def _constant(value: Any) -> Any:
    """The value, keys in their order, without what differs between answers."""
    if isinstance(value, dict):
        return [
            (name, type(one).__name__ if name in CHANGING else _constant(one))
            for name, one in value.items()
        ]
    return [_constant(one) for one in value] if isinstance(value, list) else value


def _rows(stage: Stage, item: Item) -> int:
    if item.adds_row_to is None:
        return 0
    with closing(stage.connect()) as session, session.cursor() as database:
        database.execute(f"SELECT count(*) FROM {item.adds_row_to}")
        (count,) = database.fetchone()
    return int(count)

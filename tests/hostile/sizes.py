"""Wrong lists and objects as large as a body may be: bounded answers, and bounded memory."""

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, islice, product
from typing import Any
from urllib.parse import quote, urlencode

import psutil

from app.core.http.body_limits import MAX_BODY
from app.core.validation.messages import MAX_ANSWER
from app.custom_fields.service import MAX_EMAIL_FIELDS
from tests.custom_fields.fields import create_field
from tests.hostile.document import Document, Operation, Place
from tests.hostile.installation import Installation
from tests.hostile.world import World, create_world
from tests.ports import free_port

STRIDE = 61  # of all wrong bodies; it shares no factor with the number of fragments
WARM_UP = 64  # every fragment twice; each thread keeps the memory that it has needed once
MAX_GROWTH = 50 * 1024 * 1024
TAKES_VALUES = (
    ("post", "/v1/custom-fields/validate", "values"),
    ("patch", "/v1/users/{user_id}/meta_data", "patches"),
    ("post", "/v1/users", "meta_data"),
)
ITEMS = (
    b"0",
    b"-1e999",
    b"null",
    b'""',
    b'"\\u0000"',
    b'"\\ud800"',
    b"[]",
    b"[0]",
    b"{}",
    b'{"a":0}',
    b"12345678901234567890",
    b'"%s"' % (b"x" * 1000),
    b'"%s"' % (b"\\u0001" * 2500),
    b"[" * 120 + b"]" * 120,
)
"""What a wrong list repeats."""


def fragments(space: int) -> Iterator[bytes]:
    """Lists and objects of ``space`` bytes, and texts and numbers as long."""
    for item in ITEMS:
        count = space // (len(item) + 1) - 1
        yield b"[" + b",".join([item] * count) + b"]"
        entry = b'"%07d":' + item.replace(b"%", b"%%")
        count = space // (len(item) + 11) - 1
        yield b"{" + b",".join(entry % number for number in range(count)) + b"}"
    yield b'"' + b"x" * (space - 2) + b'"'
    yield b'"' + b"\\u0000" * (space // 6 - 1) + b'"'
    yield b"9" * space
    yield b'{"' + b"k" * (space - 6) + b'":0}'


def places(document: Document, operation: Operation) -> Iterator[Place | None]:
    """Where a body takes a list or an object; None is the body itself."""
    yield None
    for place in document.places(operation.schema):
        schema: Mapping[str, Any] = operation.schema
        for step in place:
            schema = document.below(schema, step)
        if isinstance(place[-1], str) and place[-1] != "any" and is_open(schema):
            yield place


def is_open(schema: Mapping[str, Any]) -> bool:
    """Whether a list or an object can stand there."""
    types = schema.get("type", ["array"] if "anyOf" not in schema else [])
    return bool({"array", "object"} & {*([types] if isinstance(types, str) else types)})


def wrong_bodies(
    world: World, stop: int | None = None, step: int = 1
) -> Iterator[tuple[Operation, bytes]]:
    """Each fragment at each place of each operation's body; of these a slice."""
    places_of_all = (
        (operation, place)
        for operation in world.document.guarded
        if operation.schema
        for place in places(world.document, operation)
    )
    everything = product(places_of_all, fragments(MAX_BODY - 4096))
    for (operation, place), fragment in islice(everything, 0, stop, step):
        yield (
            operation,
            fragment if place is None else world.body_with(operation, place, fragment),
        )


def wrong_values(world: World) -> Iterator[tuple[Operation, bytes]]:
    """Values that break the rules of many fields, or one rule very often."""
    for method, path, name in TAKES_VALUES:
        operation = world.document.operation(method, path)
        assert operation is not None
        for values in (
            {f"list_{number}": ["x"] * 100 for number in range(20)},
            {"list_0": ["x"] * (MAX_BODY // 5)},
            {f"mail_{number}": "\u0300" * 2000 for number in range(MAX_EMAIL_FIELDS)},
        ):
            body = {**world.body(operation), "entity_type": "user", name: values}
            if not path.endswith("validate"):
                del body["entity_type"]
            yield operation, json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def create_fields(world: World) -> None:
    options = [f"{number:0100}" for number in range(256)]
    for number in range(20):
        create_field(
            world.tenant, field_key=f"list_{number}", field_type="multi_select", options=options
        )
    for number in range(MAX_EMAIL_FIELDS):
        create_field(world.tenant, field_key=f"mail_{number}", field_type="email")


@dataclass
class Sent:
    """What came of the requests; ``growth`` is of the process, in bytes."""

    faults: list[str]
    requests: int
    growth: int


def send_wrong_bodies(service: Installation, document: Document) -> Sent:
    """Send them to a process of their own, and see what it answers and how it grows."""
    faults, sent, before = [], 0, 0
    port = free_port()
    with (
        service.served(port, "--workers=1", "--threads=1") as gunicorn,
        closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection,
    ):
        world = create_world(service.app, document)
        create_fields(world)
        everything = chain(
            wrong_bodies(world, stop=WARM_UP),
            wrong_values(world),
            wrong_bodies(world, step=STRIDE),
        )
        for sent, (operation, body) in enumerate(everything, 1):
            status, size = ask(connection, world, operation, body)
            if status >= 500 or size > MAX_ANSWER:
                faults.append(f"{operation.name} {body[:60]!r}: {status}, {size} bytes")
            if sent == WARM_UP:
                (process,) = psutil.Process(gunicorn.pid).children()
                before = process.memory_info().rss
        growth = process.memory_info().rss - before
    return Sent(faults, sent - WARM_UP, growth)


def ask(
    connection: http.client.HTTPConnection, world: World, operation: Operation, body: bytes
) -> tuple[int, int]:
    """The status and the bytes of the answer."""
    path = operation.path
    for name in operation.named("path"):
        path = path.replace(f"{{{name}}}", quote(world.ids[name]))
    query = dict(operation.query)
    if "tenant_id" in operation.named("query"):
        query["tenant_id"] = str(world.tenant.id)
    headers = {"Authorization": f"Bearer {world.superadmin}", "Content-Type": "application/json"}
    connection.request(operation.method.upper(), f"{path}?{urlencode(query)}", body, headers)
    answer = connection.getresponse()
    return answer.status, len(answer.read())

"""Hostile values in every field, query parameter, header and id that the document names."""

from collections.abc import Iterator, Mapping
from itertools import count, islice
from typing import Any

from tests.document import MAY_BE_MISSING
from tests.hostile import corpus
from tests.hostile.document import Document, Operation
from tests.hostile.tally import Tally, judged
from tests.hostile.world import World

AT_LEAST = {"body": 1500, "query": 1200, "header": 250, "path": 500}
SHARES = 40
OTHER_HEADERS = ("X-Request-Id", "Accept", "Accept-Encoding", "Cookie", "Range", "User-Agent")
EXEMPLARY = ("/v1/tenants", "/v1/users/{user_id}")

# What the bytes of an id may make of a path: one that ends in a slash, or one of other methods.
ELSEWHERE = {307, 404, 405}
EXPLAINED = "/v1/billing/flags/{key}/explain"  # an absent flag is explained, too
# Any name is one, unless it has a form of its own.
NAMED = {
    ("/v1/billing/customers/{provider}/{customer_id}", "customer_id"),
    ("/v1/permissions/{permission_key}", "permission_key"),
    ("/v1/resources/{resource_type}/{resource_id}", "resource_type"),
    ("/v1/resources/{resource_type}/{resource_id}", "resource_id"),
}


def share(values: Mapping[str, Any], number: int) -> dict[str, Any]:
    """One of :data:`SHARES` parts of the values, or one value: neighbours get different ones."""
    return dict(islice(values.items(), number % min(SHARES, len(values)), None, SHARES))


def fragments(number: int, *, is_first: bool) -> Iterator[tuple[str, bytes, int | None]]:
    """The values of a field, by its number, with the status that they must get.

    What is no JSON at all is so in every field, and is tried in the first one of a body.
    """
    kinds: list[tuple[Mapping[str, bytes], int | None]] = [
        (share(corpus.UNSTORABLE, number), 422),
        (share(corpus.STRANGE, number), None),
    ]
    if is_first:
        kinds += [(corpus.NO_JSON, 422), (corpus.UNREADABLE, 400)]
    for values, expected in kinds:
        for name, fragment in values.items():
            yield name, fragment, expected


def operations_with(document: Document, place: str) -> list[tuple[Operation, str]]:
    return [(one, name) for one in document.guarded for name in one.named(place)]


class TestHostileValues:
    def test_every_path_parameter_leads_to_a_row(self, world: World, document: Document):
        unknown = {
            name
            for operation in document.operations
            for name in operation.named("path")
            if name not in world.ids
        }
        lost = [
            operation.name
            for operation in document.guarded
            if operation.method == "get"
            and not operation.is_stream
            and operation.name not in MAY_BE_MISSING
            and world.send(operation).status != 200
        ]

        assert unknown == set()
        assert lost == []

    def test_in_every_field_of_every_body(self, world: World, document: Document, tally: Tally):
        numbers = count()
        for operation in document.guarded:
            for index, place in enumerate(document.places(operation.schema)):
                for name, fragment, expected in fragments(next(numbers), is_first=index == 0):
                    body = world.body_with(operation, place, fragment)

                    answer = world.send(operation, body=body)

                    expected = None if operation.has_own_protocol else expected
                    tally.note(
                        f"{operation.name} {place} {name}", judged(operation, answer, expected)
                    )

        assert tally.faults == []
        assert tally.sent >= AT_LEAST["body"]
        assert unreadable_rows(world, document) == []

    def test_in_every_query_parameter(self, world: World, document: Document, tally: Tally):
        for number, (operation, parameter) in enumerate(operations_with(document, "query")):
            for values, expected in (
                (corpus.UNSTORABLE_PARAMETERS, 422),
                (share(corpus.PARAMETERS, number), None),
            ):
                for name, value in values.items():
                    answer = world.send(operation, query={parameter: value})

                    expected = None if operation.has_own_protocol else expected
                    tally.note(
                        f"{operation.name} ?{parameter} {name}", judged(operation, answer, expected)
                    )

        assert tally.faults == []
        assert tally.sent >= AT_LEAST["query"]
        assert unreadable_rows(world, document) == []

    def test_as_the_cursor_of_every_list(self, world: World, document: Document, tally: Tally):
        for operation, parameter in operations_with(document, "query"):
            if parameter == "cursor":
                for name, value in corpus.CURSORS.items():
                    answer = world.send(operation, query={"cursor": value})

                    tally.note(f"{operation.name} {name}", judged(operation, answer, 422))

        assert tally.faults == []
        assert tally.sent > 100

    def test_in_every_header(self, world: World, document: Document, tally: Tally):
        for number, operation in enumerate(document.guarded):
            is_exemplary = operation.path in EXEMPLARY
            values = corpus.HEADERS if is_exemplary else share(corpus.HEADERS, number)
            others = OTHER_HEADERS if is_exemplary else ()
            for header in (*operation.named("header"), *others):
                for name, value in values.items():
                    answer = world.send(operation, headers={header: value})

                    tally.note(
                        f"{operation.name} {header}: {name}", judged(operation, answer, None)
                    )

        assert tally.faults == []
        assert tally.sent >= AT_LEAST["header"]

    def test_in_every_id_of_every_path(self, world: World, document: Document, tally: Tally):
        for operation, parameter in operations_with(document, "path"):
            for name, value in corpus.IDS.items():
                answer = world.send(operation, ids={parameter: value})

                is_elsewhere = answer.status in ELSEWHERE
                is_explained = operation.path == EXPLAINED and answer.status == 200
                is_named = (operation.path, parameter) in NAMED and answer.status in (200, 204, 422)
                expected = answer.status if is_explained or is_named else 404
                faults = [] if is_elsewhere else judged(operation, answer, expected)
                tally.note(f"{operation.name} {parameter} {name}", faults)

        assert tally.faults == []
        assert tally.sent >= AT_LEAST["path"]


def unreadable_rows(world: World, document: Document) -> list[str]:
    """Lists and single resources that can no longer be read, after all that was accepted.

    A flag can be gone, because a body can change the tenant's plan or its flags. The tenant is named,
    because one can change its ``idp_org_id``, too.
    """
    return [
        f"{operation.name}: {fault}"
        for operation in document.guarded
        if operation.method == "get"
        and operation.name not in MAY_BE_MISSING
        and "{key}" not in operation.path
        for fault in judged(operation, world.send(operation, query=_whole(operation, world)), 200)
    ]


def _whole(operation: Operation, world: World) -> dict[str, str]:
    taken = operation.named("query")
    limit = {"limit": str(taken["limit"]["maximum"])} if "limit" in taken else {}
    return limit | ({"tenant_id": str(world.tenant.id)} if "tenant_id" in taken else {})

"""A trial of a connection: what a directory does to a person, which is rolled back.

The requests are served as if the directory had sent them with an access token of the connection, so
its status, roles and plan count. Nothing remains of them: no row, event, message or seat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import copy_context
from functools import partial
from http import HTTPStatus
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from flask import current_app

from app.connections import clients, service
from app.connections.models import ConnectionStatus, ScimConnection
from app.core import json_text
from app.core.db import tenancy
from app.core.db.queries import update_where
from app.core.db.transactions import RowChanged, savepoint
from app.core.errors import AppError
from app.core.http.request import current_request
from app.scim import endpoints
from app.scim.errors import SCIM_JSON, write_error

CORE = "urn:ietf:params:scim:schemas:core:2.0:"
PATCH_OP = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
TITLES = (
    "The connection is accepted",
    "Resource types and schemas are listed",
    "A user who is not there is not found",
    "A user is created",
    "The same user again is a conflict",
    "The user is found by name",
    "The user is deactivated",
    "The user is activated again",
    "A group with the user is created",
    "The user leaves the group",
    "The group is deleted",
    "The user is deleted",
)


class Step(NamedTuple):
    """A step and its result: ``ok``, ``failed``, or ``skipped`` after a failed step."""

    step: str
    result: str
    detail: str = ""


class _Unexpected(Exception):
    """An answer is another than a directory expects."""


def run(connection_id: UUID | str) -> list[Step]:
    """Try the connection, in a savepoint; raises NotFound. One that is testing is tried as active."""
    return copy_context().run(_run, connection_id)  # the log facts of the requests stay there


def _run(connection_id: UUID | str) -> list[Step]:
    with tenancy.trial():
        connection = service.get_connection(connection_id)
        key = {"tenant_id": connection.tenant_id, "id": connection.id}
        if connection.status == ConnectionStatus.TESTING:
            update_where(ScimConnection, key, {"status": ConnectionStatus.ACTIVE.value})
        requests = _send_all(partial(_send, clients.grant(connection)))
        return [_next(title, requests) for title in TITLES]


def _next(title: str, requests: Iterator[None]) -> Step:
    try:
        next(requests)
    except StopIteration:  # an earlier step has failed
        return Step(title, "skipped")
    except _Unexpected as fault:
        return Step(title, "failed", str(fault))
    except RowChanged:
        return Step(title, "failed", "Another request changed the same row. Try again.")
    return Step(title, "ok")


def _send_all(send: Callable[..., Any]) -> Iterator[None]:
    """Send what a directory sends. Each ``yield`` ends a step of :data:`TITLES`."""
    config = send("GET", "/ServiceProviderConfig")
    _check(config["patch"]["supported"] is True, "PATCH is not supported.")
    yield

    types = {one["name"] for one in send("GET", "/ResourceTypes")["Resources"]}
    _check(types == {"User", "Group"}, f"The types are {', '.join(sorted(types))}.")
    schemas = {one["id"] for one in send("GET", "/Schemas")["Resources"]}
    _check({f"{CORE}User", f"{CORE}Group"} <= schemas, "A schema is missing.")
    yield

    name = f"scim-test-{uuid4().hex}"
    address = f"{name}@example.com"
    by_name = {"filter": f'userName eq "{address}"'}
    total = send("GET", "/Users", query=by_name)["totalResults"]
    _check(total == 0, f"{total} users were found.")
    yield

    person = {
        "schemas": [f"{CORE}User"],
        "userName": address,
        "name": {"givenName": "SCIM", "familyName": "Test"},
        "emails": [{"value": address, "type": "work", "primary": True}],
        "active": True,
    }
    made = send("POST", "/Users", person, expected=HTTPStatus.CREATED)
    user_id, user = made["id"], f"/Users/{made['id']}"
    _check(made["active"] is True, "The user is not active.")
    yield

    send("POST", "/Users", person, expected=HTTPStatus.CONFLICT)
    yield

    total = send("GET", "/Users", query=by_name)["totalResults"]
    _check(total == 1, f"{total} users were found.")
    yield

    for is_active in (False, True):
        operation = {"op": "replace", "path": "active", "value": str(is_active)}
        changed = send("PATCH", user, _patch(operation))
        _check(changed["active"] is is_active, f"active is {changed['active']}.")
        yield

    body = {"schemas": [f"{CORE}Group"], "displayName": name, "members": [{"value": user_id}]}
    made = send("POST", "/Groups", body, expected=HTTPStatus.CREATED)
    group = f"/Groups/{made['id']}"
    _check([one["value"] for one in made["members"]] == [user_id], "It has other members.")
    yield

    changed = send(
        "PATCH", group, _patch({"op": "remove", "path": f'members[value eq "{user_id}"]'})
    )
    _check("members" not in changed, "The group still has members.")
    yield

    for path in (group, user):
        send("DELETE", path, expected=HTTPStatus.NO_CONTENT)
        send("GET", path, expected=HTTPStatus.NOT_FOUND)
        yield


def _patch(operation: dict[str, str]) -> dict[str, object]:
    return {"schemas": [PATCH_OP], "Operations": [operation]}


def _send(
    token: str,
    method: str,
    path: str,
    body: object = None,
    *,
    query: dict[str, str] | None = None,
    expected: HTTPStatus = HTTPStatus.OK,
) -> Any:
    """The body of the answer; raises _Unexpected for another status.

    As of a request with a transaction of its own, nothing of a refused one remains.
    """
    place = f"{endpoints.VERSION}{path}"
    with current_app.test_request_context(
        f"{endpoints.PREFIX}/{place}",
        method=method,
        query_string=query,
        data=None if body is None else json_text.dumps(body),
        content_type=SCIM_JSON,
        headers={"Authorization": f"Bearer {token}"},
    ):
        try:
            with savepoint():
                answer = endpoints.answer(place, current_request())
            status, text = answer.status_code, answer.get_data()
        except AppError as refusal:
            status, text = refusal.status, write_error(refusal)
    found = json_text.loads(text.decode() or "{}")
    detail = found.get("detail", "") if isinstance(found, dict) else ""
    _check(status == expected, f"{method} answered {status}, not {expected}. {detail}".strip())
    return found


def _check(is_expected: bool, detail: str) -> None:
    if not is_expected:
        raise _Unexpected(detail)

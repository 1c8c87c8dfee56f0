"""A trial of a connection: what a directory does to a person, in a transaction that is rolled back.

The requests are served as if the directory had sent them with an access token of the connection, so
its status, roles and plan count. Nothing remains of them: no row, event, message or seat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from flask import current_app, request

from app.core import json_text
from app.core.db import tenancy
from app.core.db.transactions import RowChanged, savepoint, transaction
from app.core.errors import AppError
from app.core.http import state
from app.scim import clients, endpoints, service
from app.scim.errors import SCIM_JSON, write_error

CORE = "urn:ietf:params:scim:schemas:core:2.0:"
PATCH_OP = "urn:ietf:params:scim:api:messages:2.0:PatchOp"


class Step(NamedTuple):
    """A step and its result: ``ok``, ``failed``, or ``skipped`` after a failed one."""

    step: str
    result: str
    detail: str = ""


class _Unexpected(Exception):
    """An answer is another than a directory expects."""


class _TrialIsOver(Exception):
    """Rolls the transaction back."""


def run(connection_id: UUID | str) -> list[Step]:
    """Try the connection; raises NotFound."""
    steps: list[Step] = []
    with suppress(_TrialIsOver), transaction():
        tenancy.enter(tenancy.PLATFORM)
        connection = service.get_connection(connection_id)
        trial = _Trial(clients.grant(connection))
        for title, work in trial.steps():
            steps.append(_try(title, work, is_skipped=any(one.result != "ok" for one in steps)))
        raise _TrialIsOver
    return steps


def _try(title: str, work: Callable[[], None], *, is_skipped: bool) -> Step:
    if is_skipped:
        return Step(title, "skipped")
    try:
        work()
    except _Unexpected as fault:
        return Step(title, "failed", str(fault))
    except RowChanged:
        return Step(title, "failed", "Another request changed the same row. Try again.")
    return Step(title, "ok")


@dataclass
class _Trial:
    """The requests of a directory that tests its connection."""

    token: str
    name: str = ""
    user: str = ""
    group: str = ""

    def steps(self) -> Iterator[tuple[str, Callable[[], None]]]:
        self.name = f"scim-test-{uuid4().hex}"
        yield "The connection is accepted", self._read_config
        yield "Resource types and schemas are listed", self._discover
        yield "A user who is not there is not found", lambda: self._find_user(0)
        yield "A user is created", self._create_user
        yield "The same user again is a conflict", self._create_again
        yield "The user is found by name", lambda: self._find_user(1)
        yield "The user is deactivated", lambda: self._set_active(False)
        yield "The user is activated again", lambda: self._set_active(True)
        yield "A group with the user is created", self._create_group
        yield "The user leaves the group", self._leave_group
        yield "The group is deleted", lambda: self._delete(f"/Groups/{self.group}")
        yield "The user is deleted", lambda: self._delete(f"/Users/{self.user}")

    def _read_config(self) -> None:
        config = self._send("GET", "/ServiceProviderConfig")
        _check(config["patch"]["supported"] is True, "PATCH is not supported.")

    def _discover(self) -> None:
        found = {one["name"] for one in self._send("GET", "/ResourceTypes")["Resources"]}
        _check(found == {"User", "Group"}, f"The types are {', '.join(sorted(found))}.")
        schemas = {one["id"] for one in self._send("GET", "/Schemas")["Resources"]}
        _check({f"{CORE}User", f"{CORE}Group"} <= schemas, "A schema is missing.")

    def _find_user(self, number: int) -> None:
        query = {"filter": f'userName eq "{self._address}"'}
        total = self._send("GET", "/Users", query=query)["totalResults"]
        _check(total == number, f"{total} users were found.")

    def _create_user(self) -> None:
        made = self._send("POST", "/Users", self._person, expected=HTTPStatus.CREATED)
        self.user = made["id"]
        _check(made["active"] is True, "The user is not active.")

    def _create_again(self) -> None:
        self._send("POST", "/Users", self._person, expected=HTTPStatus.CONFLICT)

    def _set_active(self, is_active: bool) -> None:
        changed = self._patch(f"/Users/{self.user}", "replace", "active", str(is_active))
        _check(changed["active"] is is_active, f"active is {changed['active']}.")

    def _create_group(self) -> None:
        members = [{"value": self.user}]
        body = {"schemas": [f"{CORE}Group"], "displayName": self.name, "members": members}
        made = self._send("POST", "/Groups", body, expected=HTTPStatus.CREATED)
        self.group = made["id"]
        _check([one["value"] for one in made["members"]] == [self.user], "It has other members.")

    def _leave_group(self) -> None:
        path = f'members[value eq "{self.user}"]'
        changed = self._patch(f"/Groups/{self.group}", "remove", path)
        _check("members" not in changed, "The group still has members.")

    def _delete(self, path: str) -> None:
        self._send("DELETE", path, expected=HTTPStatus.NO_CONTENT)
        self._send("GET", path, expected=HTTPStatus.NOT_FOUND)

    @property
    def _address(self) -> str:
        return f"{self.name}@example.com"

    @property
    def _person(self) -> dict[str, object]:
        return {
            "schemas": [f"{CORE}User"],
            "userName": self._address,
            "name": {"givenName": "SCIM", "familyName": "Test"},
            "emails": [{"value": self._address, "type": "work", "primary": True}],
            "active": True,
        }

    def _patch(self, path: str, op: str, target: str, value: object = None) -> Any:
        operation = {"op": op, "path": target} | ({} if value is None else {"value": value})
        return self._send("PATCH", path, {"schemas": [PATCH_OP], "Operations": [operation]})

    def _send(
        self,
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
            headers={"Authorization": f"Bearer {self.token}"},
        ):
            inner = state.begin(request)
            try:
                with savepoint():
                    answer = endpoints.answer(place, inner)
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

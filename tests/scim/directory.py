"""A directory as tests use it: a connection's token, and requests as the protocol has them."""

import json
from functools import partialmethod
from typing import Any
from uuid import UUID

from flask import Flask
from werkzeug.test import TestResponse

from app.auth.keys import digest_of
from app.connections.models import ScimConnection
from app.connections.service import TOKEN_PREFIX
from tests.factories import save

BASE = "/scim/v2"
CORE = "urn:ietf:params:scim:schemas:core:2.0:"
USER, GROUP = f"{CORE}User", f"{CORE}Group"
ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
PATCH_OP = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
BULK = "urn:ietf:params:scim:api:messages:2.0:BulkRequest"
ERROR = "urn:ietf:params:scim:api:messages:2.0:Error"


def create_connection(tenant: Any, **values: Any) -> tuple[ScimConnection, str]:
    """A connection that acts as an owner, and its token."""
    number = UUID(int=len(values)).hex  # only to have a name
    token = f"{TOKEN_PREFIX}{digest_of(f'{tenant.id} {number} {values}')}"
    defaults = {
        "tenant_id": tenant.id,
        "name": "Directory",
        "provider": "generic",
        "default_role": "member",
        "acts_as": "owner",
        "digest": digest_of(token),
        "prefix": token[:12],
        "created_by_user_id": "cli:test",
        "updated_by_user_id": "cli:test",
    }
    return save(ScimConnection, **defaults | values), token


class Directory:
    """Requests with a connection's token."""

    def __init__(self, app: Flask, token: str | None) -> None:
        self._app = app
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    def request(
        self, method: str, path: str, body: Any = None, *, headers: Any = None, **options: Any
    ) -> TestResponse:
        if body is not None:
            options["data"] = body if isinstance(body, bytes) else json.dumps(body)
            options.setdefault("content_type", "application/scim+json")
        sent = {**self._headers, **(headers or {})}
        return self._app.test_client().open(f"{BASE}{path}", method=method, headers=sent, **options)

    get = partialmethod(request, "GET")
    post = partialmethod(request, "POST")
    put = partialmethod(request, "PUT")
    delete = partialmethod(request, "DELETE")

    def patch(self, path: str, *operations: dict[str, Any], **options: Any) -> TestResponse:
        return self.request("PATCH", path, patch_body(*operations), **options)

    def bulk(self, *operations: dict[str, Any], **values: Any) -> TestResponse:
        return self.post("/Bulk", {"schemas": [BULK], "Operations": list(operations), **values})

    def find(self, scim_filter: str, *, at: str = "/Users", **query: Any) -> dict[str, Any]:
        answer = self.get(at, query_string={"filter": scim_filter, **query})
        assert answer.status_code == 200, answer.text
        return answer.get_json()

    def add_user(self, user_name: str, **values: Any) -> dict[str, Any]:
        answer = self.post("/Users", {"schemas": [USER], "userName": user_name, **values})
        assert answer.status_code == 201, answer.text
        return answer.get_json()

    def add_group(self, name: str, *member_ids: str, **values: Any) -> dict[str, Any]:
        body = {
            "schemas": [GROUP],
            "displayName": name,
            "members": as_members(*member_ids),
            **values,
        }
        answer = self.post("/Groups", body)
        assert answer.status_code == 201, answer.text
        return answer.get_json()


def replace(path: str | None, value: Any) -> dict[str, Any]:
    return {"op": "replace", "value": value} | ({} if path is None else {"path": path})


def patch_body(*operations: dict[str, Any]) -> dict[str, Any]:
    return {"schemas": [PATCH_OP], "Operations": list(operations)}


def as_members(*ids: str) -> list[dict[str, str]]:
    return [{"value": one} for one in ids]


def add_members(*ids: str) -> dict[str, Any]:
    return {"op": "add", "path": "members", "value": as_members(*ids)}


def remove_member(member_id: str) -> dict[str, Any]:
    return {"op": "remove", "path": f'members[value eq "{member_id}"]'}

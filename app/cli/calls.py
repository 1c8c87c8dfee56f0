"""Calls of the API in this process, with the operator's rights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

from flask import Flask, current_app

from app.auth.guard import OPERATOR
from app.cli.base import NOT_MIGRATED
from app.core.actors import SYSTEM_CLI
from app.core.db.pages import MAX_LIMIT
from app.core.db.replicas import reading
from app.core.http.rate_limit import IS_COUNTED
from app.surfaces.commands.answers import succeeded
from app.surfaces.commands.refusals import Refused
from app.surfaces.commands.resolver import Resolver
from app.surfaces.in_process import InProcess
from app.surfaces.operations import Request, Send

READINESS = Request("GET", "/readyz", {}, {})


def in_process(app: Flask | None = None) -> Send:
    """A :data:`Send` that calls the API in this process, on the primary, as the operator.

    Raises Refused for a database without the migrations of this release.
    """
    environ = {OPERATOR: SYSTEM_CLI, IS_COUNTED: True, reading.READS_PRIMARY: True}
    send = InProcess((app or current_app).wsgi_app, environ)
    if send(READINESS).body["checks"]["migrations"] not in ("ok", "unknown"):
        raise Refused(NOT_MIGRATED)
    return send


def rows_of(send: Send, path: str, query: Mapping[str, str]) -> Iterator[Any]:
    """The rows of all pages of a list; raises Refused."""
    query = {"limit": str(MAX_LIMIT), **query}
    while True:
        page = succeeded(send(Request("GET", path, query, {}))).body
        yield from page["data"]
        if page["next_cursor"] is None:
            return
        query = {**query, "cursor": page["next_cursor"]}


def find_tenant_id(named: str) -> UUID:
    """The id of the tenant that an operator names."""
    return UUID(Resolver(in_process()).find("tenant", named)["id"])

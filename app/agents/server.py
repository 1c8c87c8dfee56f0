"""The MCP server. A tool's call is a request to the API, in process, with the caller's credential."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextvars import Context
from typing import Any

import anyio
import mcp.types as types
from flask import Flask
from mcp.server import Server, ServerRequestContext
from werkzeug.test import Client

from app.agents.tools import Operation, operations
from app.core.db.replicas import reading
from app.core.version import VERSION

INSTRUCTIONS = (
    "Tools of a control plane for tenants, users, plans, flags and limits. A result is a JSON object"
    " with the HTTP `status`, the `etag` to send as `If-Match` with a change, and the `body`. Lists"
    " have `next_cursor`; send it as `cursor` for the next page."
)


class Agents:
    """The tools, and the credential of callers that bring none of their own (over stdio).

    ``tags`` are the groups of operations that are offered; all if there are none.
    """

    def __init__(
        self, app: Flask, *, can_write: bool, tags: Sequence[str] = (), token: str = ""
    ) -> None:
        self.app = app
        self._token = token
        self._last_change = ""  # of all callers; each reads what it has changed
        self._tools = {
            one.name: one
            for one in operations(app)
            if (can_write or one.is_reading) and (not tags or set(tags) & set(one.tags))
        }
        self._threads = anyio.CapacityLimiter(app.extensions["config"].db_pool_size)

    def server(self) -> Server[Any]:
        """The server, for any transport."""
        return Server(
            "control plane",
            version=VERSION,
            instructions=INSTRUCTIONS,
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
        )

    async def list_tools(
        self, context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_tool(one) for one in self._tools.values()])

    async def call_tool(
        self, context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        operation = self._tools.get(params.name)
        if operation is None:
            return _result({"detail": f"There is no tool {params.name}."}, is_error=True)
        try:
            request = operation.request(params.arguments or {})
        except ValueError as fault:
            return _result({"detail": str(fault)}, is_error=True)
        request["headers"] |= self._credential(context)
        return await anyio.to_thread.run_sync(
            Context().run, self._send, request, limiter=self._threads
        )

    def _credential(self, context: ServerRequestContext[Any]) -> dict[str, str]:
        if context.request is None:  # stdio
            return {"Authorization": f"Bearer {self._token}"}
        found = context.request.headers.get("Authorization")
        return {} if found is None else {"Authorization": found}

    def _send(self, request: dict[str, Any]) -> types.CallToolResult:
        if self._last_change:
            request["headers"][reading.HEADER] = self._last_change
        response = Client(self.app, use_cookies=False).open(**request)
        self._last_change = response.headers.get(reading.HEADER, self._last_change)
        found: dict[str, Any] = {"status": response.status_code}
        if tag := response.headers.get("ETag"):
            found["etag"] = tag
        found["body"] = response.get_json(silent=True)
        return _result(found, is_error=response.status_code >= 400)


def _tool(operation: Operation) -> types.Tool:
    return types.Tool(
        name=operation.name,
        description=operation.description,
        input_schema=dict(operation.input_schema),
        annotations=types.ToolAnnotations(
            read_only_hint=operation.is_reading,
            destructive_hint=operation.method == "delete",
            idempotent_hint=operation.method in ("get", "put", "delete"),
            open_world_hint=False,
        ),
    )


def _result(value: dict[str, Any], *, is_error: bool) -> types.CallToolResult:
    text = types.TextContent(type="text", text=json.dumps(value, ensure_ascii=False))
    return types.CallToolResult(content=[text], structured_content=value, is_error=is_error)

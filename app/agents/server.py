"""The MCP server. A tool's call is a request to the API, in process, with the caller's credential."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import anyio
import mcp.types as types
from flask import Flask
from mcp.server import Server, ServerRequestContext

from app.agents.tools import description, input_schema, request_of, tools
from app.core.version import VERSION
from app.surfaces.in_process import InProcess
from app.surfaces.operations import Operation, Request

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
        self._token = token
        self._send = InProcess(app)  # for all callers: each reads what it has changed
        self._tools = {
            name: one
            for name, one in tools(app).items()
            if (can_write or one.is_reading) and (not tags or one.group in tags)
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
            request = request_of(operation, params.arguments or {})
        except ValueError as fault:
            return _result({"detail": str(fault)}, is_error=True)
        request = request._replace(headers={**request.headers, **self._credential(context)})
        return await anyio.to_thread.run_sync(self._call, request, limiter=self._threads)

    def _credential(self, context: ServerRequestContext[Any]) -> dict[str, str]:
        if context.request is None:  # stdio
            return {"Authorization": f"Bearer {self._token}"}
        found = context.request.headers.get("Authorization")
        return {} if found is None else {"Authorization": found}

    def _call(self, request: Request) -> types.CallToolResult:
        answer = self._send(request)
        found: dict[str, Any] = {"status": answer.status}
        if tag := answer.headers.get("ETag"):
            found["etag"] = tag
        found["body"] = answer.body
        return _result(found, is_error=answer.status >= 400)


def _tool(operation: Operation) -> types.Tool:
    return types.Tool(
        name=operation.name,
        description=description(operation),
        input_schema=input_schema(operation),
        annotations=types.ToolAnnotations(
            read_only_hint=operation.is_reading,
            destructive_hint=operation.is_destructive,
            idempotent_hint=operation.method in ("get", "put", "delete"),
            open_world_hint=False,
        ),
    )


def _result(value: dict[str, Any], *, is_error: bool) -> types.CallToolResult:
    text = types.TextContent(type="text", text=json.dumps(value, ensure_ascii=False))
    return types.CallToolResult(content=[text], structured_content=value, is_error=is_error)

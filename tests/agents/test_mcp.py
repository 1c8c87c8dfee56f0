"""`flask mcp`, driven by the protocol's official client over both of its transports."""

import os
import sys
from collections.abc import Iterator
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from app.agents.server import Agents
from app.agents.tools import tools
from app.audit.models import AuditEvent
from app.core.version import VERSION
from tests import database
from tests.factories import create_member, create_tenant, platform_token
from tests.ports import free_port
from tests.running.serving import HOST, PROJECT, answers, running, wait_until

FLASK = [sys.executable, "-m", "flask", "--app", "wsgi", "mcp"]


@pytest.fixture
def over_stdio(app, environment):
    """``ask(calls, *options, token=…)``: the tools by name, and the results of the calls."""

    def ask(calls: list[tuple[str, dict[str, Any]]], *options: str, token: str) -> tuple[Any, Any]:
        environ = {**os.environ, **environment, "MCP_TOKEN": token}
        command, *words = [*FLASK, *options]
        parameters = StdioServerParameters(command=command, args=words, env=environ, cwd=PROJECT)
        return anyio.run(talk, lambda: stdio_client(parameters), calls)

    return ask


@pytest.fixture(scope="module")
def url(app, environment, tmp_path_factory) -> Iterator[str]:
    """A server over HTTP."""
    port = free_port()
    command = [*FLASK, "--http", "--port", str(port)]
    with running(command, environ=environment, log=tmp_path_factory.mktemp("mcp") / "log"):
        wait_until(lambda: answers(port, "/mcp") is not None)
        yield f"http://{HOST}:{port}/mcp"


async def talk(transport: Any, calls: list[tuple[str, dict[str, Any]]]) -> tuple[Any, Any]:
    async with Client(transport()) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        return tools, [await client.call_tool(name, arguments) for name, arguments in calls]


def over_http(url: str, calls: list[tuple[str, dict[str, Any]]], token: str | None) -> list[Any]:
    async def ask() -> tuple[Any, Any]:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=headers) as http:
            return await talk(lambda: streamable_http_client(url, http_client=http), calls)

    return anyio.run(ask)[1]


def tool_of(app, method: str, path: str) -> str:
    """The name of an operation."""
    (name,) = [name for name, one in tools(app).items() if (one.method, one.path) == (method, path)]
    return name


def answer_of(result: Any) -> tuple[int, Any]:
    return result.structured_content["status"], result.structured_content["body"]


class TestStdio:
    def test_reads_by_default_and_only_the_groups_that_are_named(self, app, over_stdio):
        tenant = create_tenant(name="Agent Inc")
        get, create = (
            tool_of(app, "get", "/v1/tenants/{tenant_id}"),
            tool_of(app, "post", "/v1/tenants"),
        )
        body = {"name": "New", "idp_org_id": "org_agent"}

        tools, (read, unknown, refused) = over_stdio(
            [(get, {"tenant_id": str(tenant.id)}), (get, {}), (create, {"body": body})],
            *("--only", "tenants", "--only", "audit"),
            token=platform_token(),
        )

        assert get in tools
        assert create not in tools
        assert all(tool.annotations.read_only_hint for tool in tools.values())
        assert {name.split("_")[0] for name in tools} == {"tenants", "audit"}
        status, found = answer_of(read)
        assert (status, found["data"]["name"], read.is_error) == (200, "Agent Inc", False)
        assert read.structured_content["etag"].startswith('"')
        assert unknown.is_error
        assert refused.is_error
        assert database.rows(AuditEvent) == []

    def test_changes_with_write_as_the_credential(self, app, over_stdio):
        user, _, token = create_member(create_tenant(name="Before"), role="owner")
        update = tool_of(app, "patch", "/v1/tenants/{tenant_id}")
        arguments = {"tenant_id": str(user.tenant_id), "body": {"name": "After"}}

        tools, (changed, wrong) = over_stdio(
            [
                (update, {**arguments, "Idempotency-Key": "agent-1"}),
                (update, {**arguments, "If-Match": '"old"'}),
            ],
            "--write",
            token=token,
        )

        assert tools[update].annotations.read_only_hint is False
        assert answer_of(changed)[1]["data"]["name"] == "After"
        assert (answer_of(wrong)[0], wrong.is_error) == (412, True)
        (row,) = database.rows(AuditEvent)
        assert (row.action, row.actor) == ("tenant.updated", str(user.id))

    def test_refuses_a_group_that_does_not_exist(self, app):
        ended = app.test_cli_runner().invoke(args=["mcp", "--token", "sk_x", "--only", "user"])

        assert ended.exit_code == 2
        assert "There is no group user; there are access, " in ended.stderr

    def test_names_the_version_of_the_service(self, app):
        server = Agents(app, can_write=False).server()

        assert server.create_initialization_options().server_version == VERSION

    def test_needs_a_credential(self, app):
        ended = app.test_cli_runner().invoke(args=["mcp"], env={"MCP_TOKEN": ""})

        assert ended.exit_code == 2
        assert "Give --token, or set MCP_TOKEN" in ended.stderr


class TestHttp:
    def test_each_caller_has_its_own_credential(self, app, url):
        listing = tool_of(app, "get", "/v1/users")
        (first, _, one), (second, _, other) = (
            create_member(create_tenant(), role="owner"),
            create_member(create_tenant(), role="owner"),
        )

        (mine,) = over_http(url, [(listing, {})], one)
        (theirs,) = over_http(url, [(listing, {"limit": 5})], other)
        (nobody,) = over_http(url, [(listing, {})], None)

        assert [row["id"] for row in answer_of(mine)[1]["data"]] == [str(first.id)]
        assert [row["id"] for row in answer_of(theirs)[1]["data"]] == [str(second.id)]
        assert (answer_of(nobody)[0], nobody.is_error) == (401, True)

    def test_of_another_origin_is_refused(self, url):
        answer = httpx2.post(url, json={}, headers={"Origin": "https://evil.example"})

        assert answer.status_code == 403

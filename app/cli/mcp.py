"""``flask mcp``."""

from __future__ import annotations

from importlib.util import find_spec

import click
from flask import current_app
from flask.cli import with_appcontext

PACKAGES = ("mcp", "uvicorn")


@click.command("mcp")
@click.option("--write", is_flag=True, help="Offer the operations that change something too.")
@click.option("--only", "tags", multiple=True, metavar="TAG", help="Only this group; repeatable.")
@click.option(
    "--token",
    envvar="MCP_TOKEN",
    help="The access token or API key of the calls over stdio (or MCP_TOKEN).",
)
@click.option("--http", is_flag=True, help="Listen on HTTP, at /mcp, instead of stdio.")
@click.option("--host", default="127.0.0.1", show_default=True, help="With --http.")
@click.option(
    "--port", default=8090, show_default=True, type=click.IntRange(1, 65535), help="With --http."
)
@with_appcontext
def mcp(
    write: bool, tags: tuple[str, ...], token: str | None, http: bool, host: str, port: int
) -> None:
    """Serve the API's operations as tools for agents.

    They are tools of the Model Context Protocol. Agents can read by default, and change with
    --write. Each call is a request to the API with the caller's credential, so an agent can do what
    its credential can, and the audit trail names it. Over stdio the credential is --token; over
    HTTP each caller sends its own Authorization header.

    Needs the package mcp (pip install mcp).
    """
    if any(find_spec(name) is None for name in PACKAGES):
        raise click.ClickException("The package mcp is not installed: pip install mcp")
    if not http and not token:
        raise click.UsageError(
            "Give --token, or set MCP_TOKEN; over HTTP each caller sends its own."
        )

    import anyio
    import uvicorn
    from mcp.server.stdio import stdio_server

    from app.agents.server import Agents
    from app.agents.tools import tools

    app = current_app._get_current_object()  # type: ignore[attr-defined]
    groups = {one.group for one in tools(app).values()}
    if unknown := set(tags) - groups:
        raise click.UsageError(
            f"There is no group {', '.join(sorted(unknown))}; there are {', '.join(sorted(groups))}."
        )
    server = Agents(app, can_write=write, tags=tags, token=token or "").server()

    async def serve_stdio() -> None:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    if http:
        service = server.streamable_http_app(host=host, stateless_http=True, json_response=True)
        uvicorn.run(service, host=host, port=port, log_config=None)
    else:
        anyio.run(serve_stdio)

"""The command ``controlplane``: the commands of the API over HTTP."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from .commands.names import GROUPS
from .commands.operation_groups import OperationGroup
from .commands.refusals import Refused
from .operations import JSON, Answer, Operation, Request, Send, operations_of

DOCUMENT = Path(__file__).with_name("openapi.json")


class HttpGroup(OperationGroup):
    """Generated commands with the rights of a token."""

    def operations(self, ctx: click.Context) -> list[Operation]:
        return operations_of(json.loads(DOCUMENT.read_bytes()))

    def connect(self, ctx: click.Context) -> Send:
        url, token = ctx.find_root().params["url"], os.environ.get("CONTROLPLANE_TOKEN")
        if not url or not token:
            raise click.UsageError(
                "Set CONTROLPLANE_TOKEN, and give --url or set CONTROLPLANE_URL."
            )
        return over_http(url, token)


def over_http(url: str, token: str) -> Send:
    """What sends the requests of commands to the service at ``url``."""
    import httpx  # help and completion start without it

    from .connection import ApiError, Client

    client = Client(url, token, attempts=3).get_httpx_client()

    def send(request: Request) -> Answer:
        sent = {"content" if isinstance(request.body, bytes) else "json": request.body}
        try:
            answer = client.request(
                request.method, request.path, params=request.query, headers=request.headers, **sent
            )
        except ApiError as refusal:
            answer = refusal.response
        except (httpx.HTTPError, httpx.InvalidURL) as fault:
            raise Refused(f"{url}: {str(fault) or type(fault).__name__}") from None
        is_json = answer.headers.get("Content-Type", "").startswith(JSON)
        body = answer.json() if is_json else answer.text or None
        return Answer(answer.status_code, answer.headers, body)

    return send


@click.group("controlplane")
@click.option("--url", envvar="CONTROLPLANE_URL", show_envvar=True, help="The service's address.")
@click.version_option(package_name="controlplane-client")
def main(url: str | None) -> None:
    """Call the API of a tenant control plane.

    CONTROLPLANE_TOKEN is the API key or access token.
    """


for name in GROUPS:
    if " " not in name:
        main.add_command(HttpGroup(name))

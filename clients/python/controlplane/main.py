"""The command ``controlplane``: the commands of the API over HTTP."""

from __future__ import annotations

import json
import os
from base64 import urlsafe_b64decode
from pathlib import Path
from typing import Any

import click

from .commands.names import GROUPS, WHERE_TO_BEGIN
from .commands.operation_groups import OperationGroup
from .commands.refusals import Refused
from .operations import JSON, Answer, Operation, Request, Send, operations_of

DOCUMENT = Path(__file__).with_name("openapi.json")
BY_HAND = {
    "billing connect", "billing reconcile", "console link", "dev", "doctor", "events tail", "export",
    "import", "jobs background", "jobs billing", "jobs list", "jobs log_streams", "jobs scheduler",
    "jobs sender", "jobs sequencer", "jobs worker", "mcp", "plans apply", "plans export",
    "platform-admins add", "platform-admins list", "platform-admins remove", "roles apply",
    "scim log", "scim test", "search build", "seed", "subscriptions reconcile", "tenants delete",
    "tenants deletions", "tenants export", "tenants free-idp-org-id", "tokens issue", "users erase",
    "users export", "version", "webhook-endpoints new-key", "webhook-endpoints reencrypt",
    "webhooks send-test", "webhooks stats",
}  # fmt: skip
"""The commands of ``flask`` that no operation has."""


class Group(click.Group):
    """A group that says of an unknown command where those of the installation are."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as fault:
            name = " ".join([*ctx.command_path.split()[1:], args[0]])
            if any(f"{one} ".startswith(f"{name} ") for one in BY_HAND):
                fault.message += f" Is it `flask {name}`, on the server's machine?"
            raise


class HttpGroup(Group, OperationGroup):
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
    """What sends the requests of commands to the service at ``url``, with or without ``/v1``."""
    import httpx  # help and completion start without it

    from .connection import ApiError, Client

    client = Client(url.rstrip("/").removesuffix("/v1"), token, attempts=3).get_httpx_client()

    def send(request: Request) -> Answer:
        sent = {"content" if isinstance(request.body, bytes) else "json": request.body}
        try:
            answer = client.request(
                request.method, request.path, params=request.query, headers=request.headers, **sent
            )
        except ApiError as refusal:
            answer = refusal.response
        except (httpx.HTTPError, httpx.InvalidURL) as fault:
            told = f"{url}: {str(fault) or type(fault).__name__}"
            raise Refused(f"{told.rstrip('.')}. Check --url, or CONTROLPLANE_URL.") from None
        is_json = answer.headers.get("Content-Type", "").startswith(JSON)
        body = answer.json() if is_json else answer.text or None
        if answer.status_code == 401:
            told = (
                "The service does not accept this token: it is wrong, has expired or was revoked."
            )
            raise Refused(f"{told} Set CONTROLPLANE_TOKEN.", body)
        if answer.status_code == 403 and is_json and "detail" in body:
            body["detail"] += f" CONTROLPLANE_TOKEN is {described(token)}."
        if answer.status_code >= 300 and not is_json:
            raise Refused(f"{url} is not this service, or not ready: status {answer.status_code}.")
        return Answer(answer.status_code, answer.headers, body)

    return send


def described(token: str) -> str:
    """Whose token it is: the subject of an access token, or the prefix of an API key."""
    parts = token.split(".")
    try:
        claims = json.loads(urlsafe_b64decode(f"{parts[1]}==")) if len(parts) == 3 else {}
        return f"the access token of {claims['sub']}"
    except (ValueError, KeyError):
        return f"the API key {token[:10]}…"


HELP = {"help_option_names": ["-h", "--help"]}


@click.group("controlplane", cls=Group, epilog=WHERE_TO_BEGIN, context_settings=HELP)
@click.option("--url", envvar="CONTROLPLANE_URL", show_envvar=True, help="The service's address.")
@click.version_option(package_name="controlplane-client")
def main(url: str | None) -> None:
    """Call the API of a tenant control plane.

    CONTROLPLANE_TOKEN is the API key or access token. Commands of the installation, such as doctor
    and users erase, are in `flask` on its machine.
    """


for name in GROUPS:
    if " " not in name:
        main.add_command(HttpGroup(name))

"""``flask webhook-endpoints``."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click
from cryptography.fernet import Fernet
from flask import current_app

from app.cli.base import AppGroup, ask, json_option, operator, print_rows, yes_option
from app.cli.lookup import find_tenant
from app.cli.records import assignments, load, paging_options, print_one, print_page
from app.cli.times import time_option
from app.core.actors import SYSTEM_CLI
from app.core.db.pages import ListOrder, Paging
from app.webhook_deliveries import service as deliveries
from app.webhook_deliveries.models import DeliveryStatus
from app.webhook_deliveries.schemas import TestEventSchema, WebhookDeliverySchema
from app.webhook_endpoints import service
from app.webhook_endpoints.encryption import Undecryptable
from app.webhook_endpoints.models import Signing
from app.webhook_endpoints.schemas import (
    WebhookEndpointCreateSchema,
    WebhookEndpointSchema,
    WebhookEndpointSecretSchema,
    WebhookEndpointUpdateSchema,
)

COLUMNS = ("id", "tenant_id", "url", "types", "is_active", "disabled_reason")
DELIVERY_COLUMNS = (
    "id", "created_at", "event_id", "type", "status", "attempts", "next_attempt_at",
    "response_code", "error", "duration_ms",
)  # fmt: skip
SHAPE = WebhookEndpointSchema()

webhook_endpoints = AppGroup(
    "webhook-endpoints", help="Manage the URLs that get events, and the deliveries."
)
type_option = click.option(
    "--type",
    "types",
    multiple=True,
    help="Deliver events of this type, such as tenant.* or *; may be repeated.",
)
header_option = click.option(
    "--header", "headers", multiple=True, metavar="NAME=VALUE", help="Sent with each delivery."
)
rate_option = click.option("--rate-limit", type=int, help="The most attempts in a second.")


def _headers(pairs: tuple[str, ...]) -> dict[str, str] | None:
    return assignments(pairs, option="--header", form="NAME=VALUE") or None


@webhook_endpoints.command("create")
@click.argument("url")
@type_option
@click.option("--tenant", help="The tenant (slug or id). Without it the platform's endpoint.")
@click.option("--description", help="What receives the events.")
@header_option
@rate_option
@click.option(
    "--signing",
    type=click.Choice([each.value for each in Signing]),
    help="v1: HMAC-SHA256 with a secret, the default; v1a: Ed25519 with a public key.",
)
@json_option
@operator
def create(
    types: tuple[str, ...],
    tenant: str | None,
    headers: tuple[str, ...],
    as_json: bool,
    **given: Any,
) -> None:
    """Create an endpoint and show its secret.

    No other command shows it.
    """
    values = {**given, "types": list(types) or ["*"], "headers": _headers(headers)}
    created = service.create(
        **load(WebhookEndpointCreateSchema, values),
        tenant_id=find_tenant(tenant).id if tenant else None,
        actor=SYSTEM_CLI,
    )
    print_one(service.with_secret(*created), WebhookEndpointSecretSchema(), as_json=as_json)


@webhook_endpoints.command("list")
@click.option("--tenant", help="Only of this tenant (slug or id).")
@paging_options()
@json_option
@operator
def list_endpoints(tenant: str | None, paging: Paging, as_json: bool) -> None:
    """List endpoints, without their secrets."""
    page = service.list_endpoints(paging, tenant_id=find_tenant(tenant).id if tenant else None)
    print_page(page, SHAPE, COLUMNS, as_json=as_json)


@webhook_endpoints.command("show")
@click.argument("endpoint_id")
@json_option
@operator
def show(endpoint_id: str, as_json: bool) -> None:
    """Show an endpoint, without its secret."""
    print_one(service.get_endpoint(endpoint_id), SHAPE, as_json=as_json)


@webhook_endpoints.command("update")
@click.argument("endpoint_id")
@click.option("--url", help="The new URL.")
@type_option
@click.option("--description", help="What receives the events.")
@header_option
@rate_option
@click.option("--active/--inactive", "is_active", default=None, help="Deliver events, or none.")
@json_option
@operator
def update(
    endpoint_id: str, types: tuple[str, ...], headers: tuple[str, ...], as_json: bool, **given: Any
) -> None:
    """Change an endpoint; --active enables one that was disabled."""
    values = {**given, "types": list(types) or None, "headers": _headers(headers)}
    changed = load(WebhookEndpointUpdateSchema, values)
    print_one(
        service.update_endpoint(endpoint_id, changed, actor=SYSTEM_CLI), SHAPE, as_json=as_json
    )


@webhook_endpoints.command("delete")
@click.argument("endpoint_id")
@yes_option
@json_option
def delete(endpoint_id: str, yes: bool, as_json: bool) -> None:
    """Delete an endpoint."""
    endpoint = operator(service.get_endpoint)(endpoint_id)
    ask(f"Delete the endpoint {endpoint.url}?", yes=yes)
    operator(service.delete)(endpoint_id, actor=SYSTEM_CLI)
    print_rows([{"deleted": endpoint_id}], ["deleted"], as_json=as_json)


@webhook_endpoints.command("rotate")
@click.argument("endpoint_id")
@json_option
@operator
def rotate(endpoint_id: str, as_json: bool) -> None:
    """Replace the secret and show the new one.

    The old one also signs for 24 hours.
    """
    rotated = service.rotate(endpoint_id, actor=SYSTEM_CLI)
    print_one(service.with_secret(*rotated), WebhookEndpointSecretSchema(), as_json=as_json)


@webhook_endpoints.command("test")
@click.argument("endpoint_id")
@click.option("--type", default="tenant.updated", show_default=True, help="Its type.")
@json_option
@operator
def send_test(endpoint_id: str, as_json: bool, **given: str) -> None:
    """Send an example event; `deliveries` tells what came of it."""
    event_type = load(TestEventSchema, given)["type"]
    example = current_app.extensions["api"].webhook_example(event_type)
    delivery = deliveries.send_test(endpoint_id, event_type, example, actor=SYSTEM_CLI)
    print_one(delivery, WebhookDeliverySchema(), as_json=as_json)


@webhook_endpoints.command("deliveries")
@click.argument("endpoint_id")
@click.option(
    "--status", type=click.Choice([each.value for each in DeliveryStatus]), help="Only these."
)
@paging_options(ListOrder.NEWEST_FIRST)
@json_option
@operator
def list_deliveries(endpoint_id: str, status: str | None, paging: Paging, as_json: bool) -> None:
    """List the deliveries of an endpoint."""
    chosen = DeliveryStatus(status) if status else None
    page = deliveries.list_deliveries(endpoint_id, paging, status=chosen)
    print_page(page, WebhookDeliverySchema(), DELIVERY_COLUMNS, as_json=as_json)
    tenant_id = service.get_endpoint(endpoint_id).tenant_id
    if tenant_id and not (tenant := find_tenant(str(tenant_id))).is_active:
        told = f"The tenant {tenant.slug} is suspended: its deliveries wait until it is active."
        click.echo(told, err=True)


@webhook_endpoints.command("resend")
@click.argument("delivery_id")
@json_option
@operator
def resend(delivery_id: str, as_json: bool) -> None:
    """Deliver an event again."""
    delivery = deliveries.resend(delivery_id, actor=SYSTEM_CLI)
    print_one(delivery, WebhookDeliverySchema(), as_json=as_json)


@webhook_endpoints.command("recover")
@click.argument("endpoint_id")
@time_option("--since", required=True, help="From this time on.")
@json_option
@operator
def recover(endpoint_id: str, since: datetime, as_json: bool) -> None:
    """Deliver what an endpoint has missed.

    Repeat it while is_complete is false.
    """
    found = deliveries.recover(endpoint_id, since, actor=SYSTEM_CLI)
    print_rows([found._asdict()], list(found._fields), as_json=as_json)


@webhook_endpoints.command("new-key")
@json_option
def new_key(as_json: bool) -> None:
    """Print a new key for SECRETS_KEY."""
    print_rows([{"key": Fernet.generate_key().decode()}], ["key"], as_json=as_json)


@webhook_endpoints.command("reencrypt")
@json_option
@operator
def reencrypt(as_json: bool) -> None:
    """Encrypt all secrets with the first key of SECRETS_KEY.

    After that the other keys can be removed.
    """
    try:
        count = service.reencrypt()
    except Undecryptable as fault:
        raise click.ClickException(f"{fault}: nothing was changed.") from None
    print_rows([{"endpoints": count}], ["endpoints"], as_json=as_json)

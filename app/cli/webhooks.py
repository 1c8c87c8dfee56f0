"""``flask webhooks``."""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import click
from flask.cli import with_appcontext

from app.cli.base import AppGroup, json_option, local_address, operator, print_json, print_rows
from app.cli.records import paging_options, print_list, print_one, print_page
from app.cli.samples import delete_samples
from app.config import current_config
from app.core.actors import SYSTEM_CLI
from app.core.db.pages import ListOrder, Paging
from app.core.errors import NotFound
from app.webhooks import processing, service, verification
from app.webhooks.models import Status
from app.webhooks.providers import PATHS, PROVIDERS, Receiver
from app.webhooks.schemas import WebhookEventDetailSchema, WebhookEventSchema
from app.webhooks.signatures.presets import PRESETS
from app.webhooks.signatures.samples import sample
from app.webhooks.signatures.sending import Signed, sign

COLUMNS = ("id", "created_at", "source", "event_type", "status", "attempts", "detail")
TIMEOUT = 10  # seconds to wait for the service's answer

webhooks = AppGroup("webhooks", help="Show the inbox, apply events again, test a receiver.")
source_option = click.option("--source", help="Only of this provider, such as workos.")
status_option = click.option(
    "--status", type=click.Choice([status.value for status in Status]), help="Only these."
)


@webhooks.command("list")
@source_option
@click.option("--type", "event_type", help="Only of this event type, in the provider's words.")
@status_option
@paging_options(ListOrder.NEWEST_FIRST)
@json_option
@operator
def list_events(
    source: str | None, event_type: str | None, status: str | None, paging: Paging, as_json: bool
) -> None:
    """List received events."""
    filters = {"source": source, "event_type": event_type, "status": status}
    chosen = {name: value for name, value in filters.items() if value is not None}
    page = service.list_events(paging, filters=chosen)
    print_page(page, WebhookEventSchema(), COLUMNS, as_json=as_json)


@webhooks.command("show")
@click.argument("event_id")
@json_option
@operator
def show(event_id: str, as_json: bool) -> None:
    """Show one event with its payload and headers, without secrets."""
    print_one(service.get_event(event_id), WebhookEventDetailSchema(), as_json=as_json)


@webhooks.command("replay")
@click.argument("event_ids", nargs=-1)
@click.option("--failed", is_flag=True, help="Replay the oldest 1,000 failed events.")
@source_option
@json_option
@operator
def replay(event_ids: tuple[str, ...], failed: bool, source: str | None, as_json: bool) -> None:
    """Queue events for the worker to apply them again."""
    if bool(event_ids) == failed:
        raise click.UsageError("Name the events, or give --failed.")
    if failed:
        count = service.replay_failed(source, actor=SYSTEM_CLI)
        print_rows([{"replayed": count}], ["replayed"], as_json=as_json)
        return
    events = [_replay(event_id) for event_id in event_ids]
    print_list(events, WebhookEventSchema(), COLUMNS, as_json=as_json)


def _replay(event_id: Any) -> Any:
    try:
        return service.replay(event_id, actor=SYSTEM_CLI)
    except NotFound:
        raise click.ClickException(f"There is no event {event_id}.") from None


@webhooks.command("sweep")
@json_option
@operator
def sweep(as_json: bool) -> None:
    """Queue a job for pending events whose job was lost. The scheduler does it every minute."""
    print_rows([{"swept": processing.sweep()}], ["swept"], as_json=as_json)


@webhooks.command("stats")
@json_option
@operator
def stats(as_json: bool) -> None:
    """Count the events of each provider by status."""
    columns = ["source", "status", "events", "oldest"]
    print_rows(service.statistics(), columns, as_json=as_json)


@webhooks.command("send-test")
@click.argument("preset", type=click.Choice(list(PRESETS)), metavar="[PRESET]", required=False)
@click.option("--url", show_default="that of the last `flask dev`", help="The service's address.")
@click.option(
    "--receiver",
    type=click.Choice([receiver.value for receiver in Receiver]),
    help="The receiver, for presets of no particular provider.",
)
@click.option(
    "--file",
    "path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The body to send. By default a harmless event in the provider's format.",
)
@click.option("--secret", help="The secret to sign with. By default the configured one.")
@click.option("--clean", is_flag=True, help="Only delete what earlier tests have left.")
@json_option
@with_appcontext
def send_test(
    preset: str | None,
    url: str | None,
    receiver: str | None,
    path: Path | None,
    secret: str | None,
    clean: bool,
    as_json: bool,
) -> None:
    """Sign an event as a provider would and post it.

    It is posted to the running service. PRESET is standard_webhooks, svix, clerk, stytch, resend,
    workos, stripe, github, logto, sendgrid, mailgun, ses, postmark, auth0, auth0_basic or
    auth0_header.

    The harmless event of an identity provider creates a tenant named Sample, whose idp_org_id
    begins with sample_. With --clean nothing is sent: these tenants are deleted at once, with the
    events that created them. The event of an e-mail provider adds a delivery to nobody@example.com
    to the records of e-mail, from which nothing is removed by itself.
    """
    if clean:
        print_rows([{"deleted": delete_samples()}], ["deleted"], as_json=as_json)
        return
    if preset is None:
        raise click.UsageError("Name a preset, or give --clean.")
    target = Receiver(receiver) if receiver else _receiver_of(preset)
    provider = PRESETS[preset].provider or PROVIDERS[target][-1].name
    now = time.time()
    try:
        body = path.read_bytes() if path else sample(provider, now)
        signed = sign(preset, secret or _configured_secret(target, preset), body, now)
    except (KeyError, ValueError) as fault:
        raise click.ClickException(f"This cannot be signed here: {fault}.") from None
    url = (url or local_address()).rstrip("/")
    status, answer = _post(f"{url}{PATHS[target]}", signed)
    result = {"status": status, "answer": answer}
    if as_json:
        print_json(result)
    else:
        print_rows([result], ["status", "answer"], as_json=False)
    if status != 200:
        raise SystemExit(1)


def _receiver_of(preset: str) -> Receiver:
    provider = PRESETS[preset].provider
    emails = {known.name for known in PROVIDERS[Receiver.EMAIL]}
    return Receiver.EMAIL if provider in emails else Receiver.IDENTITY


def _configured_secret(receiver: Receiver, preset: str) -> str:
    """The receiver's first secret for the preset, without its tolerance."""
    setting = verification.SETTINGS[receiver]
    for pair in getattr(current_config(), setting).split():
        name, _, value = pair.partition(":")
        if name == preset:
            return re.sub(r"\?tolerance=[0-9]+$", "", value)
    raise click.ClickException(f"{setting.upper()} has no {preset} secret; give --secret.")


def _post(url: str, signed: Signed) -> tuple[int, Any]:
    headers = {"Content-Type": "application/json", **signed.headers}
    request = urllib.request.Request(url, signed.body, headers)  # noqa: S310 - the operator's own URL
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:  # noqa: S310
            return answer.status, _read(answer.read())
    except urllib.error.HTTPError as refusal:
        return refusal.code, _read(refusal.read())
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "reason", fault)
        raise click.ClickException(f"{url} does not answer: {reason}. See --url.") from None


def _read(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")

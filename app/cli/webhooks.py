"""``flask webhooks send-test``, ``stats`` and ``sweep``."""

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

from app.cli.base import json_option, local_address, operator, print_json, print_rows
from app.cli.generated import OperationGroup
from app.cli.samples import delete_samples
from app.config import current_config
from app.webhooks import processing, service, verification
from app.webhooks.providers import PATHS, PROVIDERS, Receiver
from app.webhooks.signatures.presets import PRESETS
from app.webhooks.signatures.samples import sample
from app.webhooks.signatures.sending import Signed, sign

TIMEOUT = 10  # seconds to wait for the service's answer

webhooks = OperationGroup("webhooks")


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

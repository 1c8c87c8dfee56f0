"""``flask webhooks send-test`` and ``stats``."""

from __future__ import annotations

from pathlib import Path

import click

from app.cli.base import json_option, local_address
from app.cli.generated import OperationGroup
from app.core.actors import SYSTEM_CLI
from app.core.db.tenancy import platform_transaction
from app.inbox import service, trial
from app.inbox.providers import EMAIL, IDENTITY, RECEIVERS
from app.inbox.signatures.presets import PRESETS
from app.privacy.tenants.sample_tenants import delete_samples
from app.surfaces.commands.output import print_fields, print_rows
from app.surfaces.commands.refusals import Refused

webhooks = OperationGroup("webhooks")


@webhooks.command("stats")
@json_option
@platform_transaction()
def stats(as_json: bool) -> None:
    """Count the events of each provider by status."""
    columns = ["source", "status", "events", "oldest"]
    print_rows(service.statistics(), columns, as_json=as_json)


@webhooks.command("send-test")
@click.argument("preset", type=click.Choice(list(PRESETS)), metavar="[PRESET]", required=False)
@click.option("--url", show_default="that of the last `flask dev`", help="The service's address.")
@click.option(
    "--receiver",
    type=click.Choice([IDENTITY.name, EMAIL.name]),
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
    workos, stripe, paddle, chargebee, lemonsqueezy, polar, github, logto, sendgrid, mailgun, ses,
    postmark, auth0, auth0_basic or auth0_header.

    The harmless event of an identity provider creates a tenant named Sample, whose idp_org_id
    begins with sample_. With --clean nothing is sent: these tenants are deleted at once, with the
    events that created them. The event of an e-mail provider adds a delivery to nobody@example.com
    to the records of e-mail, from which nothing is removed by itself. The event of a billing
    provider changes nothing.
    """
    if clean:
        print_rows([{"deleted": delete_samples(actor=SYSTEM_CLI)}], ["deleted"], as_json=as_json)
        return
    if preset is None:
        raise click.UsageError("Name a preset, or give --clean.")
    target = RECEIVERS[receiver] if receiver else trial.receiver_of(preset)
    url = (url or local_address()).rstrip("/")
    body = path.read_bytes() if path else None
    try:
        status, answer = trial.send(preset, target, url, body=body, secret=secret)
    except ValueError as fault:
        raise Refused(str(fault)) from None
    result = {"status": status, "answer": answer}
    print_fields(result, as_json=as_json)
    if status != 200:
        raise SystemExit(1)

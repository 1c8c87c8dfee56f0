"""``flask billing connect`` and ``reconcile``."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import click

from app.billing import api, reconcile
from app.billing.api import ReadFailed
from app.billing.health import has_api_key, has_receiver
from app.billing.providers import PROVIDERS
from app.billing.providers.provider import BillingProvider
from app.cli.base import json_option, local_address
from app.cli.generated import OperationGroup
from app.config import current_config
from app.core.actors import SYSTEM_CLI
from app.core.db.tenancy import platform_transaction
from app.inbox import trial
from app.inbox.providers import RECEIVERS
from app.surfaces.commands.output import print_fields, print_rows, progress_bar
from app.surfaces.commands.refusals import Refused
from app.surfaces.commands.text import compact, print_json

billing = OperationGroup("billing")
provider_argument = click.argument("provider", type=click.Choice(list(PROVIDERS)))

SECRETS = {
    "stripe": "whsec_…",
    "paddle": "pdl_ntfset_…",
    "chargebee": "USER:PASSWORD",
    "lemonsqueezy": "THE_SIGNING_SECRET",
    "polar": "polar_whs_…",
}
WORKS = "works"


@billing.command("reconcile")
@provider_argument
@click.option("--dry-run", is_flag=True, help="Show what would be repaired, and write nothing.")
@json_option
def reconcile_command(provider: str, dry_run: bool, as_json: bool) -> None:
    """Compare all subscriptions with PROVIDER's now, and repair them.

    It takes the place of the job: a comparison that is under way continues, also if this command
    is interrupted.
    """
    chosen, rows, counts = PROVIDERS[provider], list[dict[str, Any]](), Counter[str]()
    if not has_api_key(chosen, current_config()):
        raise Refused(f"{RECEIVERS[provider].api_key.upper()} is not set.")
    try:
        with progress_bar() as bar:
            task = bar.add_task(chosen.title, total=None)
            for found in reconcile.preview(chosen) if dry_run else ():
                bar.advance(task, len(found))
                rows += (
                    {**one._asdict(), "kinds": " ".join(one.kinds)} for one in found if one.kinds
                )
            for counts in () if dry_run else _compare(chosen):
                bar.update(task, completed=counts["compared"])
    except ReadFailed as fault:
        kept = "" if dry_run else " What was compared before is repaired."
        raise Refused(f"{fault}.{kept}") from None
    if dry_run:
        print_rows(rows, ("subscription_id", "tenant_id", "kinds"), as_json=as_json)
    else:
        print_fields(counts, as_json=as_json)


def _compare(provider: BillingProvider) -> Iterator[Counter[str]]:
    """Complete a run; waits while another process compares, or the provider takes no requests."""
    with platform_transaction():
        reconcile.begin(provider, actor=SYSTEM_CLI)
    while True:
        try:
            for state in reconcile.work(provider, float("inf")):
                yield Counter(state.counts)
        except ReadFailed as fault:
            if not fault.pause:
                raise
            time.sleep(fault.pause)
            continue
        with platform_transaction():
            left = reconcile.find(provider)
        if left is None or not left.is_running:
            return
        time.sleep(1)


@billing.command("connect")
@provider_argument
@click.option(
    "--url", help="The service's address. By default PUBLIC_URL, or the last `flask dev`."
)
@json_option
def connect(provider: str, url: str | None, as_json: bool) -> None:
    """Show how to connect PROVIDER, and try what is configured.

    The API key reads one page of subscriptions. A signed event, which changes nothing, is posted to
    the running service.
    """
    chosen, receiver, config = PROVIDERS[provider], RECEIVERS[provider], current_config()
    address = (url or config.public_url or local_address()).rstrip("/")
    webhook, events, missing = f"{address}{receiver.path}", chosen.event_types, [*_missing(chosen)]
    key = _try_key(chosen) if has_api_key(chosen, config) else "not set"
    received = _try_receiver(chosen, address) if has_receiver(chosen, config) else "not set"
    if as_json:
        found = {"url": webhook, "events": events, "settings": missing}
        print_json({**found, "api_key": key, "receiver": received})
    else:
        shown = "\n    ".join(("", *events)) if events else " all"
        click.echo(f"At {chosen.title}, add a webhook:\n  URL: {webhook}\n  Events:{shown}")
        if missing:
            click.echo("\n  ".join(("Set these, and restart the service:", *missing)))
        click.echo(f"API key: {key}\nReceiver: {received}")
    if not (key.startswith(WORKS) and received.startswith(WORKS)):
        raise SystemExit(1)


def _missing(provider: BillingProvider) -> Iterator[str]:
    """The settings to add, each with the form of its value."""
    config, receiver = current_config(), RECEIVERS[provider.name]
    if not has_receiver(provider, config):
        yield f"{receiver.setting.upper()}={SECRETS[provider.name]}"
    if not has_api_key(provider, config):
        yield f"{receiver.api_key.upper()}=…"
        if not provider.api_url:
            yield f"{provider.name.upper()}_API_URL=https://SITE.chargebee.com/api/v2"


def _try_key(provider: BillingProvider) -> str:
    try:
        _, page = api.read_page(provider, "")
    except ReadFailed as fault:
        return f"{fault}."
    more = "" if page.cursor is None else " or more"
    return f"{WORKS}; {provider.title} has {len(page.subscriptions)}{more} subscriptions."


def _try_receiver(provider: BillingProvider, address: str) -> str:
    receiver = RECEIVERS[provider.name]
    try:
        status, answer = trial.send(provider.name, receiver, address, body=None, secret=None)
    except ValueError as fault:
        return str(fault)
    told = f"{status} for a signed event"
    return f"{WORKS}; {told}." if status == 200 else f"refused; {told}: {compact(answer)}"

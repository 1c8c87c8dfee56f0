"""`flask dev` and `flask seed`: the commands of a development instance."""

from __future__ import annotations

import signal
from typing import Any

import click
import flask_migrate
from flask import current_app
from flask.cli import ScriptInfo, pass_script_info, with_appcontext

from app.auth import sessions
from app.cli.base import json_option, print_json
from app.cli.tokens import require_signing_key
from app.console.sign_in import LINK, link_url
from app.core.db.transactions import transaction
from app.dev.demo.seed import DATA, seed_demo
from app.dev.engines.sharing import exit_on
from app.dev.processes import check_port, serve
from app.extensions import db


@click.command("dev")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(1, 65535))
@pass_script_info
@with_appcontext
def dev(info: ScriptInfo, port: int) -> None:
    """Run everything until Ctrl-C: database, Redis, demo data, web, worker, scheduler, sequencer, sender.

    LOG_LEVEL=INFO shows each request and each job.
    """
    app = info.load_app()
    require_signing_key(app.extensions["config"])
    exit_on(signal.SIGINT, signal.SIGTERM, code=0)
    check_port(port)
    flask_migrate.upgrade()
    demo = seed_demo(only_if_new=True)
    db.engine.dispose()
    serve(app, port=port, ready=lambda url: click.echo(welcome(url, demo)))


def _sign_in_link(base_url: str) -> str:
    with transaction():
        return link_url(base_url, sessions.create_ticket(LINK, subject=DATA["platform_subject"]))


def welcome(url: str, demo: dict[str, Any]) -> str:
    """The addresses, tokens and first requests to try."""
    tenant = demo["tenants"][0]
    as_owner = f"-H 'Authorization: Bearer {tenant['users'][0]['token']}'"
    as_superadmin = f"-H 'Authorization: Bearer {demo['platform_token']}'"
    merge = '-H \'Content-Type: application/json\' -d \'{"patches": {"nickname": "Ada"}}\''
    owners = [f"  {t['slug']} (owner):\n  {t['users'][0]['token']}" for t in demo["tenants"]]
    lines = [
        f"\nThe service is ready: {url}",
        f"Documentation:        {url}/docs",
        f"Console, once within ten minutes (later: flask console link --superadmin):"
        f"\n  {_sign_in_link(url)}",
        f"\nTokens, for seven days:\n  superadmin:\n  {demo['platform_token']}",
        *owners,
        f"\nTry:\ncurl -s {url}/v1/users {as_owner}",
        f"curl -s -X PATCH {url}/v1/users/{tenant['users'][-1]['id']}/meta_data {as_owner} {merge}",
        f"curl -s -X PATCH '{url}/v1/tenants/{tenant['tenant_id']}/active?is_active=true'"
        f" {as_superadmin}",
        "\nCtrl-C stops everything.",
    ]
    return "\n".join(lines)


@click.command("seed")
@json_option
@with_appcontext
def seed(as_json: bool) -> None:
    """Create the demo data that is missing; print its ids, with tokens for seven days."""
    require_signing_key(current_app.extensions["config"])
    flask_migrate.upgrade()
    demo = seed_demo()
    if as_json:
        print_json(demo)
        return
    click.echo(f"superadmin\n  {demo['platform_token']}")
    for tenant in demo["tenants"]:
        click.echo(f"\n{tenant['slug']}  {tenant['tenant_id']}")
        for name in ("subscription_id", "field_id", "override_id"):
            click.echo(f"  {name}  {tenant[name]}")
        for user in tenant["users"]:
            click.echo(f"  {user['role']}  {user['id']}\n    {user['token']}")


COMMANDS = (dev, seed)

"""`flask dev`, `flask seed` and `flask tokens`: what only a development instance has."""

from __future__ import annotations

import click
import flask_migrate
from flask import Flask, current_app
from flask.cli import with_appcontext

from app.cli.base import AppGroup, json_option, operator, print_json
from app.dev.credentials import superadmin_claims, user_claims
from app.dev.seed import Demo, seed_demo
from app.dev.serve import check_port, serve, stopped_by_signal
from app.dev.tokens import HOUR, issue_token, require_signing_key
from app.extensions import db


@click.command("dev")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(1, 65535))
@with_appcontext
def dev(port: int) -> None:
    """Run everything until Ctrl-C: database, Redis, demo data, web, worker, scheduler."""
    app: Flask = current_app._get_current_object()  # type: ignore[attr-defined]
    require_signing_key(app.extensions["config"])
    with stopped_by_signal():
        check_port(port)
        flask_migrate.upgrade()
        demo = seed_demo(only_if_new=True)
        db.engine.dispose()
        serve(app, port=port, started=lambda url: click.echo(welcome(url, demo)))


def welcome(url: str, demo: Demo) -> str:
    """What to try first, to be pasted."""
    tenant = demo["tenants"][0]
    member = tenant["users"][-1]
    as_owner = f"-H 'Authorization: Bearer {tenant['users'][0]['token']}'"
    as_superadmin = f"-H 'Authorization: Bearer {demo['platform_token']}'"
    json_body = "-H 'Content-Type: application/json'"
    owners = [f"  {t['slug']} (owner):\n  {t['users'][0]['token']}" for t in demo["tenants"]]
    return "\n".join(
        [
            "",
            f"The service is ready: {url}",
            f"Documentation:        {url}/docs",
            "",
            "Tokens, for seven days:",
            f"  superadmin:\n  {demo['platform_token']}",
            *owners,
            "",
            "Try:",
            f"curl -s {url}/v1/users {as_owner}",
            f"curl -s -X PATCH {url}/v1/users/{member['id']}/meta_data {as_owner} {json_body}"
            ' -d \'{"patches": {"nickname": "Ada"}}\'',
            f"curl -s -X PATCH '{url}/v1/tenants/{tenant['tenant_id']}/active?is_active=true'"
            f" {as_superadmin}",
            "",
            "Ctrl-C stops everything.",
        ]
    )


@click.command("seed")
@json_option
@with_appcontext
def seed(as_json: bool) -> None:
    """Make the demo data that is missing; print its ids, with tokens for seven days."""
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


tokens = AppGroup("tokens", help="Issue user tokens, signed by the development key.")


@tokens.command("issue")
@click.option("--superadmin", is_flag=True, help="For a platform superadmin.")
@click.option("--user", help="For the user with this id or e-mail address.")
@click.option("--tenant", "slug", help="In this tenant (slug).")
@click.option(
    "--ttl", default=HOUR, show_default=True, type=click.IntRange(1), help="Seconds it is valid."
)
@json_option
@operator
def issue(superadmin: bool, user: str | None, slug: str | None, ttl: int, as_json: bool) -> None:
    """Print a token."""
    if superadmin == (user is not None):
        raise click.UsageError("Say either --superadmin or --user.")
    config = current_app.extensions["config"]
    claims = superadmin_claims(slug) if user is None else user_claims(user, slug)
    token = issue_token(config, subject=claims.subject, org_id=claims.org_id, ttl=ttl)
    if as_json:
        print_json({"token": token, "subject": claims.subject, "org_id": claims.org_id, "ttl": ttl})
    else:
        click.echo(token)


COMMANDS = (dev, seed, tokens)

"""`flask dev` and `flask seed`: the commands of a development instance."""

from __future__ import annotations

import shlex
import signal
import time

import click
import flask_migrate
from flask.cli import ScriptInfo, pass_script_info, with_appcontext

from app.auth import sessions
from app.cli.base import OperatorCommand, json_option
from app.cli.tokens import require_signing_key
from app.config import current_config
from app.console.sign_in import LINK, link_url
from app.core.db.transactions import transaction
from app.core.json_text import Json
from app.dev.demo.seed import DATA, has_demo, seed_demo
from app.dev.engines.instance import Instance
from app.dev.engines.sharing import exit_on
from app.dev.processes import DEFAULT_PORT, address, check_port, last_port, serve
from app.extensions import db
from app.surfaces.commands.text import print_json

PORT = click.IntRange(1, 65535)


@click.command("dev")
@click.option(
    "--port", default=DEFAULT_PORT, show_default=True, type=PORT, help="The port to listen on."
)
@click.option("--quiet", is_flag=True, help="Print only faults; the rest is in logs/service.log.")
@pass_script_info
@with_appcontext
def dev(info: ScriptInfo, port: int, quiet: bool) -> None:
    """Run the whole service with demo data, until Ctrl-C.

    That is PostgreSQL, Redis, and the processes web, worker, background and stream.
    LOG_LEVEL=INFO shows each request and each job.
    """
    began = time.monotonic()
    app = info.load_app()
    require_signing_key(app.extensions["config"])
    exit_on(signal.SIGINT, signal.SIGTERM, code=0)
    check_port(port)

    def prepare() -> None:
        flask_migrate.upgrade()
        if not has_demo():
            seed_demo()

    def ready() -> None:
        with transaction():
            ticket = sessions.create_ticket(LINK, subject=DATA["platform_subject"])
        db.engine.dispose()
        if not quiet:
            click.echo(
                welcome(port, link_url(address(port), ticket), seconds=time.monotonic() - began)
            )

    serve(app, port=port, prepare=prepare, ready=ready, quiet=quiet)


def welcome(port: int, link: str, *, seconds: float) -> str:
    """Eight lines: where everything is, where the tokens are, and a first request."""
    url, folder = address(port), current_config().instance_dir
    lines = {
        "Ready": f"after {seconds:.1f} s; the data are in {folder}",
        "Console": f"{link} (signs in once, within ten minutes)",
        "": "another link: flask console link --superadmin",
        "API": f"{url}/v1",
        "Documentation": f"{url}/docs",
        "Tokens": 'eval "$(flask seed --env)" in another terminal',
        "First request": 'curl -s "$API/v1/users" -H "Authorization: Bearer $OWNER_TOKEN"',
        "Stop": "Ctrl-C",
    }
    return "\n".join(f"{name:<15}{text}" for name, text in lines.items())


@click.command("seed", cls=OperatorCommand)
@json_option
@click.option("--env", "as_env", is_flag=True, help="Print `export` lines, for eval in a shell.")
@click.option(
    "--port",
    type=PORT,
    show_default="that of the last `flask dev`",
    help="The port of `flask dev`.",
)
@with_appcontext
def seed(as_json: bool, as_env: bool, port: int | None) -> None:
    """Create missing demo data; print its ids and tokens.

    The tokens are valid for seven days."""
    require_signing_key(current_config())
    flask_migrate.upgrade()
    demo = seed_demo()
    if as_json:
        print_json(demo)
        return
    if as_env:
        port = port or last_port(Instance.at(current_config().instance_dir))
        for name, value in variables(demo, port).items():
            click.echo(f"export {name}={shlex.quote(value)}")
        return
    click.echo(f"superadmin\n  {demo['platform_token']}")
    for tenant in demo["tenants"]:
        click.echo(f"\n{tenant['slug']}  {tenant['tenant_id']}")
        for name in ("subscription_id", "field_id", "override_id"):
            click.echo(f"  {name}  {tenant[name]}")
        for user in tenant["users"]:
            click.echo(f"  {user['role']}  {user['id']}\n    {user['token']}")


def variables(demo: dict[str, Json], port: int) -> dict[str, str]:
    """The variables of the documentation's examples: the first tenant's ids, two tokens."""
    tenant = demo["tenants"][0]
    people = dict(zip(DATA["people"], tenant["users"], strict=True))
    return {
        "API": address(port),
        "PLATFORM_TOKEN": demo["platform_token"],
        "CONTROLPLANE_URL": address(port),
        "CONTROLPLANE_TOKEN": demo["platform_token"],
        "OWNER_TOKEN": people["owner"]["token"],
        "TENANT_ID": tenant["tenant_id"],
        "SUBSCRIPTION_ID": tenant["subscription_id"],
        "FIELD_ID": tenant["field_id"],
        "OVERRIDE_ID": tenant["override_id"],
        "USER_ID": people["member"]["id"],
        "MEMBERSHIP_ID": people["member"]["membership_id"],
    }


COMMANDS = (dev, seed)

"""``flask console``: links that sign a person in to the console once."""

from __future__ import annotations

import click

from app.auth import sessions
from app.cli.base import AppGroup, json_option, local_address, operator, print_json
from app.cli.lookup import find_tenant, find_user
from app.cli.tokens import superadmin_subject
from app.config import current_config
from app.console.sign_in import LINK, link_url

console = AppGroup("console", help="Sign in to the console in the browser.")


@console.command("link")
@click.option("--superadmin", is_flag=True, help="For a platform superadmin.")
@click.option("--user", help="For the user with this id or e-mail address.")
@click.option("--tenant", help="The tenant of the user (slug or id).")
@json_option
@operator
def link(superadmin: bool, user: str | None, tenant: str | None, as_json: bool) -> None:
    """Print a link that is valid once, for ten minutes.

    It begins with PUBLIC_URL, or without one with the address of the last flask dev.
    """
    if superadmin == (user is not None):
        raise click.UsageError("Give either --superadmin or --user.")
    org_id: str | None
    if user is None:
        subject = superadmin_subject()
        org_id = find_tenant(tenant).idp_org_id if tenant else None
    else:
        found = find_user(user, tenant)
        subject, org_id = found.idp_user_id, found.idp_org_id
    base_url = current_config().public_url or local_address()
    url = link_url(base_url, sessions.create_ticket(LINK, subject=subject, org_id=org_id))
    if as_json:
        print_json({"url": url, "subject": subject, "org_id": org_id})
    else:
        click.echo(url)

"""``flask platform-admins``."""

from __future__ import annotations

import click

from app.cli.base import Group, json_option, yes_option
from app.core.actors import SYSTEM_CLI
from app.core.db.tenancy import platform_transaction
from app.platform_admins import service
from app.surfaces.commands.output import print_rows
from app.surfaces.commands.refusals import ask

COLUMNS = ("subject", "created_at")

platform_admins = Group("platform-admins", help="List, add and remove platform superadmins.")


@platform_admins.command("list")
@json_option
@platform_transaction()
def list_admins(as_json: bool) -> None:
    """List the platform superadmins."""
    print_rows([one._asdict() for one in service.list_admins()], COLUMNS, as_json=as_json)


@platform_admins.command("add")
@click.argument("subject")
@json_option
@platform_transaction()
def add(subject: str, as_json: bool) -> None:
    """Make a subject a platform superadmin.

    SUBJECT is the identity provider's `sub`.
    """
    added = service.add(subject, actor=SYSTEM_CLI)
    print_rows([added._asdict()], COLUMNS, as_json=as_json)


@platform_admins.command("remove")
@click.argument("subject")
@yes_option
@json_option
def remove(subject: str, yes: bool, as_json: bool) -> None:
    """Remove a subject's platform rights.

    It has effect on the next request.
    """
    with platform_transaction():
        service.get_admin(subject)  # it is there
    ask(f"Remove all platform rights of {subject}?", yes=yes)
    with platform_transaction():
        service.remove(subject, actor=SYSTEM_CLI)
    print_rows([{"removed": subject}], ["removed"], as_json=as_json)

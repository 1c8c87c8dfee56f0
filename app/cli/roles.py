"""``flask roles apply``."""

from __future__ import annotations

from typing import IO

import click

from app.cli.base import json_option
from app.cli.generated import OperationGroup
from app.core.actors import SYSTEM_CLI
from app.core.db.tenancy import platform_transaction, platform_trial
from app.roles import role_files
from app.surfaces.commands.output import print_rows

roles = OperationGroup("roles", help="List, change and apply roles.")


@roles.command("apply")
@click.argument("file", type=click.File("rb"))
@click.option("--dry-run", is_flag=True, help="Show the difference, and change nothing.")
@json_option
def apply(file: IO[bytes], dry_run: bool, as_json: bool) -> None:
    """Apply permissions of the product and templates of roles from FILE.

    All is applied in one transaction, or nothing. FILE is YAML with the lists permissions and roles
    (- is standard input). What it lacks is left as it is.
    """
    try:
        document = role_files.read_roles(file.read())
    except role_files.UnreadableRoles as fault:
        raise click.UsageError(str(fault)) from None
    with platform_trial() if dry_run else platform_transaction():
        found = role_files.apply(document, actor=SYSTEM_CLI)
    if found or as_json:
        fields = role_files.Difference._fields
        print_rows([one._asdict() for one in found], fields, as_json=as_json)
    if not as_json:
        told = "would differ; nothing was changed" if dry_run else "changed"
        click.echo(f"{len(found)} {told}." if found else "No difference.", err=True)

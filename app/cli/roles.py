"""``flask roles apply``."""

from __future__ import annotations

from typing import IO

import click

from app.cli.base import json_option
from app.cli.files import print_differences, read_file
from app.cli.generated import OperationGroup
from app.core.actors import SYSTEM_CLI
from app.core.db.tenancy import platform_transaction, platform_trial
from app.roles import role_files
from app.roles.schemas import RoleFileSchema

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
    document = read_file(file, RoleFileSchema())
    with platform_trial() if dry_run else platform_transaction():
        found = role_files.apply(document, actor=SYSTEM_CLI)
    print_differences(found, role_files.Difference._fields, dry_run=dry_run, as_json=as_json)

"""``flask plans apply`` and ``flask plans export``."""

from __future__ import annotations

from typing import IO

import click
import yaml

from app.cli.base import json_option
from app.cli.files import print_differences, read_file
from app.cli.generated import OperationGroup
from app.core.actors import SYSTEM_CLI
from app.core.db.tenancy import platform_transaction, platform_trial
from app.plans import preset_files
from app.plans.preset_files import Difference
from app.plans.price_schemas import PlanFileSchema
from app.surfaces.commands.text import print_text

plans = OperationGroup("plans", help="List, change, export and apply plan presets.")


@plans.command("apply")
@click.argument("file", type=click.File("rb"))
@click.option("--dry-run", is_flag=True, help="Show the difference, and change nothing.")
@click.option("--force", is_flag=True, help="Remove flags even if overrides use them.")
@json_option
def apply(file: IO[bytes], dry_run: bool, force: bool, as_json: bool) -> None:
    """Create and change plan presets and prices as FILE says.

    All is applied in one transaction, or nothing. FILE is YAML of the form that flask plans export
    prints (- is standard input). Presets and prices that it lacks are left as they are; flags that a
    preset in it lacks are removed.
    """
    document = read_file(file, PlanFileSchema())
    with platform_trial() if dry_run else platform_transaction():
        found = preset_files.apply(**document, force=force, actor=SYSTEM_CLI)
    print_differences(found, Difference._fields, dry_run=dry_run, as_json=as_json)


@plans.command("export")
@json_option
@platform_transaction()
def export(as_json: bool) -> None:
    """Print plan presets and prices as YAML for flask plans apply."""
    document = preset_files.export()
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True).rstrip("\n")
    print_text(text, document, as_json=as_json)

"""``flask import`` and ``flask export``."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import IO, Any

import click
from flask.cli import with_appcontext

from app.cli.base import OperatorCommand, fault_text, json_option
from app.cli.calls import find_tenant_id
from app.cli.privacy import opened, output_option
from app.core.actors import SYSTEM_CLI
from app.core.db.queries import get_row
from app.core.db.tenancy import platform_transaction
from app.core.errors import Entry
from app.core.json_text import dumps_text
from app.history import past
from app.imports import files, service
from app.imports.export import lines_of
from app.imports.models import ImportState
from app.imports.outcomes import Outcome
from app.imports.schemas import ImportDetailSchema
from app.imports.work import check, work
from app.surfaces.commands.output import print_rows, progress_bar
from app.surfaces.commands.text import print_json
from app.surfaces.commands.times import Moment
from app.tenants.models import Tenant

COUNTS = ("type", *map(str, Outcome))
FAULTS = ("line", "type", "idp_org_id", "name", "errors")


@click.command("import", cls=OperatorCommand)
@click.argument("file", type=click.File("rb"), required=False)
@click.option(
    "--dry-run",
    "is_dry",
    is_flag=True,
    help="Change nothing: all lines are applied in one transaction that is rolled back.",
)
@click.option("--resume", metavar="ID", help="Continue an import that was interrupted.")
@json_option
@with_appcontext
def import_file(file: IO[bytes] | None, is_dry: bool, resume: str | None, as_json: bool) -> None:
    """Import tenants, users and more from JSON Lines.

    The FILE - is standard input. It is applied here; flask imports create leaves it to a worker.

    The exit code is 1 if a line has faults. A worker continues the import if this command is
    interrupted; --resume does it at once. docs/guides/importing.md describes the lines.
    """
    if (file is None) == (resume is None) or (is_dry and file is None):
        raise click.UsageError("Name a file, or an import with --resume.")
    result = _check(file) if file and is_dry else _apply(file, resume or "")
    _print(result, as_json)
    if result["lines_failed"] or result["state"] == ImportState.FAILED:
        raise SystemExit(1)


@click.command("export", cls=OperatorCommand)
@click.argument("tenant")
@click.option(
    "--as-of", type=Moment(is_past=True), help="A past moment: a time, 1d or an event's position."
)
@output_option
@with_appcontext
def export_file(tenant: str, as_of: str | None, output: str) -> None:
    """Write a tenant as JSON Lines that `flask import` reads.

    TENANT is a slug or an id. For everything that is stored about a tenant use `flask tenants export`.
    """
    tenant_id = find_tenant_id(tenant)
    with platform_transaction():
        if as_of is not None:
            past.enter(as_of, tenant_id, "export")
        with opened(output) as file:
            for line in lines_of(get_row(Tenant, tenant_id)):
                file.write(f"{dumps_text(line)}\n")


def _apply(file: IO[bytes] | None, resumed_id: str) -> dict[str, Any]:
    """Apply the file, or the rest of an import, here; the import as the API shows it."""
    with platform_transaction():
        if file is None:
            current = service.resume(resumed_id)
        else:
            current = service.create_import(file, is_queued=False, actor=SYSTEM_CLI)
    click.echo(f"Import {current.id}", err=True)
    with progress_bar() as bar:
        task = bar.add_task("Lines", total=current.lines_total, completed=current.lines_done)
        for step in work(current.id):
            bar.update(task, completed=step.lines_done)
    with platform_transaction():
        shown: dict[str, Any] = ImportDetailSchema().dump(service.get_import(current.id))
    return shown


def _check(file: IO[bytes]) -> dict[str, Any]:
    """Apply the file in a transaction that is rolled back; returns the outcome."""
    with progress_bar() as bar, platform_transaction():
        update = partial(bar.update, bar.add_task("Lines", total=None))
        found = check(
            files.blocks_of(file), actor=SYSTEM_CLI, progress=lambda last: update(completed=last)
        )
    return {"state": "checked", **asdict(found)}


def _print(result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(result)
        return
    counts = [{"type": kind, **numbers} for kind, numbers in result["counts"].items()]
    print_rows(counts, COUNTS, as_json=False)
    faults = [
        {**one, "errors": "; ".join(map(_text_of, one["errors"]))} for one in result["faults"]
    ]
    if faults:
        print_rows(faults, FAULTS, as_json=False)
    if result.get("error"):
        click.echo(result["error"], err=True)
    if result["state"] == "checked":
        click.echo("Nothing was changed: this was a dry run.", err=True)


def _text_of(entry: Entry) -> str:
    if entry["type"] != "json_invalid":
        return fault_text(entry)
    position = "".join(f" at character {place}" for place in entry["loc"][1:])
    return f"{entry['msg']}{position}: {entry['ctx']['error']}"

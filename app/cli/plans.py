"""``flask plans apply`` and ``flask plans export``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Any

import click
import yaml

from app.cli.base import json_option, operator, print_json, print_rows, reason, written
from app.cli.generated import OperationGroup
from app.core.actors import SYSTEM_CLI
from app.core.db.transactions import savepoint
from app.core.errors import Entry, Invalid
from app.flags import plan_files
from app.flags.plan_files import Difference
from app.flags.preset_schemas import PlanPresetCreateSchema

plans = OperationGroup("plans")
MAX_SIZE = 2**24


class _RolledBack(Exception):
    """Ends the savepoint of a dry run."""


@plans.command("apply")
@click.argument("file", type=click.File("rb"))
@click.option("--dry-run", is_flag=True, help="Show the difference, and change nothing.")
@click.option("--force", is_flag=True, help="Remove flags even if overrides use them.")
@json_option
@operator
def apply(file: IO[bytes], dry_run: bool, force: bool, as_json: bool) -> None:
    """Create and change plan presets as FILE says.

    All is applied in one transaction, or nothing. FILE is YAML of the form that flask plans export
    prints (- is standard input). Presets that it lacks are left as they are; flags that a preset in
    it lacks are removed.
    """
    wanted = _read(file.read())
    found: list[Difference] = []
    with suppress(_RolledBack), savepoint():
        found = plan_files.apply(wanted, force=force, actor=SYSTEM_CLI)
        if dry_run:
            raise _RolledBack
    if found or as_json:
        print_rows([one._asdict() for one in found], Difference._fields, as_json=as_json)
    if not as_json:
        told = "would differ; nothing was changed" if dry_run else "changed"
        click.echo(f"{len(found)} {told}." if found else "No difference.", err=True)


@plans.command("export")
@json_option
@operator
def export(as_json: bool) -> None:
    """Print all plan presets as YAML, which flask plans apply takes."""
    document = {"plans": list(plan_files.export())}
    if as_json:
        print_json(document)
    else:
        click.echo(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), nl=False)


def _read(text: bytes) -> Sequence[dict[str, Any]]:
    """The presets of a file; raises UsageError for another form."""
    try:
        _check_size(text)
        # By way of JSON: a date or another type of YAML alone is refused.
        document = json.loads(json.dumps(yaml.safe_load(text), allow_nan=False))
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as fault:
        raise click.UsageError(
            f"This is not YAML with JSON's types (put dates in quotes): {fault}"
        ) from None
    if not isinstance(document, dict) or not isinstance(document.get("plans"), list):
        raise click.UsageError("The file needs a list named plans.")
    found = []
    for given in document["plans"]:
        if not isinstance(given, dict):
            raise click.UsageError("Each plan is a mapping with a name and flags.")
        try:
            found.append(_checked(given))
        except Invalid as refusal:
            told = [f"{written(fault['loc'])}: {_told(fault)}" for fault in refusal.errors]
            raise _of_plan(given, "; ".join(told)) from None
    names = [plan["name"] for plan in found]
    if len(set(names)) < len(names):
        raise click.UsageError("A plan is in the file twice.")
    return found


def _checked(given: dict[str, Any]) -> dict[str, Any]:
    """The preset, if it satisfies the schema and its rules; raises Invalid."""
    schema = PlanPresetCreateSchema()
    values: dict[str, Any] = schema.load(given)
    errors = [{**entry, "loc": entry["loc"][1:]} for entry in schema.rules(values)]
    if errors:
        raise Invalid(*errors)
    return values


def _told(fault: Entry) -> str:
    """What is wrong with a value; of a field that does not exist, which fields there are."""
    if fault["type"] == "extra_forbidden" and len(fault["loc"]) == 1:
        return f"no such field; there are: {', '.join(PlanPresetCreateSchema().inputs)}"
    return reason(fault)


def _of_plan(given: dict[str, Any], told: str) -> click.UsageError:
    """What is wrong with a plan of a file; each flag has its key in place of its number."""
    flags = given.get("flags")
    for number, flag in enumerate(flags if isinstance(flags, list) else ()):
        if isinstance(flag, dict) and "flag_key" in flag:
            told = told.replace(f"flags.{number}.", f"flag {flag['flag_key']}: ")
    return click.UsageError(f"Plan {given.get('name', 'without a name')}: {told}")


def _check_size(text: bytes) -> None:
    """Raise UsageError where the document is too large after its aliases are replaced."""
    size = 0
    sizes: dict[str | None, int] = {}
    opened: list[tuple[str | None, int]] = []
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        match event:
            case yaml.AliasEvent():
                size += sizes.get(event.anchor, 0)
            case yaml.ScalarEvent():
                sizes[event.anchor] = len(event.value) + 1
                size += sizes[event.anchor]
            case yaml.CollectionStartEvent():
                opened.append((event.anchor, size))
                size += 1
            case yaml.CollectionEndEvent():
                anchor, before = opened.pop()
                sizes[anchor] = size - before
        if size > MAX_SIZE:
            raise click.UsageError(
                f"The file has more than {MAX_SIZE} characters with its aliases."
            )

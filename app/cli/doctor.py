"""The command ``flask doctor``: check the installation and say how to correct each fault."""

from __future__ import annotations

from dataclasses import asdict

import click
from flask.cli import with_appcontext

from app.cli.base import OperatorCommand, json_option
from app.config import current_config
from app.operations.checks.configuration import REQUIRED_SETTINGS
from app.operations.checks.everything import check_all
from app.surfaces.commands.output import print_rows
from app.surfaces.commands.text import print_json


@click.command(
    "doctor", cls=OperatorCommand, epilog=f"Required variables: {', '.join(REQUIRED_SETTINGS)}."
)
@json_option
@with_appcontext
def doctor(as_json: bool) -> None:
    """Check everything that the service needs.

    The exit code is 1 if there is a fault. A hint is not a fault.
    """
    findings = check_all(current_config())
    faults = [finding for finding in findings if not finding.ok]
    if as_json:
        print_json([{**asdict(one), "level": one.level.value} for one in findings])
    else:
        rows = [{**asdict(one), "result": one.level if one.ok else "FAULT"} for one in findings]
        print_rows(rows, ["check", "result", "found"], as_json=False)
        for finding in findings:
            if finding.fix:
                click.echo(f"{finding.check}: {finding.fix}")
    if faults:
        raise SystemExit(1)

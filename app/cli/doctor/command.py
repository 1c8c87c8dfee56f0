"""The command ``flask doctor``: check the installation and say how to correct each fault."""

from __future__ import annotations

from dataclasses import asdict

import click
from flask import current_app
from flask.cli import with_appcontext

from app.cli.base import json_option, print_json, print_rows
from app.cli.doctor.configuration import REQUIRED_SETTINGS, check_configuration
from app.cli.doctor.database import check_database, check_migration_role
from app.cli.doctor.queues import check_redis
from app.cli.doctor.replicas import check_replicas
from app.config import Config


@click.command("doctor", epilog=f"Required variables: {', '.join(REQUIRED_SETTINGS)}.")
@json_option
@with_appcontext
def doctor(as_json: bool) -> None:
    """Check everything that the service needs; exit 1 if there is a fault.

    A hint is no fault.
    """
    config: Config = current_app.extensions["config"]
    findings = [
        *check_configuration(config),
        *check_database(),
        *check_migration_role(config),
        *check_replicas(),
        *check_redis(),
    ]
    faults = [finding for finding in findings if not finding.ok]
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        rows = [{**asdict(one), "result": one.result} for one in findings]
        print_rows(rows, ["check", "result", "found"], as_json=False)
        for finding in findings:
            if finding.fix:
                click.echo(f"{finding.check}: {finding.fix}")
    if faults:
        raise SystemExit(1)

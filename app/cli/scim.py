"""``flask scim log`` and ``flask scim test``."""

from __future__ import annotations

import click

from app.cli.base import json_option
from app.cli.generated import OperationGroup
from app.connections import service
from app.connections.schemas import ScimRequestSchema
from app.core.db.tenancy import platform_transaction
from app.scim import trial
from app.surfaces.commands.output import print_rows

REQUEST_COLUMNS = ("sent_at", "method", "path", "status", "detail")
STEP_COLUMNS = ("step", "result", "detail")
REQUEST = ScimRequestSchema(many=True)

scim = OperationGroup("scim")


@scim.command("log")
@click.argument("connection_id", metavar="CONNECTION")
@json_option
@platform_transaction()
def show_log(connection_id: str, as_json: bool) -> None:
    """Show the last 100 requests of a connection, newest first.

    The values sent are not shown.
    """
    found = REQUEST.dump(service.list_requests(connection_id))
    print_rows(found, REQUEST_COLUMNS, as_json=as_json)


@scim.command("test")
@click.argument("connection_id", metavar="CONNECTION")
@json_option
@platform_transaction()
def test_connection(connection_id: str, as_json: bool) -> None:
    """Try a connection; exit 1 if a step fails.

    The service serves the requests of a directory that creates, finds, changes
    and deletes a user and a group. They are rolled back, so nothing remains and
    no event is sent. The network and the directory's own token are not tried.
    """
    steps = trial.run(connection_id)
    print_rows([one._asdict() for one in steps], STEP_COLUMNS, as_json=as_json)
    if any(one.result != "ok" for one in steps):
        raise SystemExit(1)

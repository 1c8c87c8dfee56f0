"""``flask users export``, ``flask users erase`` and ``flask tenants export``."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO
from uuid import UUID

import click

from app.cli.base import json_option, yes_option
from app.cli.calls import find_tenant_id
from app.cli.generated import OperationGroup
from app.cli.tenants import tenants
from app.core.actors import SYSTEM_CLI
from app.core.db.tenancy import platform_transaction
from app.core.json_text import dumps_text
from app.privacy.database import owner, snapshot
from app.privacy.export_rows import Tables, as_json
from app.privacy.mentions import Reader
from app.privacy.people import erasure_requests, person_export, removal
from app.privacy.people.find_person import find_subject, get_person, people_to_erase
from app.privacy.people.person import Person
from app.privacy.tenants import tenant_export
from app.surfaces.commands.output import print_rows, progress_bar
from app.surfaces.commands.refusals import ask
from app.users import service

COUNTS = ("table", "rows")

users = OperationGroup("users")

tenant_option = click.option("--tenant", help="Only in this tenant (slug or id).")
output_option = click.option(
    "--output",
    type=click.Path(dir_okay=False, writable=True, allow_dash=True),
    default="-",
    show_default="standard output",
    help="The file to write. Only you can read it.",
)


@users.command("export")
@click.argument("user")
@tenant_option
@output_option
def export_user(user: str, tenant: str | None, output: str) -> None:
    """Write all data of a person in all tenants as JSON.

    The data are grouped by table. USER is an id, an e-mail address or an idp_user_id. The counts go
    to standard error. For what one tenant stores use flask privacy export.
    """
    tenant_id = _tenant_id(tenant)
    with snapshot() as connection, _bar() as progress:
        person = get_person(connection, find_subject(connection, user, tenant_id))
        _write(person_export.of_person(connection, person, progress), output)


@tenants.command("export")
@click.argument("tenant")
@output_option
def export_tenant(tenant: str, output: str) -> None:
    """Write all stored data of a tenant and its people, as JSON.

    The data are grouped by table. TENANT is a slug or an id. The counts go to standard error. For a
    file that flask import reads use flask export.
    """
    tenant_id = find_tenant_id(tenant)
    with snapshot() as connection, _bar() as progress:
        _write(tenant_export.of_tenant(connection, tenant_id, progress), output)


@users.command("erase")
@click.argument("user")
@tenant_option
@click.option(
    "--allow-ownerless", is_flag=True, help="Also erase the last active owner of a tenant."
)
@yes_option
@json_option
def erase_user(
    user: str, tenant: str | None, allow_ownerless: bool, yes: bool, as_json: bool
) -> None:
    """Erase a person in all tenants, permanently.

    To erase one tenant's user use flask users delete. All tables are searched, the inbox and the
    audit trail included. USER is an id, an e-mail address or an idp_user_id. Anonymous rows and the
    structure of the audit trail remain. First delete the person at the identity provider; its next
    event about the person would store the data again. Backups are not changed. The files of failed
    imports are removed, whoever they are about.

    Addresses are found in encoded texts too. Webhook bodies that are not JSON are removed, whoever
    they are about. Metadata and texts that others have in their own rows are not searched.
    """
    tenant_id = _tenant_id(tenant)
    with owner() as connection:
        subject = find_subject(connection, user, tenant_id)
        person = get_person(connection, subject)
    where = f"{len(person.users)} tenant(s)" if person.users else "no tenant yet"
    ask(f"Erase {user}, known in {where}, for good?", yes=yes)
    _deactivate(person, allow_ownerless)
    done: Counter[str] = Counter()
    with owner() as connection, _bar() as progress:
        for one in people_to_erase(connection, subject):
            done += removal.erase(Reader(connection, progress), one, actor=SYSTEM_CLI)
    rows = [{"table": name, "rows": number} for name, number in sorted(done.items())]
    print_rows(rows, COUNTS, as_json=as_json)


def _tenant_id(named: str | None) -> UUID | None:
    return None if named is None else find_tenant_id(named)


@platform_transaction()
def _deactivate(person: Person, allow_ownerless: bool) -> None:
    """Deactivate the person's users, so that their tokens are refused.

    Raises Conflict ``last_owner`` for a tenant's last active owner unless ``allow_ownerless``.
    """
    for user_id in person.user_ids:
        erasure_requests.leave_directory(user_id)
        service.update(
            user_id, {"is_active": False}, actor=SYSTEM_CLI, allow_ownerless=allow_ownerless
        )


def _write(tables: Tables, output: str) -> None:
    counts: Counter[str] = Counter()
    with opened(output) as file:
        file.write("{")
        for place, (name, rows) in enumerate(tables.items()):
            file.write(f'{"," if place else ""}\n"{name}": [')
            for row in rows():
                file.write(("," if counts[name] else "") + "\n  " + dumps_text(as_json(row)))
                counts[name] += 1
            file.write("]")
        file.write("\n}\n")
    for name, number in counts.items():
        click.echo(f"{name}: {number}", err=True)


@contextmanager
def opened(output: str) -> Iterator[TextIO]:
    """The file that ``--output`` names, or standard output."""
    if output == "-":
        yield sys.stdout
        return
    try:
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    except OSError as fault:
        raise click.FileError(output, fault.strerror) from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        yield file


@contextmanager
def _bar() -> Iterator[Callable[[str, int], None]]:
    """Show the table and the number of rows read, on standard error."""
    with progress_bar() as bar:
        tasks: dict[str, Any] = {}

        def show(what: str, number: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=None)
            bar.update(tasks[what], completed=number)

        yield show

"""``flask custom-fields reindex`` and ``check-index``, with a progress bar."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
from flask.cli import with_appcontext
from rich.progress import Progress
from sqlalchemy import bindparam, select

from app.cli.base import json_option, operator, print_rows, progress_bar
from app.cli.lookup import find_tenant
from app.core.db import queries
from app.core.db.statements import Statement
from app.custom_fields import service
from app.custom_fields.models import CustomField
from app.custom_fields.search_index import builder, checker, index_state

RESULT = ("tenant_id", "field_id", "field_key", "state", "entities")
COMPARISON = (*RESULT, "wrong", "repaired")

_all = select(CustomField).order_by(CustomField.tenant_id, CustomField.id)
LIST_ALL = Statement("custom_fields.list_all", _all)
LIST_OF_TENANT = Statement(
    "custom_fields.list_of_tenant", _all.where(CustomField.tenant_id == bindparam("tenant_id"))
)

tenant_option = click.option("--tenant", help="Only of this tenant (slug or id).")
field_option = click.option("--field", "field_id", help="Only of this field (id).")


@click.command("reindex")
@tenant_option
@field_option
@json_option
@with_appcontext
def reindex(tenant: str | None, field_id: str | None, as_json: bool) -> None:
    """Rebuild the search indexes in this process. Filters on them are refused until it ends.

    A worker continues the work if this command is interrupted.
    """
    shown = []
    with progress_bar() as bar:
        indexed = [field for field in _chosen(tenant, field_id) if index_state.is_indexed(field)]
        for field in bar.track(indexed, description="Fields"):
            _restart(field)
            shown.append(_rebuilt(field, bar))
    print_rows(shown, RESULT, as_json=as_json)


@click.command("check-index")
@tenant_option
@field_option
@click.option("--repair", is_flag=True, help="Repair the rows that are wrong.")
@json_option
@with_appcontext
def check_index(tenant: str | None, field_id: str | None, repair: bool, as_json: bool) -> None:
    """Compare the search indexes with the data, row by row.

    The exit code is 1 if an index is wrong. An index that is being built or deleted is listed but
    not compared.
    """
    shown = []
    with progress_bar() as bar:
        for field in bar.track(_chosen(tenant, field_id), description="Fields"):
            shown.append(_checked(field, bar, repair))
    print_rows(shown, COMPARISON, as_json=as_json)
    if any(row["wrong"] > row["repaired"] for row in shown):
        raise SystemExit(1)


@operator
def _chosen(tenant: str | None, field_id: str | None) -> list[CustomField]:
    if field_id is not None:
        return [service.get_field(field_id)]
    if tenant is not None:
        return LIST_OF_TENANT.all(tenant_id=find_tenant(tenant).id)
    return LIST_ALL.all()


@operator
def _restart(field: CustomField) -> None:
    index_state.rebuild(queries.lock_row(CustomField, field.id))


@operator
def _index_of(field: CustomField) -> tuple[str, bool]:
    index = index_state.get_index(field.id)
    return index.state, index.is_settled


def _rebuilt(field: CustomField, bar: Progress) -> dict[str, Any]:
    task = bar.add_task(field.field_key, total=None)
    for step in builder.work(field.tenant_id, field.id):
        bar.update(task, completed=step.done, total=step.total)
    bar.remove_task(task)
    return _row(field, step.state, step.done)


def _checked(field: CustomField, bar: Progress, repair: bool) -> dict[str, Any]:
    state, is_settled = _index_of(field)
    findings = checker.Findings()
    task = bar.add_task(field.field_key, total=None)
    for findings in _compared(field, is_settled, repair):
        bar.update(task, completed=findings.entities)
    bar.remove_task(task)
    row = _row(field, state, findings.entities)
    return {**row, "wrong": findings.wrong, "repaired": findings.repaired}


def _compared(field: CustomField, is_settled: bool, repair: bool) -> Iterator[checker.Findings]:
    if is_settled:
        yield from checker.check(field, repair=repair)


def _row(field: CustomField, state: str, entities: int) -> dict[str, Any]:
    return {
        "tenant_id": field.tenant_id,
        "field_id": field.id,
        "field_key": field.field_key,
        "state": str(state),
        "entities": entities,
    }

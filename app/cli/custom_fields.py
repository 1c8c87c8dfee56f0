"""``flask custom-fields reindex``."""

from __future__ import annotations

from typing import Any

import click
from rich.progress import Progress

from app.cli.base import json_option
from app.cli.calls import find_tenant_id, in_process, rows_of
from app.cli.generated import OperationGroup
from app.core.db import queries
from app.core.db.tenancy import platform_transaction
from app.custom_fields import service
from app.custom_fields.models import CustomField, IndexState
from app.custom_fields.search_index import builder, index_state
from app.surfaces.commands.output import print_rows, progress_bar

RESULT = ("tenant_id", "field_id", "field_key", "state", "entities")

custom_fields = OperationGroup("custom-fields")


@custom_fields.command("reindex")
@click.option("--tenant", help="Only of this tenant (slug or id).")
@click.option("--field", "field_id", help="Only of this field (id).")
@json_option
def reindex(tenant: str | None, field_id: str | None, as_json: bool) -> None:
    """Rebuild the search indexes in this process. Filters on them are refused until it ends.

    A worker continues the work if this command is interrupted.
    """
    shown = []
    with progress_bar() as bar:
        for field in bar.track(_chosen(tenant, field_id), description="Fields"):
            _restart(field)
            shown.append(_rebuilt(field, bar))
    print_rows(shown, RESULT, as_json=as_json)


def _chosen(tenant: str | None, field_id: str | None) -> list[CustomField]:
    """The searchable fields that are asked for."""
    if field_id is None:
        query = {} if tenant is None else {"tenant_id": str(find_tenant_id(tenant))}
        ids = [one["id"] for one in rows_of(in_process(), "/v1/custom-fields", query)]
    else:
        ids = [field_id]
    with platform_transaction():
        return [one for one in map(service.get_field, ids) if index_state.is_indexed(one)]


@platform_transaction()
def _restart(field: CustomField) -> None:
    index_state.rebuild(queries.lock_row(CustomField, field.id))


def _rebuilt(field: CustomField, bar: Progress) -> dict[str, Any]:
    task = bar.add_task(field.field_key, total=None)
    state, done = IndexState.NONE.value, 0
    for index in builder.work(field.tenant_id, field.id):
        state, done = index.state, index.done
        bar.update(task, completed=done, total=index.total)
    bar.remove_task(task)
    return {
        "tenant_id": field.tenant_id,
        "field_id": field.id,
        "field_key": field.field_key,
        "state": state,
        "entities": done,
    }

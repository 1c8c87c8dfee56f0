"""``flask custom-fields reindex``."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import click
from flask.cli import with_appcontext
from rich.progress import Progress
from sqlalchemy import bindparam, select

from app.cli.base import json_option, operator, print_rows, progress_bar
from app.cli.generated import OperationGroup
from app.cli.resolver import find_tenant_id
from app.core.db import queries
from app.core.db.statements import Statement
from app.custom_fields import service
from app.custom_fields.models import CustomField
from app.custom_fields.search_index import builder, index_state

RESULT = ("tenant_id", "field_id", "field_key", "state", "entities")

_all = select(CustomField).order_by(CustomField.tenant_id, CustomField.id)
LIST_ALL = Statement("custom_fields.list_all", _all)
LIST_OF_TENANT = Statement(
    "custom_fields.list_of_tenant", _all.where(CustomField.tenant_id == bindparam("tenant_id"))
)

custom_fields = OperationGroup("custom-fields")


@custom_fields.command("reindex")
@click.option("--tenant", help="Only of this tenant (slug or id).")
@click.option("--field", "field_id", help="Only of this field (id).")
@json_option
@with_appcontext
def reindex(tenant: str | None, field_id: str | None, as_json: bool) -> None:
    """Rebuild the search indexes in this process. Filters on them are refused until it ends.

    A worker continues the work if this command is interrupted.
    """
    tenant_id = find_tenant_id(tenant) if tenant else None
    shown = []
    with progress_bar() as bar:
        indexed = [field for field in _chosen(tenant_id, field_id) if index_state.is_indexed(field)]
        for field in bar.track(indexed, description="Fields"):
            _restart(field)
            shown.append(_rebuilt(field, bar))
    print_rows(shown, RESULT, as_json=as_json)


@operator
def _chosen(tenant_id: UUID | None, field_id: str | None) -> list[CustomField]:
    if field_id is not None:
        return [service.get_field(field_id)]
    if tenant_id is not None:
        return LIST_OF_TENANT.all(tenant_id=tenant_id)
    return LIST_ALL.all()


@operator
def _restart(field: CustomField) -> None:
    index_state.rebuild(queries.lock_row(CustomField, field.id))


def _rebuilt(field: CustomField, bar: Progress) -> dict[str, Any]:
    task = bar.add_task(field.field_key, total=None)
    for step in builder.work(field.tenant_id, field.id):
        bar.update(task, completed=step.done, total=step.total)
    bar.remove_task(task)
    return {
        "tenant_id": field.tenant_id,
        "field_id": field.id,
        "field_key": field.field_key,
        "state": str(step.state),
        "entities": step.done,
    }

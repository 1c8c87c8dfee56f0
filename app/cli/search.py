"""``flask search build``."""

from __future__ import annotations

from app.cli.base import json_option
from app.cli.generated import OperationGroup
from app.core.db.tenancy import platform_transaction
from app.search import builder
from app.search.models import EntityType
from app.surfaces.commands.output import print_rows, progress_bar

search = OperationGroup("search")


@search.command("build")
@json_option
def build(as_json: bool) -> None:
    """Build the search terms of all rows in this process.

    A worker does this once after the upgrade that adds the search. The build adds missing terms;
    until its end only rows with terms are found. A worker continues the work if this command is
    interrupted.
    """
    rows = []
    with progress_bar() as bar:
        for entity_type in EntityType:
            _restart(entity_type)
            task = bar.add_task(entity_type.value, total=None)
            for step in builder.work(entity_type):
                bar.update(task, completed=step.done, total=step.total)
            rows.append({"type": entity_type.value, "rows": step.done})
    print_rows(rows, ("type", "rows"), as_json=as_json)


@platform_transaction()
def _restart(entity_type: EntityType) -> None:
    builder.restart(entity_type)

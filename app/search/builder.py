"""Building the terms of rows that are older than the search, in batches.

Each batch is a transaction that also stores the position it has reached, so a build that is killed
continues there. A batch locks its rows, so a write to one of them comes before or after the batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from uuid import UUID

from sqlalchemy import bindparam, select

from app.core.clock import utcnow
from app.core.db import tenancy
from app.core.db.queries import count_where, delete_where, find_locked, find_row, update_where
from app.core.db.statements import Statement
from app.core.db.writes import insert_row, writes
from app.core.jobs import slices
from app.search import writer
from app.search.models import EntityType, SearchBuild
from app.search.sources import SOURCES

BATCH = 500  # rows
BEFORE_ALL = UUID(int=0)  # less than every id


def restart(entity_type: EntityType) -> None:
    """Begin to build all terms of a type; a build that has not ended continues instead."""
    key = {"entity_type": entity_type.value}
    if delete_where(SearchBuild, **key, is_settled=True) or find_row(SearchBuild, **key) is None:
        insert_row(SearchBuild, key)


def work(entity_type: EntityType) -> Iterator[SearchBuild]:
    """Build batch by batch until no work is left; yields the state after each."""
    return slices.run(partial(_run_batch, entity_type), lambda build: build.is_settled)


def _run_batch(entity_type: EntityType) -> SearchBuild | None:
    tenancy.enter(tenancy.PLATFORM)
    key = {"entity_type": entity_type.value}
    build = find_locked(SearchBuild, **key)
    if build is None or build.is_settled:
        return build
    rows = _lock_next(entity_type).all(position=build.position or BEFORE_ALL, limit=BATCH)
    with writes() as w:
        writer.add(entity_type, *rows, into=w)
    done = build.done + len(rows)
    total = build.total if build.position else count_where(SOURCES[entity_type].model)
    is_settled = len(rows) < BATCH
    changes = {
        "position": rows[-1].id if rows else build.position,
        "is_settled": is_settled,
        "done": done,
        "total": done if is_settled else total,
        "updated_at": utcnow(),
    }
    update_where(SearchBuild, key, changes)
    return build._replace(**changes)


@cache
def _lock_next(entity_type: EntityType) -> Statement:
    source = SOURCES[entity_type]
    model = source.model
    clause = (
        select(*(getattr(model, name) for name in source.needed))
        .where(model.id > bindparam("position"))
        .order_by(model.id)
        .limit(bindparam("limit"))
        .with_for_update(key_share=True)
    )
    return Statement(f"{model.__tablename__}.lock_next", clause)

"""Building the terms of rows that are older than the search, in batches.

Each batch is a transaction that also stores the position it has reached, so a build that is killed
continues there. A batch locks its rows, so a write to one of them comes before or after the batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any
from uuid import UUID

from sqlalchemy import bindparam, func, select, update
from sqlalchemy.dialects.postgresql import insert

from app.core.clock import utcnow
from app.core.db import retries, tenancy
from app.core.db.models import Moment
from app.core.db.statements import Statement
from app.core.db.writes import writes
from app.search import writer
from app.search.models import EntityType, SearchBuild
from app.search.sources import SOURCES

BATCH = 500  # rows
BEFORE_ALL = UUID(int=0)  # less than every id

_of_type = SearchBuild.entity_type == bindparam("of_type")
_now = bindparam("now", type_=Moment)
_new = insert(SearchBuild).values(
    entity_type=bindparam("of_type"), is_settled=False, done=0, total=0, updated_at=_now
)
RESTART = Statement(
    "search_builds.restart",
    _new.on_conflict_do_update(
        index_elements=["entity_type"],
        set_={column.name: column for column in _new.excluded},
        where=SearchBuild.is_settled.is_(True),
    ),
)
LOCK = Statement("search_builds.lock", select(SearchBuild).where(_of_type).with_for_update())
SAVE = Statement(
    "search_builds.save",
    update(SearchBuild.__table__)
    .where(_of_type)
    .values(
        is_settled=bindparam("is_settled"),
        position=bindparam("position"),
        done=bindparam("done"),
        total=bindparam("total"),
        updated_at=_now,
    ),
)


@dataclass(frozen=True)
class Progress:
    """How far a build is after a batch; ``is_settled`` when no work is left."""

    done: int
    total: int
    is_settled: bool


def restart(entity_type: EntityType) -> None:
    """Begin to build all terms of a type; a build that has not ended continues instead."""
    RESTART.execute(of_type=entity_type.value, now=utcnow())


def work(entity_type: EntityType) -> Iterator[Progress]:
    """Build batch by batch until no work is left; yields after each."""
    while True:
        progress = retries.run(partial(_run_batch, entity_type))
        yield progress
        if progress.is_settled:
            return


def _run_batch(entity_type: EntityType) -> Progress:
    tenancy.enter(tenancy.PLATFORM)
    build: SearchBuild | None = LOCK.first(of_type=entity_type.value)
    if build is None or build.is_settled:
        return Progress(build.done if build else 0, build.total if build else 0, is_settled=True)
    rows = _lock_next(entity_type).all(position=build.position or BEFORE_ALL, limit=BATCH)
    with writes() as w:
        writer.add(entity_type, *rows, into=w)
    done = build.done + len(rows)
    is_settled = len(rows) < BATCH
    total = build.total if build.position else _count(entity_type).scalar()
    progress = Progress(done, done if is_settled else total, is_settled)
    SAVE.execute(
        of_type=entity_type.value,
        position=rows[-1].id if rows else build.position,
        is_settled=progress.is_settled,
        done=progress.done,
        total=progress.total,
        now=utcnow(),
    )
    return progress


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


@cache
def _count(entity_type: EntityType) -> Statement:
    model: Any = SOURCES[entity_type].model
    return Statement(f"{model.__tablename__}.count_all", select(func.count()).select_from(model))

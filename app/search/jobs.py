"""Background work on search terms."""

from __future__ import annotations

from datetime import timedelta

from app.core.db.stalled import take_stalled
from app.core.jobs import slices
from app.core.jobs.queues import Queue, job
from app.search import builder
from app.search.models import EntityType, SearchBuild

STALLED = timedelta(seconds=20)
TAKE_STALLED = take_stalled(SearchBuild, "updated_at", STALLED, SearchBuild.is_settled.is_(False))


@job(queue=Queue.INDEXES)
def build_search_terms(entity_type: str) -> None:
    """Build the terms of the rows of one type that have none yet.

    It is harmless to run it twice, or again after it was killed.
    """
    build = slices.take_turn(builder.work(EntityType(entity_type)))
    if build is not None and not build.is_settled:
        build_search_terms.push(entity_type)


@job(queue=Queue.INDEXES, every=10)
def resume_search_builds() -> None:
    """Queue the unfinished builds that no worker has worked on for 20 seconds."""
    build_search_terms.push_stalled(TAKE_STALLED)
